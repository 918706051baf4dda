"""The composition root: the only place that knows everyone. Settings in, a running program out (`program.Program`)."""

LAST_HERE = "-"
"""In place of a session's id: the one used last in this folder."""
