"""The providers every session has, in their order: what changes least comes first, so that a cached prefix reaches furthest."""

from __future__ import annotations

from pathlib import Path

from ctxchat.context.identity import Identity
from ctxchat.context.skills import Skills, workspace_skills
from ctxchat.context.workspace import Workspace
from ctxchat.core.ports import ContextProvider


def standard_providers(
    root: Path, user_skills: Path | None = None, *, trusted: bool = True
) -> tuple[ContextProvider, ...]:
    """Skills of the workspace and of the user, the workspace's snapshot (with git only where it is trusted), then identity
    and date."""
    folders = [workspace_skills(root), *([user_skills] if user_skills else [])]
    return (Skills(*folders), Workspace(root, git="git" if trusted else ""), Identity(root))
