"""One compute thread and no deadlines for these tests."""

from zerolayer_dev.testing.small_products import one_thread

__all__ = ["one_thread"]
