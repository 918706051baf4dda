"""A small model server on loopback that plays a script, goes wrong on request, and remembers what it was asked.

    async with ModelDouble([says("hello"), breaks("reset")]) as double:
        ... double.base_url, double.requests

By hand: `python -m tests.doubles.http_model --port 8123`, then `ctxchat --model openai/double --api-base http://127.0.0.1:8123/v1`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from tests.doubles import wire
from tests.doubles.forms import FORMS, Form
from tests.doubles.loopback import LoopbackServer
from tests.doubles.replies import Reply, call, calls, says

Script = Iterable[Reply] | Callable[[dict[str, Any]], Reply]
"""Replies in order, the last one again when they run out; or a function from the request's body to a reply."""

_FORM_AT = {
    "/v1/chat/completions": "openai",
    "/v1/responses": "responses",
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
    "/v2/chat": "cohere",
    "/{model:.*}:streamGenerateContent": "gemini",
    "/openai/deployments/{model}/chat/completions": "azure",
    "/model/{model}/converse-stream": "bedrock",
}
"""Whose form is spoken at which path."""


@dataclass
class Seen:
    """A request the double was sent. `ended` is set when the exchange is over; `dropped` tells that the client closed it."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    query: Mapping[str, str]
    started: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False


class ModelDouble(LoopbackServer):
    """The server. `pages` are further GET (or POST) paths with the JSON they answer, such as `/props` or `/api/ps`; `tokenize`
    makes the tokens that `/tokenize` tells, as llama.cpp does. The paths in `silent` are never answered. `form` names whose
    form of OpenAI's stream is spoken."""

    def __init__(
        self,
        script: Script = (),
        pages: Mapping[str, object] | None = None,
        model: str = "double",
        tokenize: Callable[[str], list[int]] | None = None,
        silent: Collection[str] = (),
        form: str = "openai",
    ) -> None:
        super().__init__()
        self.requests: list[Seen] = []
        self.pages: list[Seen] = []
        """What was asked for beside replies."""
        self._answer = script if callable(script) else _in_order(script)
        self._pages = dict(pages or {})
        self._model = model
        self._tokenize = tokenize
        self._silent = frozenset(silent)
        self._form = form
        self._arrived = asyncio.Event()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28)
        for path, form in _FORM_AT.items():
            app.router.add_post(path, self._chat(FORMS[self._form if form == "openai" else form]))
        app.router.add_route("*", "/{page:.*}", self._page)
        return app

    async def asked(self) -> Seen:
        """The first request, when it is there."""
        await self._arrived.wait()
        return self.requests[0]

    def _chat(self, form: Form) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            seen = Seen(request.path, await request.json(), dict(request.headers), dict(request.query))
            self.requests.append(seen)
            self._arrived.set()
            try:
                return await _play(self._answer(seen.body), seen, request, form)
            except (asyncio.CancelledError, ConnectionError):
                seen.dropped = True
                raise
            finally:
                seen.ended.set()

        return handle

    async def _page(self, request: web.Request) -> web.StreamResponse:
        self.pages.append(Seen(request.path, {}, dict(request.headers), dict(request.query)))
        if request.path in self._silent:
            await asyncio.sleep(3600)
        if request.path in self._pages:
            return web.json_response(self._pages[request.path])
        if request.path == "/tokenize" and self._tokenize:
            return web.json_response({"tokens": self._tokenize((await request.json())["content"])})
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": self._model, "object": "model"}]})
        return web.json_response({"error": "not found"}, status=404)


def _in_order(script: Iterable[Reply]) -> Callable[[dict[str, Any]], Reply]:
    left = list(script) or [says("hello")]
    return lambda _body: left.pop(0) if len(left) > 1 else left[0]


async def _play(reply: Reply, seen: Seen, request: web.Request, form: Form) -> web.StreamResponse:
    await asyncio.sleep(reply.first_byte)
    seen.started.set()
    if reply.status != 200:
        text = reply.error if isinstance(reply.error, str) else json.dumps(reply.error or {})
        kind = "application/json" if text[:1] == "{" else "text/plain"
        return web.Response(status=reply.status, text=text, headers=reply.headers, content_type=kind)
    if reply.raw is not None:
        return web.Response(body=reply.raw, headers=reply.headers, content_type=reply.raw_type)
    if not seen.body.get("stream", form.streams):
        return web.json_response(wire.openai_whole(reply, seen.body), headers=reply.headers)
    if reply.fault == "error_body":
        return web.json_response(reply.error, headers=reply.headers, dumps=partial(json.dumps, indent=2))
    response = web.StreamResponse(headers={"content-type": "text/event-stream", **reply.headers})
    await response.prepare(request)
    for number, chunk in enumerate(form.stream(reply, seen.body)):
        if reply.fault == "garbled" and number == reply.fault_after:
            await response.write(form.garbage)
        elif reply.fault and number >= reply.fault_after and await _go_wrong(reply, form, request, response):
            return response
        await response.write(chunk)
        await asyncio.sleep(reply.delay)
    if form.closing and reply.fault in {"", "garbled"}:
        await response.write(form.closing)
    await response.write_eof()
    return response


async def _go_wrong(reply: Reply, form: Form, request: web.Request, response: web.StreamResponse) -> bool:
    """Do what the fault says; True when nothing may follow."""
    match reply.fault:
        case "reset" if request.transport:
            request.transport.abort()
        case "stall":
            await asyncio.sleep(3600)
        case "malformed":
            await response.write(form.garbage)
        case "error_event":
            await response.write(form.event(reply.error))
        case "cut" | "garbled":
            return False
        case _:
            pass
    return True


def _first_a_tool(body: dict[str, Any]) -> Reply:
    """By hand: one tool call, then, when there is a result, a text."""
    messages = body.get("messages") or body.get("contents") or []
    if not any(name in json.dumps(messages) for name in ('"role": "tool"', '"tool_result"', '"toolResult"')):
        wanted = call("list_files", f"call_{len(messages)}", path=".")
        return calls(wanted, text="I look.", reasoning="What is there?", signature="c2ln", cached=20, delay=0.02)
    return says(f"I was sent {len(messages)} messages. " + "Some words. " * 40, delay=0.02)


async def _serve(port: int, form: str) -> None:
    double = ModelDouble(_first_a_tool, form=form)
    await double.start(port)
    print(double.base_url, flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await double.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--form", choices=FORMS, default="openai")
    asyncio.run(_serve(**vars(parser.parse_args())))
