"""Completes arguments for a shell: ids of sessions and compactions, models, strategies, setting keys. Asks no server; on any
failure it offers nothing, since a person is typing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from ctxchat.bootstrap.flags import Flags, settings_from
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.config import paths
from ctxchat.core.errors import CtxchatError
from ctxchat.core.sanitize import clean

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _offering(words: Callable[[], Iterable[tuple[str, str]]]) -> Complete:
    """Completes from words with a line on each, in their order."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(CtxchatError, OSError, ValueError):
            return [CompletionItem(word, help=clean(about)) for word, about in words() if word.startswith(incomplete)]
        return []

    return complete


def _sessions() -> Iterable[tuple[str, str]]:
    from ctxchat.storage.database import Database
    from ctxchat.storage.sessions import rows

    with Database(paths.data_dir()) as database:
        return [(row.id, row.title) for row in rows(database)]


def _compactions() -> Iterable[tuple[str, str]]:
    from ctxchat.storage import archive
    from ctxchat.storage.database import Database

    with Database(paths.data_dir()) as database:
        return [(row.id, f"{row.at[:16]} {row.strategy}") for row in archive.compactions(database, "")]


def _models() -> Iterable[tuple[str, str]]:
    """The models of the settings, and those that stored sessions used."""
    from ctxchat.models.offline import OFFLINE_NAME
    from ctxchat.storage.database import Database
    from ctxchat.storage.sessions import rows

    settings = settings_from(Flags(), workspace_of("")).settings
    with Database(paths.data_dir()) as database:
        used = [row.model for row in rows(database)]
    names = dict.fromkeys((settings.model, *settings.models, *used, OFFLINE_NAME))
    return [(name, "") for name in names if name]


def _strategies() -> Iterable[tuple[str, str]]:
    from ctxchat.config.effective import entry_points
    from ctxchat.core.strategies.builtin import builtin_strategies
    from ctxchat.core.strategies.planning import PlanOptions

    ours = builtin_strategies(PlanOptions())
    theirs = sorted(set(entry_points("strategies")) - set(ours))
    return [*((name, strategy.label) for name, strategy in ours.items()), *((name, "") for name in theirs)]


def _setting_keys() -> Iterable[tuple[str, str]]:
    from ctxchat.config import explain

    return [(row.key, f"now {row.value}") for row in explain.rows(settings_from(Flags(), workspace_of("")))]


sessions, compactions = _offering(_sessions), _offering(_compactions)
models, strategies, setting_keys = _offering(_models), _offering(_strategies), _offering(_setting_keys)
