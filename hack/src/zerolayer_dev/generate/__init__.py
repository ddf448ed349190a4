"""Generated files: each is made by one function here, and a test compares it with what the tree holds."""
