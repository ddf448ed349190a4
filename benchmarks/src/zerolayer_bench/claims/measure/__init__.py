"""One module for each measurement: `measure(piece)` returns its raw numbers."""
