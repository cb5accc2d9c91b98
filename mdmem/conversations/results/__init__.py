"""Outputs of tools: a short form for the reader, and the whole of it when it is asked for."""
