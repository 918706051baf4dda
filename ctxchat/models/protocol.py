"""The protocol between ctxchat and the process that holds litellm: requests go in and news come out, each a JSON object on a
line."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.ports import ModelPiece


class Call(msgspec.Struct, frozen=True, tag="call"):
    """A request to stream a reply. `arguments` are litellm's (model, messages, tools, api_base, …); `timeout` is the longest time
    without a byte, in seconds."""

    id: int
    arguments: dict[str, object]
    timeout: float


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """A request to close the connection of the call `id`; answered by StreamEnded."""

    id: int


Request = Call | Cancel


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """News: litellm is loaded, and calls can be made."""


class Piece(msgspec.Struct, frozen=True, tag="piece"):
    """News: a piece of a reply."""

    id: int
    piece: ModelPiece


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """News: a call failed. The fields are those of ModelError."""

    id: int
    text: str
    hint: str = ""
    kind: str = "server"
    status: int = 0
    code: str = ""
    body: str = ""
    retry_after: float | None = None

    def error(self) -> ModelError:
        """The error to raise on the side of ctxchat."""
        return ModelError(
            self.text,
            self.hint,
            kind=self.kind,
            status=self.status,
            code=self.code,
            body=self.body,
            retry_after=self.retry_after,
        )


def failed(id: int, error: ModelError) -> Failure:
    """The news that the call `id` failed with this error."""
    parts = (error.text, error.hint, error.kind, error.status, error.code, error.body, error.retry_after)
    return Failure(id, *parts)


class StreamEnded(msgspec.Struct, frozen=True, tag="done"):
    """News: nothing more comes for a call, and its connection is closed."""

    id: int


News = Ready | Piece | Failure | StreamEnded

read_request = msgspec.json.Decoder(Request).decode
read_news = msgspec.json.Decoder(News).decode


def encode(value: object) -> bytes:
    """A value as JSON on one line, without the line break. Halves of surrogate pairs become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(sound(msgspec.to_builtins(value)))


def sound(value: Any) -> Any:
    """A JSON value with question marks for halves of surrogate pairs, which cannot be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {sound(key): sound(inner) for key, inner in value.items()}
    return [sound(inner) for inner in value] if isinstance(value, list | tuple) else value
