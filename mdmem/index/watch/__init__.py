"""Watching: what happens to the files of a vault, and keeping its index current by that."""
