"""Models that a user names: programs, and what asks them."""
