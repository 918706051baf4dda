"""ctxchat: a chat agent in the terminal whose context window is something you can see, steer and undo."""

__version__ = "0.1.0"
