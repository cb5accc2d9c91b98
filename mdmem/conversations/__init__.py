"""Sessions: conversations kept as logs of JSON lines, and the summaries that stand for parts of them."""
