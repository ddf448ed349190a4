"""The worker beside other engines: same machine, same weights, same prompts."""
