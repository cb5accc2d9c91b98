"""What of a conversation goes into a prompt, and the summaries that stand for the rest."""
