"""Customizations: skills, command files, hooks, agents and MCP servers in files of their own, of a project or the person, many of
them made for other agents. A module finds each kind; `collect` combines them.

Hooks, agents and servers become a tree of settings, so that they are checked, held back until a folder is trusted, and shown like
all other settings; skills and command files become `core.prompt_files.PromptFile`.
"""
