"""Times decode steps on a GPU, captured and not, against what its memory allows."""
