"""See `cli`."""

from zerolayer_bench.claims.cli import main

raise SystemExit(main())
