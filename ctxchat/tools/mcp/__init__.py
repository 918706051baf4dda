"""Tools of MCP servers: a connection each, spoken to with the official SDK, which is imported when a server is first started."""
