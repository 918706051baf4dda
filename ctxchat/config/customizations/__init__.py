"""Customizations: skills, command files, hooks, agents and MCP servers that lie in files of their own, in a project or with the
person, many of them made for other agents. A module finds each kind; `collect` brings them together.

What has a place in the settings (hooks, agents, servers) comes as a tree of settings, so that it is checked, held back until a
folder is trusted, and told like all others; skills and command files come as `core.prompt_files.PromptFile`.
"""
