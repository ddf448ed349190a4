"""What every layer may use: intents, errors, logging."""
