"""The lines that pass between ctxchat and the process that holds litellm: one JSON object a line, orders in, news out."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.ports import ModelPiece


class Call(msgspec.Struct, frozen=True, tag="call"):
    """Stream one reply. `arguments` are litellm's (model, messages, tools, api_base, …), `timeout` seconds without a byte."""

    id: int
    arguments: dict[str, object]
    timeout: float


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Close that call's connection; answered by StreamEnded."""

    id: int


Request = Call | Cancel


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """litellm is loaded and warm."""


class Piece(msgspec.Struct, frozen=True, tag="piece"):
    """Something arrived for a call."""

    id: int
    piece: ModelPiece


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """A call failed: the fields of ModelError."""

    id: int
    text: str
    hint: str = ""
    kind: str = "server"
    status: int = 0
    code: str = ""
    body: str = ""
    retry_after: float | None = None

    def error(self) -> ModelError:
        """As it is raised on the other side."""
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
    """As it is told to the other side."""
    said = (error.text, error.hint, error.kind, error.status, error.code, error.body, error.retry_after)
    return Failure(id, *said)


class StreamEnded(msgspec.Struct, frozen=True, tag="done"):
    """Nothing more comes for a call, and its connection is closed."""

    id: int


News = Ready | Piece | Failure | StreamEnded

read_request = msgspec.json.Decoder(Request).decode
read_news = msgspec.json.Decoder(News).decode


def encode(value: object) -> bytes:
    """As JSON on one line, without its end. Halves of characters, which no encoding takes, become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(sound(msgspec.to_builtins(value)))


def sound(value: Any) -> Any:
    """The same without halves of characters."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {sound(key): sound(inner) for key, inner in value.items()}
    return [sound(inner) for inner in value] if isinstance(value, list | tuple) else value
