"""Trains the router that steers sampling, and measures what it does."""
