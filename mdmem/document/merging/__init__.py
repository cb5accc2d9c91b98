"""Two and three versions of a memory: matched, compared, merged, and changes taken back."""
