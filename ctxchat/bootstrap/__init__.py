"""The composition root: the only place that knows everyone. Settings in, a running program out."""

from ctxchat.bootstrap.program import Program

__all__ = ["Program"]
