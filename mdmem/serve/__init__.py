"""Front ends for programs: the MCP server, and adapters of frameworks and hosts."""
