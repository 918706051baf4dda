"""The tools of a session, made with what this program has: the sandbox, the memory file, the session's own archive."""

from __future__ import annotations

import os
from pathlib import Path

from ctxchat.bootstrap.recall import Recollection
from ctxchat.bootstrap.shared import Shared
from ctxchat.core.ports import ToolPort
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.seen import SeenFiles


def tools_for(shared: Shared, session: str, memory_file: Path, seen: SeenFiles) -> tuple[ToolPort, ...]:
    """Every tool the session offers, in the order a model is told of them."""
    recall = Recollection(shared.database, session)
    return standard_tools(
        sandbox=shared.sandbox,
        environ=os.environ,
        memory_file=memory_file,
        search=recall.search,
        show=recall.show,
        web=True,
        seen=seen,
    )
