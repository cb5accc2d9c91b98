"""Finding things: every search answers with hits, the matching lines with their heading and date."""
