"""Pure decisions: what a pool should become, given what was observed and what time it is."""
