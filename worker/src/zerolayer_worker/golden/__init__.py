"""The golden set: known questions that two revisions are asked side by side."""
