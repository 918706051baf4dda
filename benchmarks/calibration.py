"""How true the gauge is before a request is sent, against what the server then counted.

    python -m benchmarks.calibration [SEEDS] [NAME=tokenizer.json …]

Whole sessions of the real agent, through the real litellm, against servers on loopback that count their own way: doubles that
count by the chat formats OpenAI and Anthropic publish, with three vocabularies and those that are handed in (NAME is what the
model is called, `gemma-3` or `other`), and llama.cpp's own server with the vocabularies of real families where
`tests/peers/build.sh` has made them. No model was heard of before its session. Each session holds one kind of text beside the
real tools' schemas; `mixed` holds all, in `tools` a tool with a large schema gives back JSON. An error is a share of the whole
request.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import statistics
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import tiktoken

from benchmarks.texts import KINDS, Texts
from benchmarks.vocabularies import counter as counter_of
from ctxchat.core.messages import Image
from ctxchat.core.options import Options
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ModelPiece, ModelRequest, ReplyEnd, ToolContext, ToolOutput
from ctxchat.core.view import ToolSpec
from ctxchat.models.catalogue import package_folder
from ctxchat.models.client import ModelClient, ModelTransport
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from ctxchat.models.tokenizers import counter
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.sandbox import Sandbox
from tests.agent.desk import Desk
from tests.doubles.counting import anthropic_prompt, openai_prompt
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, call, calls, says
from tests.peers.servers import VOCABULARIES, running

TURNS = 8
SIZES = (300, 900, 200, 1500, 600, 2500, 100, 1200)
"""Tokens of what is added in each turn, by rule of thumb."""

SYSTEM = (
    "You are ctxchat, an assistant that works with a person in a terminal. Look before you answer, and say what you saw. "
    * 6
)

Count = Callable[[str], int]


class Sent(NamedTuple):
    """A request: what the gauge said just before it went, by how much that might be off, and what the server counted."""

    shown: int
    band: int
    real: int

    @property
    def error(self) -> float:
        return abs(self.shown - self.real) / self.real


class Watched(ModelClient):
    """A model whose gauge is read whenever a request goes out."""

    desk: Desk
    sent: list[Sent]

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:  # type: ignore[override]
        context_usage = self.desk.session.context_usage
        async with aclosing(super().stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ReplyEnd) and piece.usage:
                    self.sent.append(
                        Sent(context_usage.used, round(context_usage.band * context_usage.used), piece.usage.prompt)
                    )
                yield piece


class Records:
    """A tool with a large schema that gives back JSON, each time of another size."""

    def __init__(self, texts: Texts) -> None:
        self._texts, self._sizes = texts, itertools.cycle(SIZES)

    @property
    def spec(self) -> ToolSpec:
        about = "Only records whose field lies in these bounds, both included; leave it out to take all of them."
        bounds = {
            "type": "object",
            "properties": {end: {"type": ["number", "string"], "description": about} for end in ("from", "to")},
        }
        fields = ("id", "name", "at", "took_ms", "ok", "tags", "region", "owner", "cost", "retries", "queue", "version")
        properties: dict[str, object] = {field: {**bounds, "description": f"Bounds of {field}."} for field in fields}
        return ToolSpec("records", "Finds records.", {"type": "object", "properties": properties, "required": []})

    def reads(self, arguments: Mapping[str, object]) -> bool:
        return True

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        return AccessRequest("read", "records", summary="records")

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolOutput]:
        yield ToolOutput(self._texts.take("json", next(self._sizes)))


async def session(
    settings: ModelSettings, lane: ModelTransport, kind: str, seed: int, *, images: bool = False
) -> list[Sent]:
    """One session from its first message; what was shown and counted for each request."""
    texts, model = Texts(seed), Watched(settings, lane)
    tools = standard_tools(sandbox=Sandbox("none"), environ={})
    if kind == "tools":
        tools = [*tools, Records(texts)]
    options = Options(auto_compact="off", prepare=False)
    model.desk, model.sent = Desk(model, tools=tools, options=options, system=SYSTEM, mode="read-only"), []
    for turn in range(TURNS):
        of = KINDS[(turn + seed) % len(KINDS)] if kind == "mixed" else kind
        text = texts.take(of, 60 if kind == "tools" else SIZES[(turn + seed) % len(SIZES)])
        shots = [
            Image(_png(320 + 160 * (turn % 4), 240 + 200 * (turn % 3)), 320 + 160 * (turn % 4), 240 + 200 * (turn % 3))
        ]
        async with aclosing(model.desk.session.send(f"Look at this:\n{text}", shots if images else ())) as events:
            async for _ in events:
                pass
    return model.sent


def _png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\x00\x00\x00"
    return f"data:image/png;base64,{base64.b64encode(head).decode()}"


# ── servers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def older() -> Count:
    """A counter with a vocabulary that ctxchat never counts with: p50k, of 2021, from the tables inside litellm's wheel."""
    folder = package_folder()
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder and folder / "litellm_core_utils" / "tokenizers")
    table = tiktoken.get_encoding("p50k_base")
    return lambda text: len(table.encode_ordinary(text))


def answering(
    kind: str, prompt: Callable[[dict[str, Any], Count], int], count: Count
) -> Callable[[dict[str, Any]], Reply]:
    """A script that answers in the conversation's language and counts as a server does. Of `tools` it asks for records before
    each answer."""
    texts, asks = Texts(99), itertools.cycle((kind == "tools", False))

    def reply(body: dict[str, Any]) -> Reply:
        if next(asks):
            wanted = call("records", at={"from": "2025-03-01", "to": "2025-03-31"}, ok=False)
            said = count(wanted.name) + count(wanted.arguments) + 8
            return calls(wanted, usage={"prompt_tokens": prompt(body, count), "completion_tokens": said})
        of = kind if kind in {"chinese", "japanese"} else "prose"
        said = texts.take(of, 120)
        usage = {"prompt_tokens": prompt(body, count), "completion_tokens": count(said)}
        return says(said, usage=usage, chunk=200)

    return reply


class Server(NamedTuple):
    """Who counts: the name in the table, the model's name for litellm, whether it is shown images."""

    title: str
    name: str
    prompt: Callable[[dict[str, Any], Count], int]
    count: Count
    images: bool = False


def doubles(more: Sequence[str] = ()) -> Iterator[Server]:
    yield Server("OpenAI's format, o200k", "openai/gpt-4o", openai_prompt, counter("gpt-4o"), images=True)
    yield Server("OpenAI's format, cl100k", "openai/gpt-4", openai_prompt, counter("gpt-4"))
    yield Server("OpenAI's format, p50k", "openai/other", openai_prompt, older())
    yield Server("Anthropic's, p50k", "anthropic/claude-sonnet-4-5", anthropic_prompt, older(), images=True)
    for name, _, path in (named.partition("=") for named in more):
        yield Server(f"{name}, {Path(path).stem}"[:25], f"openai/{name}", openai_prompt, counter_of(Path(path)))


@asynccontextmanager
async def double(server: Server, kind: str) -> AsyncIterator[ModelSettings]:
    """The settings of a model behind a double that counts."""
    async with ModelDouble(answering(kind, server.prompt, server.count)) as http:
        base = http.base_url if server.name.startswith("openai/") else http.root
        yield ModelSettings(name=server.name, api_base=base, window=128_000, vision=server.images)


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────────────


def row(title: str, kind: str, sessions: Sequence[Sequence[Sent]]) -> str:
    """Errors of the first request, the second, and all after it."""
    first, second = ([s[place].error for s in sessions] for place in (0, 1))
    later = sorted(sent.error for s in sessions for sent in s[2:])
    after_first = [sent for s in sessions for sent in s[1:]]
    near = sum(sent.error <= 0.02 for sent in after_first) / len(after_first)
    banded = sum(abs(s.shown - s.real) <= s.band for s in after_first) / len(after_first)
    return (
        f"{title:<26}{kind:<10}{statistics.median(first):>8.1%}{statistics.median(second):>9.1%}{max(second):>8.1%}"
        f"{later[len(later) // 2]:>9.2%}{later[int(0.95 * (len(later) - 1))]:>8.1%}{near:>10.0%}{banded:>9.0%}"
    )


async def main(seeds: str = "6", *vocabularies: str) -> None:
    worker, every = ModelProcess(), list[list[Sent]]()
    print(f"{'':<36}{'first':>8}{'second':>9}{'worst':>8}{'later':>9}{'p95':>8}{'within 2%':>10}{'in band':>9}")
    try:
        for server in doubles(vocabularies):
            for kind in (*KINDS, "mixed", "tools", *(("images",) if server.images else ())):
                found: list[list[Sent]] = []
                for seed in range(int(seeds)):
                    async with double(server, kind) as settings:
                        texts = "prose" if kind == "images" else kind
                        found.append(await session(settings, worker, texts, seed, images=kind == "images"))
                print(row(server.title, kind, found), flush=True)
                every += found
        for name in VOCABULARIES:
            with contextlib.suppress(FileNotFoundError), running(name, 65_536) as root:
                settings = ModelSettings(name=f"openai/{name}", api_base=f"{root}/v1")
                for kind in (*KINDS, "mixed"):
                    found = [await session(settings, worker, kind, seed) for seed in range(int(seeds))]
                    print(row(f"llama.cpp, {name}", kind, found), flush=True)
                    every += found
        print(row("all", "", every))
    finally:
        await worker.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
