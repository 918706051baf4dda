"""The tools we bring, built from what they need. The composition root calls this; nothing here is found out by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ctxchat.core.ports import ToolPort
from ctxchat.tools.conversation import AskUser, Recall, Remember, Search, Show
from ctxchat.tools.edit_file import EditFile, WriteFile
from ctxchat.tools.jobs import Jobs, JobTool
from ctxchat.tools.read_file import ReadFile
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.searching import Glob, Grep, ListFiles
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.shell import Shell
from ctxchat.tools.todo import Todo
from ctxchat.tools.web import WebFetch


def standard_tools(
    *,
    sandbox: Sandbox,
    environ: Mapping[str, str],
    keep_environ: Sequence[str] = (),
    asks_everything: bool = False,
    memory_file: Path | None = None,
    search: Search | None = None,
    show: Show | None = None,
    web: bool = True,
    seen: SeenFiles | None = None,
    jobs: Jobs | None = None,
    shows_images: Callable[[], bool] = lambda: False,
) -> tuple[ToolPort, ...]:
    """All tools in the order a model is told of them, new ones for each session.

    `sandbox` comes from `sandbox.find_sandbox` (or is `Sandbox()` for none), `environ` is what commands may see, without
    the keys in it but for `keep_environ`; with `asks_everything` no command is free. What nothing was handed in for is left
    out: `remember` without a memory file, `recall` without both `search` and `show`.
    """
    tools: list[ToolPort] = [ReadFile(seen, shows_images), ListFiles(), Glob(), Grep(), WriteFile(seen), EditFile(seen)]
    jobs = jobs or Jobs()
    tools += [Shell(sandbox, environ, keep_environ, jobs=jobs, asks_everything=asks_everything), JobTool(jobs)]
    if web:
        tools.append(WebFetch())
    tools += [Todo(), AskUser()]
    if memory_file:
        tools.append(Remember(memory_file))
    if search and show:
        tools.append(Recall(search, show))
    return tuple(tools)
