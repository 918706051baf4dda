"""Errors that a person can act on: each says what went wrong, where, and what to do about it."""

from __future__ import annotations

from typing import cast


class CtxchatError(Exception):
    """An error that is shown to a person. `hint` is what they can do about it, in a sentence; empty where there is nothing."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint

    def __str__(self) -> str:
        end = "." if self.hint and self.text[-1:] not in ".!?…" else ""
        return f"{self.text}{end} {self.hint}".strip()


def first_problem(problem: BaseException) -> BaseException:
    """The first error in an exception group, however deep groups are nested; any other error itself."""
    while isinstance(problem, BaseExceptionGroup):
        problem = cast("BaseExceptionGroup[BaseException]", problem).exceptions[0]
    return problem


class UsageError(CtxchatError):
    """A wrong option, argument or setting; commands then exit with code 2."""


class UnpairedCall(CtxchatError):
    """A round (a reply with tool calls) was to be added to the record although one of its calls has no result."""


class LedgerError(CtxchatError):
    """A change that cannot be made: it names groups that do not exist or are pinned."""


class ToolError(CtxchatError):
    """A tool could not do what a call asked for; the text goes to the model as the call's result."""


class StorageError(CtxchatError):
    """The store could not read or write; nothing was changed by the attempt."""


class SessionBusy(StorageError):
    """Another window or command has this session open for writing."""


REFUSED = "refused"
"""The `code` of a ModelError where no server accepts connections at the model's address."""


class ModelError(CtxchatError):
    """A model call failed.

    `kind` is one of these. Nothing was sent: `settings` (wrong settings on this side), `limit` (a spending limit). The server
    refused: `overflow` (the prompt is longer than the window), `rate_limit`, `quota`, `auth`, `content_filter`, `not_found`,
    `bad_request`, `prefix_changed` (reasoning that was sent back is valid only behind the messages it was made for, and these
    have changed). No whole reply came: `timeout`, `connection`, `server`, `interrupted`, `empty`, `worker` (the process that
    holds litellm), `bad_summary`.

    `status` is the HTTP status, 0 where there was none. `code` and `body` are the provider's, for recognising an overflow.
    `retry_after` is in seconds, None where the server did not say.
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
        """True where the same request may succeed a little later."""
        return self.kind in {"rate_limit", "timeout", "connection", "server", "worker"}
