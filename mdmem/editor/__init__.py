"""What editors ask of memories, unsaved texts included, and the language server that answers them."""
