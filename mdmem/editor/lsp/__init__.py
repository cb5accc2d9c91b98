"""The language server: memories for editors, unsaved texts included."""
