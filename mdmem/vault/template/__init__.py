"""Templates: what a new memory looks like. Jinja2, sandboxed, strict about what is missing, bounded."""
