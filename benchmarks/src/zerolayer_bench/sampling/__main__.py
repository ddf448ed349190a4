"""See `cli`."""

from zerolayer_bench.sampling.cli import main

raise SystemExit(main())
