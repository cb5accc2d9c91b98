"""Memory of other systems, read as memories of this one; nothing is written here."""
