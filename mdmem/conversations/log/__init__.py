"""The log of a conversation: messages, records, and what they add up to."""
