"""Conversations as other programs write them."""
