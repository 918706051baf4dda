"""What strict servers share: they listen, keep what came as bytes, refuse in words, and hold a cache of prefixes.

A cache is a pure value over hashes, a clock that is handed in and tokens as today's OpenAI models count them.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from ctxchat.models.tokenizers import count_with
from tests.doubles.loopback import LoopbackServer
from tests.doubles.strict.script import Answer, Script, player

Body = dict[str, Any]
Clock = Callable[[], float]

MARK = re.compile(rb',?"(?:cache_control|prompt_cache_breakpoint)":\{[^}]*\}')
"""A cache mark as it is encoded; it may move from request to request."""

DEFERRED = b'"defer_loading":true'
"""Marks a tool that is no part of the beginning: it is read where a result refers to it."""

_CONVERSATION = ("messages", "input")
_HEAD = ("tools", "system", "instructions")


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, words: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(words)
        self.status, self.kind = status, kind


@dataclass
class Exchange:
    """A request as it came, and what became of it. `refused` are the words of a refusal; `usage` what the server counted, in its
    own form."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: Body
    refused: str = ""
    usage: Body = field(default_factory=dict)
    read: int = 0
    written: int = 0
    prompt: int = 0


def pieces(raw: bytes) -> list[bytes]:
    """The head of a request and each of its messages (or items) as the bytes they came in, cache marks and deferred tools left
    out."""
    parts: dict[str, msgspec.Raw] = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    if DEFERRED in raw:
        tools = msgspec.json.decode(parts["tools"], type=list[msgspec.Raw])
        parts["tools"] = msgspec.Raw(b"[%s]" % b",".join(bytes(t) for t in tools if DEFERRED not in bytes(t)))
    found = [b'"%s":%s' % (name.encode(), bytes(parts[name])) for name in _HEAD if name in parts]
    for name in _CONVERSATION:
        if name in parts:
            found += [bytes(each) for each in msgspec.json.decode(bytes(parts[name]), type=list[msgspec.Raw])]
    return [MARK.sub(b"", piece) for piece in found]


def appended(exchanges: Sequence[Exchange]) -> str:
    """Where a request does not begin with the one before, byte for byte; empty where each does. Refused ones count as sent."""
    for place, (before, after) in enumerate(itertools.pairwise(exchanges), 1):
        old, new = pieces(before.raw), pieces(after.raw)
        for at, piece in enumerate(old):
            if at >= len(new) or new[at] != piece:
                there = new[at][:300] if at < len(new) else b"nothing"
                return f"request {place}, piece {at}:\n  was {piece[:300]!r}\n  is  {there!r}"
    return ""


TOKENS_A_BLOCK = 3

_ENVELOPE = ("type", "role", "id", "call_id", "tool_use_id", "status", "signature", "cache_control")
"""Fields that tell a server what a value is, and no model."""

_count = functools.lru_cache(10_000)(count_with("o200k_base"))


def weight(value: object) -> int:
    """The tokens of what a model reads of a value, as OpenAI's count, and some for each value."""
    return _count(_words(value)) + TOKENS_A_BLOCK


def _words(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_words, value))
    if not isinstance(value, dict):
        return str(value)
    match value:
        case {"text": str(text)} | {"thinking": str(text)}:
            return text
        case {"encrypted_content": str(sealed)}:
            return " hm" * int(sealed.rpartition("-")[2])  # as many tokens as the thought took
        case {"name": name, "arguments": arguments} | {"name": name, "input": arguments}:
            return f"{name} {arguments if isinstance(arguments, str) else json.dumps(arguments)}"
        case {"content": content}:
            return _words(content)
        case {"output": output}:
            return _words(output)
        case _:
            return json.dumps({name: inner for name, inner in value.items() if name not in _ENVELOPE})


@dataclass(frozen=True)
class Place:
    """The end of a block (or item): the hash of all up to it, and the tokens up to it."""

    hash: str
    tokens: int


def ends(blocks: Sequence[object], before: str = "", tokens: int = 0) -> list[Place]:
    """The ends of these blocks, one behind another."""
    places: list[Place] = []
    for block in blocks:
        words = json.dumps(block, sort_keys=True)
        before = hashlib.blake2b(f"{before}\0{words}".encode(), digest_size=12).hexdigest()
        tokens += weight(block)
        places.append(Place(before, tokens))
    return places


class PrefixCache:
    """What a server holds: hash of a prefix to the moment it goes cold, and for how long each use keeps it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, tuple[float, float]] = {}

    def holds(self, place: Place) -> bool:
        """It is there and warm."""
        return self._held.get(place.hash, (0.0, 0.0))[0] > self._clock()

    def renew(self, place: Place) -> None:
        """A read keeps it as long again."""
        _, life = self._held[place.hash]
        self._held[place.hash] = (self._clock() + life, life)

    def write(self, place: Place, life: float) -> None:
        """Held from now on; what is held for longer stays so."""
        until, longer = self._held.get(place.hash, (0.0, 0.0))
        life = max(life, longer if until > self._clock() else 0.0)
        self._held[place.hash] = (max(until, self._clock() + life), life)


class StrictServer(LoopbackServer):
    """The server. `exchanges` are all requests for replies in their order; `complaints` what a provider would not
    refuse but wants otherwise. `clock` in seconds."""

    ROUTES: tuple[str, ...] = ()

    def __init__(self, script: Script = (), *, clock: Clock = time.monotonic, models: Sequence[Body] = ()) -> None:
        super().__init__()
        self.exchanges: list[Exchange] = []
        self.complaints: list[str] = []
        self.models = list(models)
        self._clock = clock
        self._next = player(script)
        self._made = 0

    @property
    def accepted(self) -> list[Exchange]:
        """Those that were answered."""
        return [each for each in self.exchanges if not each.refused]

    def read_share(self, after: int = 1) -> float:
        """Of the prompt tokens of all requests but the first `after`, the part that was read from the cache."""
        later = self.accepted[after:]
        return sum(e.read for e in later) / max(1, sum(e.prompt for e in later))

    def new_id(self, prefix: str) -> str:
        """An id nobody has had."""
        self._made += 1
        return f"{prefix}_{self._made:04d}"

    def take(self, exchange: Exchange) -> None:
        """Look at a request, count its cache. Raises Refused."""
        raise NotImplementedError

    def stream(self, exchange: Exchange, answer: Answer) -> AsyncIterator[bytes]:
        """The bytes of a reply; from now on its thoughts are known."""
        raise NotImplementedError

    def error(self, refused: Refused) -> Body:
        """The body of a refusal."""
        raise NotImplementedError

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        for path in self.ROUTES:
            app.router.add_post(path, self._answer)
        app.router.add_get("/v1/models", self._models)
        return app

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self.models, "has_more": False})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        exchange = Exchange(request.path, headers, raw, json.loads(raw))
        self.exchanges.append(exchange)
        try:
            self.take(exchange)
            answer = self._next(exchange.body)
            if answer.status != 200:
                raise Refused(answer.error[1], answer.status, answer.error[0])
        except Refused as refused:
            exchange.refused = str(refused)
            return web.json_response(self.error(refused), status=refused.status)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        async for data in self.stream(exchange, answer):
            await response.write(data)
        await response.write_eof()
        return response


def event(kind: str, data: Body) -> bytes:
    """A named event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
