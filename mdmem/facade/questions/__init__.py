"""The questions that are asked of a memory: each takes what it reads, and none changes anything."""
