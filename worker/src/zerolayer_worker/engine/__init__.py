"""Scheduling and running of requests; no HTTP here."""
