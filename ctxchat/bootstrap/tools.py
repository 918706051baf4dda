"""The tools of a session, made with what this program has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ctxchat.core.ports import ToolPort
from ctxchat.tools.reading import ReadFile
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.searching import Glob, Grep, ListFiles
from ctxchat.tools.shell import Shell
from ctxchat.tools.writing import EditFile, WriteFile

if TYPE_CHECKING:
    from ctxchat.bootstrap.program import Program


def tools_for(program: Program, session: str, memory_file: Path, sandbox: Sandbox) -> tuple[ToolPort, ...]:
    """Every tool the session offers, in the order a model is told of them."""
    return (ReadFile(), ListFiles(), Glob(), Grep(), WriteFile(), EditFile(), Shell(sandbox, os.environ))
