"""Memories in git: review, blame, reverts and commits."""
