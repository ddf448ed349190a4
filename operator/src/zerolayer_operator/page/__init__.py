"""A page to look at in a browser: how each pool follows its load, now and over the last hours."""
