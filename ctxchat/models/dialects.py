"""What each family of providers wants beyond OpenAI's form of a conversation, as pure functions over its messages.

Messages come from core.openai.wire: valid groups, neighbours of one role merged. Knows no model's name: that is `family`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

Wire = dict[str, Any]

GO_ON = "[continue]"
"""What stands in where a provider insists on a message that nobody wrote."""

NOTED = "[results noted]"

_BEHIND = "[the image is in the next message]"
_OF_RESULTS = "[images of the results above, in their order]"

_PROVIDERS_OWN = ("cache_control", "thinking_blocks", "reasoning_content")
_NOTHING_THOUGHT = " "
"""The shortest thought that is taken for one."""

_KINDS = {"user": {"text", "image_url", "input_audio", "file"}, "tool": {"text", "image_url"}}
_EPHEMERAL = {"type": "ephemeral"}


class Dialect(msgspec.Struct, frozen=True):
    """The rules of one family. `id_length` 0: any up to `id_max`. `reasoning` is the field thoughts go back in, empty for none;
    `always_thinks`: no reply may be without it. `user_after_tool` False: an assistant message must follow results. `markers`:
    prompt-cache marks are understood. `result_images`: results may hold images; else these come in a message behind them."""

    name: str
    id_pattern: str = r"[a-zA-Z0-9_-]+"
    id_max: int = 40
    id_length: int = 0
    keep_ids: bool = False
    user_first: bool = True
    user_last: bool = True
    user_after_tool: bool = True
    reasoning: str = ""
    always_thinks: bool = False
    markers: bool = False
    result_images: bool = False


OPENAI = Dialect("openai", user_first=False, user_last=False)
ANTHROPIC = Dialect("anthropic", id_max=64, reasoning="thinking_blocks", markers=True, result_images=True)
MISTRAL = Dialect("mistral", id_pattern=r"[a-zA-Z0-9]+", id_length=9, user_after_tool=False)
GEMINI = Dialect("gemini", keep_ids=True)  # litellm keeps thought signatures inside the ids
DEEPSEEK = Dialect("deepseek", reasoning="reasoning_content", always_thinks=True)
THINKS_ALOUD = Dialect("thinks-aloud", reasoning="reasoning_content")
LOCAL = Dialect("local")
OPENROUTER = Dialect("openrouter", user_first=False, user_last=False, reasoning="reasoning_details")
OPENROUTER_CLAUDE = msgspec.structs.replace(OPENROUTER, name="openrouter-claude", markers=True)
"""OpenAI's form with Anthropic's cache marks, which litellm moves into the parts of a message, where OpenRouter wants them."""

_CLAUDE = re.compile(r"claude", re.I)
_MISTRAL = re.compile(r"mistral|mixtral|ministral|magistral|devstral|codestral|pixtral", re.I)
_WANTS_THOUGHTS = re.compile(r"deepseek|kimi|moonshot", re.I)
_OPENAI_LIKE = {"openai", "azure", "groq", "xai", "cerebras", "github", "github_copilot"}


def family(prefix: str, model: str, *, own_server: bool) -> Dialect:
    """The dialect of a model: by litellm's provider prefix, by the model's name on servers that use its own chat template."""
    if prefix == "anthropic" or (prefix in {"bedrock", "vertex_ai"} and _CLAUDE.search(model)):
        return ANTHROPIC
    if prefix == "openrouter" and not _MISTRAL.search(model):
        return OPENROUTER_CLAUDE if _CLAUDE.search(model) else OPENROUTER
    if prefix in {"gemini", "vertex_ai"}:
        return GEMINI
    if prefix == "mistral" or _MISTRAL.search(model):
        return MISTRAL
    if prefix in {"deepseek", "moonshot"}:
        return DEEPSEEK
    if own_server and _WANTS_THOUGHTS.search(model):
        return THINKS_ALOUD
    return OPENAI if prefix in _OPENAI_LIKE and not own_server else LOCAL


def shape(messages: Sequence[Wire], dialect: Dialect, *, keep_reasoning: bool = False) -> list[Wire]:
    """The same conversation as this family takes it. The messages handed in are not changed."""
    shaped = [_known(_own(message, dialect, keep_reasoning)) for message in messages]
    if not dialect.result_images:
        shaped = list(_images_behind(shaped))
    shaped = [message for message in map(_spoken, shaped) if message is not None]
    shaped = _renamed(shaped, dialect)
    shaped = list(_in_turn(shaped, dialect))
    if shaped and shaped[-1]["role"] == "assistant":
        if dialect.user_last:
            shaped.append({"role": "user", "content": GO_ON})
        else:
            shaped[-1] = _trimmed(shaped[-1])
    return shaped


def mark(messages: Sequence[Wire]) -> list[Wire]:
    """Prompt-cache marks on the system prompt and on the last message, for families that take them."""
    last = len(messages) - 1
    return [_marked(m) if i == last or m["role"] == "system" else m for i, m in enumerate(messages)]


def may_think(messages: Sequence[Wire]) -> bool:
    """False when thinking must be off for this request: a round is under way whose signed thoughts are not there."""
    since = [m for m in messages[_last_user(messages) + 1 :] if m["role"] == "assistant" and m.get("tool_calls")]
    return all(message.get("thinking_blocks") for message in since)


def _last_user(messages: Sequence[Wire]) -> int:
    return max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)


def _own(message: Wire, dialect: Dialect, keep: bool) -> Wire:
    """Without the fields only other families know, and with its thoughts where this one takes them."""
    thoughts = _thoughts(message, dialect) if keep and dialect.reasoning else None
    if not thoughts and dialect.always_thinks and message["role"] == "assistant":
        thoughts = _NOTHING_THOUGHT
    marks = {"cache_control"} if dialect.markers else set()
    message = {k: v for k, v in message.items() if k not in _PROVIDERS_OWN or k in marks}
    if thoughts:
        message[dialect.reasoning] = thoughts
    if not marks and isinstance(message.get("content"), list):
        message["content"] = [{k: v for k, v in part.items() if k != "cache_control"} for part in message["content"]]
    return message


def _thoughts(message: Wire, dialect: Dialect) -> object:
    """What goes back of a reply's thoughts: the text, or the blocks this family signed. A session may have changed models, and
    one provider's blocks are an error for another."""
    if dialect.reasoning == "reasoning_content":
        return message.get("reasoning_content")
    theirs = dialect.reasoning == "reasoning_details"
    blocks = message.get("thinking_blocks") or []
    return [block for block in blocks if str(block.get("type")).startswith("reasoning.") is theirs]


def _known(message: Wire) -> Wire:
    """With parts of a kind that nobody takes there (in imported histories) named instead of sent."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kinds = _KINDS.get(message["role"], {"text"})
    return {**message, "content": [part if part.get("type") in kinds else _named(part) for part in content]}


def _images_behind(messages: Iterable[Wire]) -> Iterator[Wire]:
    """Images among results as a message of their own behind them, since in most forms a result is words alone."""
    held: list[Wire] = []
    for message in messages:
        content = message.get("content")
        if held and message["role"] != "tool":
            yield {"role": "user", "content": held}
            held = []
        parts = content if message["role"] == "tool" and isinstance(content, list) else []
        if images := [part for part in parts if part.get("type") == "image_url"]:
            held += [*([] if held else [{"type": "text", "text": _OF_RESULTS}]), *images]
            words = [part for part in parts if part.get("type") != "image_url"]
            message = {**message, "content": [*words, {"type": "text", "text": _BEHIND}]}
        yield message
    if held:
        yield {"role": "user", "content": held}


def _named(part: Wire) -> Wire:
    words = part.get(str(part.get("type")))  # a refusal holds its words under its own name
    return {"type": "text", "text": words if isinstance(words, str) else f"[{part.get('type', 'part')}: not shown]"}


def _spoken(message: Wire) -> Wire | None:
    """Without empty texts, which several refuse; None when nothing is left to say."""
    content = message.get("content")
    if isinstance(content, list):
        content = [p for p in content if p.get("type") != "text" or str(p.get("text", "")).strip()]
    elif not str(content or "").strip():
        content = None
    if message["role"] == "tool":
        return {**message, "content": content or "[no output]"}
    if content or message.get("tool_calls"):
        return {**message, "content": content or None}
    return None


def _in_turn(messages: Sequence[Wire], dialect: Dialect) -> Iterator[Wire]:
    held: Wire | None = None
    before = "system"
    for message in messages:
        role = message["role"]
        if held and role == "user" and before == "user":
            held, before = _joined(held, message), role
            continue
        if held:
            yield held
        if role == "assistant" and before in {"system", "assistant"} and dialect.user_first:
            yield {"role": "user", "content": GO_ON}
        elif role == "user" and before == "tool" and not dialect.user_after_tool:
            yield {"role": "assistant", "content": NOTED}
        held, before = message, role
    if held:
        yield held


def _joined(first: Wire, second: Wire) -> Wire:
    """Two messages of one role as one."""
    a, b = first["content"], second["content"]
    if isinstance(a, str) and isinstance(b, str):
        return {**first, "content": f"{a}\n\n{b}"}
    return {**first, "content": [*_parts(a), *_parts(b)]}


def _parts(content: Any) -> list[Wire]:
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _renamed(messages: Sequence[Wire], dialect: Dialect) -> list[Wire]:
    """Call ids in the family's shape and each once: ids are paired per occurrence, in the round they belong to."""
    if dialect.keep_ids:
        return list(messages)
    used: set[str] = set()
    open_calls: list[tuple[str, str]] = []
    renamed: list[Wire] = []
    for message in messages:
        if calls := message.get("tool_calls"):
            fresh = [(call["id"], _fit(call["id"], dialect, used)) for call in calls]
            message = {**message, "tool_calls": [{**c, "id": new} for c, (_, new) in zip(calls, fresh, strict=True)]}
            open_calls = fresh
        elif message["role"] == "tool":
            pair = next((p for p in open_calls if p[0] == message["tool_call_id"]), None)
            if pair:
                open_calls.remove(pair)
                message = {**message, "tool_call_id": pair[1]}
        renamed.append(message)
    return renamed


def _fit(id: str, dialect: Dialect, used: set[str]) -> str:
    """The id itself where it fits and is new, else one made from it; always the same for the same conversation."""
    length = dialect.id_length
    fits = re.fullmatch(dialect.id_pattern, id) and (len(id) == length if length else len(id) <= dialect.id_max)
    new, turn = id, 0
    while not fits or new in used:
        digest = hashlib.blake2b(f"{id}\0{turn}".encode("utf-8", "surrogatepass")).hexdigest()
        new, turn, fits = digest[: length or 24], turn + 1, True
    used.add(new)
    return new


def _trimmed(message: Wire) -> Wire:
    content = message.get("content")
    return {**message, "content": content.rstrip()} if isinstance(content, str) else message


def _marked(message: Wire) -> Wire:
    content = message.get("content")
    if message["role"] == "tool" or not content:
        return {**message, "cache_control": _EPHEMERAL}
    parts = _parts(content)
    return {**message, "content": [*parts[:-1], {**parts[-1], "cache_control": _EPHEMERAL}]}
