"""Errors that a person can act on: each says what went wrong, where, and what to do about it."""

from __future__ import annotations

from typing import cast


class CtxchatError(Exception):
    """Something the user can mend. `hint` is the remedy in one sentence, empty where there is none."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint

    def __str__(self) -> str:
        end = "." if self.hint and self.text[-1:] not in ".!?…" else ""
        return f"{self.text}{end} {self.hint}".strip()


def first_problem(problem: BaseException) -> BaseException:
    """The first of those that came together, in groups of groups."""
    while isinstance(problem, BaseExceptionGroup):
        problem = cast("BaseExceptionGroup[BaseException]", problem).exceptions[0]
    return problem


class UsageError(CtxchatError):
    """A wrong option, argument or setting: exit code 2."""


class UnpairedCall(CtxchatError):
    """A round was to be sealed with a call that has no result."""


class LedgerError(CtxchatError):
    """A change that the ledger cannot take: it names groups that are not there, or pinned ones."""


class ToolError(CtxchatError):
    """A tool could not do what it was asked; the text goes to the model as the call's result."""


class StorageError(CtxchatError):
    """The store could not read or write; nothing was changed."""


class SessionBusy(StorageError):
    """Another window or command has this session open for writing."""


REFUSED = "refused"
"""The `code` of a ModelError where nobody takes connections at the model's address."""


class ModelError(CtxchatError):
    """A model call failed.

    `kind` is one of `overflow`, `rate_limit`, `quota`, `auth`, `settings` (what is set on this side) and `limit` (a limit of
    spending), with which nothing was sent, `content_filter`, `not_found`, `bad_request`, `timeout`, `connection`, `server`,
    `interrupted`, `empty`, `worker`, `bad_summary`, `prefix_changed` (thoughts are bound to what came before them, and that is
    not what was sent). `status` is the HTTP status, 0 where there was none. `code` and `body` are the provider's own words, for
    recognising an overflow. `retry_after` is in seconds, None where the server did not say.
    """

    def __init__(
        self,
        text: str,
        hint: str = "",
        *,
        kind: str = "server",
        status: int = 0,
        code: str = "",
        body: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text, hint)
        self.kind = kind
        self.status = status
        self.code = code
        self.body = body
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """True when the same request may succeed a little later."""
        return self.kind in {"rate_limit", "timeout", "connection", "server", "worker"}
