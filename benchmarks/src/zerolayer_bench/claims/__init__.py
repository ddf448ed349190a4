"""The figures that the idea was introduced with, each measured here and marked by what came of it."""
