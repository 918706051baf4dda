"""What a request is told beside the conversation: memory files, the date, the workspace, skills.

Each provider is small, asynchronous and made anew for every request; nothing here is stored in a conversation.
"""
