"""Adapters: the vault as the memory of other packages' agents."""
