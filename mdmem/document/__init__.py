"""One memory: its parts, and exact edits of them."""
