"""What every suite has: promises and their figures; pytester for the tests of that plugin itself."""

from hypothesis import settings

pytest_plugins = ["zerolayer_dev.testing.promises", "pytester"]

# An example's time says more of how busy the machine is than of the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
