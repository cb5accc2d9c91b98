"""The façade: `Memory`, and what only it does."""
