"""The Messages API."""
