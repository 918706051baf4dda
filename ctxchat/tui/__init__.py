"""The terminal interface: the only place that knows Textual."""
