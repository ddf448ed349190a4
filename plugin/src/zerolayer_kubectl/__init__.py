"""The plugin `kubectl zerolayer`."""
