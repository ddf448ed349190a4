"""The OpenAI API: chat completions and plain completions."""
