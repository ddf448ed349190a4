"""Choosing the next token inside the LM-head product."""
