"""What every suite has: promises and their figures; pytester for the tests of that plugin itself."""

import os
from pathlib import Path

from hypothesis import settings

# Whether Triton interprets kernels is settled when it is first imported, which any test may do.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")
# Compiled, they say which default they take, and a warning is an error here.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

pytest_plugins = ["zerolayer_dev.testing.promises", "pytester"]

# An example's time says more of how busy the machine is than of the code. `make test` judges the same
# examples each time, so that it says something about the change; `make fuzz` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=3000)
settings.load_profile("same")
