"""Context that goes into a request beside the conversation: memory files, the date, the workspace, skills.

Each provider is small and asynchronous, and is called for its present text; nothing here is stored in a conversation.
"""
