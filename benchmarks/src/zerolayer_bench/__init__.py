"""Benchmarks that replay recorded load."""
