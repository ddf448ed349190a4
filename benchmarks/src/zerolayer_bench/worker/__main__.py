"""`python -m zerolayer_bench.worker`."""

import sys

from zerolayer_bench.worker.cli import main

sys.exit(main())
