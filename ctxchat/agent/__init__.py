"""The agent: one conversation at work, its turns, model calls, tool calls and compactions. Begin with `session`, then `turn`.

Imports the core only; models, tools, stores and clocks are handed in as `core.ports`.
"""
