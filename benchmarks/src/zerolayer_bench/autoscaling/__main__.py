"""See `cli`."""

from zerolayer_bench.autoscaling.cli import main

raise SystemExit(main())
