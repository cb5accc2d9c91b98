"""What somebody states in a conversation: wishes, decisions and facts, found by rules."""
