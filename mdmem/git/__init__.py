"""Git, beside the vault: the program, and what a repository holds."""
