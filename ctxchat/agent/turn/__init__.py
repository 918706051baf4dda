"""One turn of a conversation: model calls, tool calls and their approval, until the model calls nothing more."""
