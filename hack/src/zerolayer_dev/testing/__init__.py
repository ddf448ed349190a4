"""What the test suites share: the promises plugin and helpers for a running cluster."""
