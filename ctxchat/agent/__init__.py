"""The agent: the corridor where time passes. Imports the core only and is handed its adapters."""
