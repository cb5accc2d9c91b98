"""Documents and edits: bytes in, values out, no input or output."""
