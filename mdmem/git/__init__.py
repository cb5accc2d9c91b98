"""What git knows: the program, the objects of a repository, and who wrote which line."""
