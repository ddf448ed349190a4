"""See `cli`."""

from zerolayer_bench.decode.cli import main

raise SystemExit(main())
