"""A text in the person's own editor. The terminal is the editor's meanwhile: nothing else is drawn and nothing else runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from textual.app import SuspendNotSupported

from ctxchat.core.errors import CtxchatError


def edited(text: str, command: str, suspend: Callable[[], AbstractContextManager[None]]) -> str | None:
    """The text after `command` (else $VISUAL, $EDITOR, vi) had it; None where the editor ended with an error, which is
    how one says no. Raises CtxchatError where there is no terminal to give away, or no such editor."""
    words = shlex.split(command or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="ctxchat-") as folder:
        file = Path(folder) / "message.md"
        file.write_text(text, "utf-8")
        try:
            with suspend():
                code = subprocess.run([*words, str(file)], check=False).returncode
        except SuspendNotSupported:
            raise CtxchatError("An editor cannot be opened from here.", "It needs a terminal of its own.") from None
        except OSError as problem:
            hint = "Set $EDITOR, or interface.editor in the settings."
            raise CtxchatError(f"{words[0]}: {problem.strerror}", hint) from None
        return file.read_text("utf-8", "replace") if code == 0 else None
