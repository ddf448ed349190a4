"""The HTTP surface: Messages, OpenAI and operations routes."""
