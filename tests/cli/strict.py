"""What the strictest provider demands of a request's messages, rule by rule."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def complaints(messages: list[dict[str, Any]], *, user_after_tool: bool = False) -> list[str]:
    """Everything that would be refused, in sentences; nothing when all is well. Some take a user message after a result."""
    return [*_roles(messages, user_after_tool), *_contents(messages), *_pairing(messages)]


def _roles(messages: list[dict[str, Any]], user_after_tool: bool) -> Iterator[str]:
    roles = [m["role"] for m in messages]
    if not roles:
        yield "no messages"
    if unknown := set(roles) - {"system", "user", "assistant", "tool"}:
        yield f"unknown roles {unknown}"
    if "system" in roles[1:]:
        yield "a system message that is not the first"
    said = [role for role in roles if role != "system"]
    if said and said[0] != "user":
        yield f"the conversation begins with {said[0]}"
    for place, (before, after) in enumerate(pairwise(roles)):
        if before == after and before in {"user", "assistant"}:
            yield f"two {before} messages in a row at {place}"
        if before == "tool" and after == "user" and not user_after_tool:
            yield f"a user message right after a tool's at {place}"


def _contents(messages: list[dict[str, Any]]) -> Iterator[str]:
    for place, message in enumerate(messages):
        content, calls = message.get("content"), message.get("tool_calls") or []
        if content is None or content == "":
            if not calls:
                yield f"nothing in message {place} ({message['role']})"
        elif not (_said(content) if isinstance(content, str) else content and all(_fits(p, message) for p in content)):
            yield f"blank or odd content in message {place}"
        for call in calls:
            if message["role"] != "assistant":
                yield f"a call in message {place}, which is a {message['role']}'s"
            if not NAME.fullmatch(call["function"]["name"]):
                yield f"a tool called {call['function']['name']!r} in message {place}"
            try:
                if not isinstance(json.loads(call["function"]["arguments"]), dict):
                    yield f"arguments in message {place} that are no object"
            except ValueError:
                yield f"arguments in message {place} that are no JSON"


def _said(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _fits(part: dict[str, Any], message: dict[str, Any]) -> bool:
    if part["type"] == "image_url":
        return message["role"] == "user" and bool(part["image_url"]["url"])
    return part["type"] == "text" and _said(part["text"])


def _pairing(messages: list[dict[str, Any]]) -> Iterator[str]:
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield f"a result without its call at {place}"
            open_calls.discard(message.get("tool_call_id", ""))
            continue
        if open_calls:
            yield f"calls without a result before {place}: {sorted(open_calls)}"
        ids = [call["id"] for call in message.get("tool_calls") or []]
        if len(set(ids)) != len(ids):
            yield f"one id for two calls at {place}"
        open_calls = set(ids)
    if open_calls:
        yield f"calls without a result at the end: {sorted(open_calls)}"
