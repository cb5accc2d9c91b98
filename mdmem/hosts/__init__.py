"""Hosts: the programs that run agents. What is written into their settings, and what their hooks are told."""
