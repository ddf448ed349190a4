"""What every suite has: promises and their figures; pytester for the tests of that plugin itself."""

from hypothesis import settings

pytest_plugins = ["zerolayer_dev.testing.promises", "pytester"]

# An example's time says more of how busy the machine is than of the code. `make test` judges the same
# examples each time, so that it says something about the change; `make fuzz` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=3000)
settings.load_profile("same")
