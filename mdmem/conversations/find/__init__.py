"""Search in conversations: exact, and ranked."""
