"""See `cli`."""

from zerolayer_bench.verdict.cli import main

if __name__ == "__main__":  # each process of the pool imports this module too
    raise SystemExit(main())
