"""What every suite has: promises and their figures; pytester for the tests of that plugin itself."""

pytest_plugins = ["zerolayer_dev.testing.promises", "pytester"]
