"""What each family of providers wants beyond OpenAI's form of a conversation, as pure functions over the items of a view.

What is sent for an item depends on it and on what stands before it, never on what comes later: so a conversation that goes on is
sent with the same bytes as before, and something at their end. Knows no model's name: that is `family`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

from ctxchat.core.messages import Message, Received
from ctxchat.core.openai import Wire, joined, to_sent
from ctxchat.core.view import Item
from ctxchat.models import received

GO_ON = "[continue]"
"""What the person is said to say where a provider insists on a message of theirs that nobody wrote."""

NOTED = "[noted]"
"""What the model is said to say between messages of the person that were sent apart, where a provider insists on taking turns."""

_BEHIND = "[the image is in the next message]"
_OF_RESULTS = "[images of the results above, in their order]"

_OF_NO_TURN = -1
"""The turn of a message that is sent as soon as results are, whatever comes behind it."""

_NOTHING_THOUGHT = " "
"""The shortest thought that is taken for one."""

_KINDS = {"user": {"text", "image_url", "input_audio", "file"}, "tool": {"text", "image_url"}}

Thoughts = Literal["", "blocks", "items", "reasoning_details", "reasoning_content", "as received", "in text"]
"""In which form a reply's thoughts go back: not at all; the whole reply as Anthropic's blocks or as OpenAI's items; as
OpenRouter's blocks; as text in that field; in the field they came in, or, in text, before the answer where they came there."""


class Dialect(msgspec.Struct, frozen=True):
    """The rules of one family. `id_length` 0: any up to `id_max`. `wants_thoughts`: no reply with calls may be without one.
    `user_first`: an assistant message never comes first. `alternates`: the person and the model take turns. `user_after_tool`
    False: an assistant message must follow results. `markers`: prompt-cache marks are understood, in the parts of a
    message. `result_images`: results may hold images; else these come in a message behind them. `refused_images`: kinds that
    are not sent. `signs_text`: what the model signed its text with goes back, without its thoughts."""

    name: str
    id_pattern: str = r"[a-zA-Z0-9_-]+"
    id_max: int = 40
    id_length: int = 0
    keep_ids: bool = False
    user_first: bool = True
    alternates: bool = True
    user_after_tool: bool = True
    reasoning: Thoughts = ""
    wants_thoughts: bool = False
    markers: bool = False
    refused_images: frozenset[str] = frozenset()
    result_images: bool = False
    signs_text: bool = False


OPENAI = Dialect("openai", user_first=False, alternates=False)
RESPONSES = Dialect("responses", id_max=64, user_first=False, alternates=False, reasoning="items")
ANTHROPIC = Dialect("anthropic", id_max=64, alternates=False, reasoning="blocks", markers=True, result_images=True)
MISTRAL = Dialect("mistral", id_pattern=r"[a-zA-Z0-9]+", id_length=9, user_after_tool=False)
GEMINI = Dialect(
    "gemini", keep_ids=True, signs_text=True, refused_images=frozenset({"gif"})
)  # litellm keeps the signatures of calls inside the ids
DEEPSEEK = Dialect("deepseek", alternates=False, reasoning="reasoning_content", wants_thoughts=True)
THINKS_ALOUD = Dialect("thinks-aloud", reasoning="reasoning_content")
DASHSCOPE = Dialect("dashscope", alternates=False, reasoning="reasoning_content", markers=True)
MINIMAX = Dialect("minimax", alternates=False, reasoning="in text")
LOCAL = Dialect("local", reasoning="as received")
HOSTED = Dialect("hosted")
OPENROUTER = Dialect("openrouter", user_first=False, alternates=False, reasoning="reasoning_details")
OPENROUTER_MARKED = msgspec.structs.replace(OPENROUTER, name="openrouter-marked", markers=True)
OPENROUTER_CLAUDE = msgspec.structs.replace(OPENROUTER_MARKED, name="openrouter-claude")
"""OpenAI's form with Anthropic's cache marks in the parts of a message."""

_CLAUDE = re.compile(r"claude", re.I)
_MISTRAL = re.compile(r"mistral|mixtral|ministral|magistral|devstral|codestral|pixtral", re.I)
_WANTS_THOUGHTS = re.compile(r"deepseek|kimi|moonshot", re.I)
_QWEN = re.compile(r"qwen", re.I)
_OF_ITS_OWN = {
    "deepseek": DEEPSEEK,
    "moonshot": DEEPSEEK,
    "zai": THINKS_ALOUD,
    "dashscope": DASHSCOPE,
    "minimax": MINIMAX,
}
"""Providers with one rule for all their models, by litellm's prefix."""

_ANYBODYS = {"openai", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy", "ollama", "ollama_chat"}
"""Prefixes of servers of one's own, which use a model's own chat template."""

_OPENAI_LIKE = {"openai", "azure", "groq", "xai", "cerebras", "github", "github_copilot"}


def family(prefix: str, model: str, *, own_server: bool) -> Dialect:
    """The dialect of a model: by litellm's provider prefix, by the model's name on servers that use its own chat template."""
    if prefix == "anthropic" or (prefix in {"bedrock", "vertex_ai"} and _CLAUDE.search(model)):
        return ANTHROPIC
    if prefix == "openrouter" and not _MISTRAL.search(model):
        marked = OPENROUTER_MARKED if _QWEN.search(model) else OPENROUTER
        return OPENROUTER_CLAUDE if _CLAUDE.search(model) else marked
    if prefix in {"gemini", "vertex_ai"}:
        return GEMINI
    if prefix == "mistral" or _MISTRAL.search(model):
        return MISTRAL
    if prefix in _OF_ITS_OWN:
        return _OF_ITS_OWN[prefix]
    if own_server and prefix in _ANYBODYS:
        return THINKS_ALOUD if _WANTS_THOUGHTS.search(model) else LOCAL
    return OPENAI if prefix in _OPENAI_LIKE else HOSTED


def shape(
    items: Sequence[Item],
    dialect: Dialect,
    *,
    keep_reasoning: bool = False,
    model: str = "",
    lasting: bool | None = None,
) -> list[Wire]:
    """The conversation as this family takes it. `model` (litellm's name) is who is asked: what another one signed is not for it.
    `lasting` None: without cache marks, else whether they shall last an hour. A reply that goes back as it came has `blocks`, in
    its provider's form, beside its text and calls."""
    thoughts = dialect.reasoning if keep_reasoning else ""
    spoken = _headed([said for item in items if (said := _said_message(item, dialect, thoughts, model)) is not None])
    if not dialect.result_images:
        spoken = list(_images_behind(spoken))
    turned = list(_in_turn(_renamed(spoken, dialect), dialect))
    if dialect.markers and lasting is not None:
        turned = _marked(turned, {"type": "ephemeral", "ttl": "1h"} if lasting else {"type": "ephemeral"})
    return [said.message for said in turned]


def takes_back(reply: Message, dialect: Dialect, model: str) -> bool:
    """True where what was thought for this reply is sent to that model of this family, and read there."""
    came = reply.reasoning.received if reply.reasoning else None
    return bool(_thoughts(reply, {}, dialect.reasoning, model)) and (came is None or received.understood(came, model))


class _OutgoingMessage(msgspec.Struct, frozen=True):
    """A message on its way. `turn` None: it belongs to none (the head, a summary) and is first sent with what stands beside it.
    `passing`: it is not sent again."""

    message: Wire
    turn: int | None = None
    passing: bool = False

    @property
    def role(self) -> str:
        return self.message["role"]

    def but(self, **fields: Any) -> _OutgoingMessage:
        """With other fields in its message."""
        return msgspec.structs.replace(self, message={**self.message, **fields})


def may_think(messages: Sequence[Wire]) -> bool:
    """False when thinking on a budget must be off for this request: a round is under way whose signed thoughts are not there."""
    since = [m for m in messages[_last_user(messages) + 1 :] if m["role"] == "assistant" and m.get("tool_calls")]
    return all(message.get("thinking_blocks") or message.get("blocks") for message in since)


def _last_user(messages: Sequence[Wire]) -> int:
    return max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)


def _said_message(item: Item, dialect: Dialect, thoughts: Thoughts, model: str) -> _OutgoingMessage | None:
    """An item as a message with the thoughts this family takes; None where nothing of it is left to say."""
    sent = _spoken(_name_unknown_parts(to_sent(item.message)))
    if sent is None:
        return None
    if item.message.role == "assistant":
        sent |= _thoughts(item.message, sent, thoughts, model)
        if dialect.signs_text:
            sent |= _text_signature(item.message, model)
        if dialect.wants_thoughts and sent.get("tool_calls") and "reasoning_content" not in sent:
            sent["reasoning_content"] = _NOTHING_THOUGHT
    results_too = dialect.reasoning != "blocks"  # Anthropic's have a place for a mark of their own
    if dialect.markers and isinstance(sent["content"], str) and (results_too or sent["role"] != "tool"):
        sent["content"] = [{"type": "text", "text": sent["content"]}]  # a mark may come and go there
    alone = not item.group or item.kind == "summary"
    return _OutgoingMessage(sent, None if alone else item.turn, passing=item.section == "injected" and not item.group)


def _thoughts(message: Message, sent: Wire, thoughts: Thoughts, model: str) -> Wire:
    """What goes back of a reply's thoughts, as fields of its message. A session may have changed models, and one provider's
    blocks are an error for another."""
    reasoning = message.reasoning
    if reasoning is None or not thoughts:
        return {}
    came = reasoning.received
    match thoughts:
        case "blocks" | "items":
            if came is None:
                signed = [b for b in _old(reasoning.blocks) if not str(b.get("type")).startswith("reasoning.")]
                return {"thinking_blocks": signed} if signed and thoughts == "blocks" else {}
            form = "messages" if thoughts == "blocks" else "responses"
            blocks = (
                received.blocks_to_send(came, message)
                if came.form == form and received.can_read_thinking(came, model)
                else None
            )
            return {"blocks": blocks} if blocks else {}
        case "reasoning_details":
            details = _fields(came).get(thoughts) if came and came.model == model else None
            if came is None:
                details = [b for b in _old(reasoning.blocks) if str(b.get("type")).startswith("reasoning.")]
            return {thoughts: details} if details else {}
        case "as received" | "in text":
            kept = {name: reasoning.text if value is None else value for name, value in _fields(came).items()}
            if not kept and thoughts == "in text" and reasoning.text:
                return {"content": f"<think>\n{reasoning.text}\n</think>\n\n{sent.get('content') or ''}"}
            return {name: value for name, value in kept.items() if value}
        case _:
            return {thoughts: reasoning.text} if reasoning.text else {}


def _text_signature(message: Message, model: str) -> Wire:
    """What Gemini signed a text with, as litellm wants it. Another model cannot read it."""
    came = message.reasoning.received if message.reasoning else None
    if came is None or came.form != "signature" or came.model != model:
        return {}
    return {"provider_specific_fields": {"thought_signatures": msgspec.json.decode(came.blocks)}}


def _fields(came: Received | None) -> Wire:
    """The fields of the chat form that held thoughts."""
    return cast(Wire, msgspec.json.decode(came.blocks)) if came and came.form == "chat" else {}


def _old(blocks: str) -> list[Wire]:
    return msgspec.json.decode(blocks) if blocks else []


def _name_unknown_parts(message: Wire) -> Wire:
    """With parts of a kind that nobody takes there (in imported histories) named instead of sent."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kinds = _KINDS.get(message["role"], {"text"})
    return {**message, "content": [part if part.get("type") in kinds else _typed_part(part) for part in content]}


def _images_behind(messages: Iterable[_OutgoingMessage]) -> Iterator[_OutgoingMessage]:
    """Images among results as a message of their own behind them, since in most forms a result is words alone."""
    held: list[Wire] = []
    for said in messages:
        content = said.message.get("content")
        if held and said.role != "tool":
            yield _OutgoingMessage({"role": "user", "content": held}, _OF_NO_TURN)
            held = []
        parts = content if said.role == "tool" and isinstance(content, list) else []
        if images := [part for part in parts if part.get("type") == "image_url"]:
            held += [*([] if held else [{"type": "text", "text": _OF_RESULTS}]), *images]
            words = [part for part in parts if part.get("type") != "image_url"]
            said = said.but(content=[*words, {"type": "text", "text": _BEHIND}])
        yield said
    if held:
        yield _OutgoingMessage({"role": "user", "content": held}, _OF_NO_TURN)


def _typed_part(part: Wire) -> Wire:
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


def _headed(messages: Sequence[_OutgoingMessage]) -> list[_OutgoingMessage]:
    """System messages as one: they are the head, and stand together."""
    head = [said for said in messages if said.role == "system"]
    if len(head) < 2:
        return list(messages)
    content: Any = head[0].message["content"]
    for said in head[1:]:
        content = joined(content, said.message["content"])
    return [head[0].but(content=content), *(said for said in messages if said.role != "system")]


def _in_turn(messages: Sequence[_OutgoingMessage], dialect: Dialect) -> Iterator[_OutgoingMessage]:
    """With what a provider insists on between them. The person's messages become one only where they were first sent together."""
    held: _OutgoingMessage | None = None
    before = "system"
    for said in messages:
        role = said.role
        if held and role == before == "user" and dialect.alternates:
            if None in {held.turn, said.turn} or held.turn == said.turn:
                turn = said.turn if held.turn is None else held.turn
                held = msgspec.structs.replace(
                    held.but(content=joined(held.message["content"], said.message["content"])), turn=turn
                )
                continue
            yield held
            held, before = _OutgoingMessage({"role": "assistant", "content": NOTED}), "assistant"
        if held:
            yield held
        if role == "assistant" and (
            (before == "system" and dialect.user_first) or (before == "assistant" and dialect.alternates)
        ):
            yield _OutgoingMessage({"role": "user", "content": _content(GO_ON, dialect)})
        elif role == "user" and before == "tool" and not dialect.user_after_tool:
            yield _OutgoingMessage({"role": "assistant", "content": NOTED})
        held, before = said, role
    if held:
        yield held


def _content(text: str, dialect: Dialect) -> str | list[Wire]:
    return [{"type": "text", "text": text}] if dialect.markers else text


def _marked(messages: Sequence[_OutgoingMessage], mark: Wire) -> list[_OutgoingMessage]:
    """Prompt-cache marks: on the head, on the last message that will be sent again, and where the last two requests ended
    (before the newest replies). So a mark stands on the very place that was written last, however many blocks came since."""
    stable = len(messages)
    while stable and messages[stable - 1].passing:
        stable -= 1
    replies = [n for n, said in enumerate(messages[:stable]) if said.role == "assistant"]
    ends = [n - 1 for n in replies if n and messages[n - 1].role in {"user", "tool"}]
    places = {n for n, said in enumerate(messages) if said.role == "system"} | {stable - 1, *ends[-2:]}
    return [_with_mark(said, mark) if n in places else said for n, said in enumerate(messages)]


def _with_mark(said: _OutgoingMessage, mark: Wire) -> _OutgoingMessage:
    content = said.message.get("content")
    if isinstance(content, list) and content and said.role != "tool":
        return said.but(content=[*content[:-1], {**content[-1], "cache_control": mark}])
    return said.but(cache_control=mark)


def _renamed(messages: Sequence[_OutgoingMessage], dialect: Dialect) -> list[_OutgoingMessage]:
    """Call ids in the family's shape and each once: ids are paired per occurrence, in the round they belong to."""
    if dialect.keep_ids:
        return list(messages)
    used: set[str] = set()
    open_calls: list[tuple[str, str]] = []
    renamed: list[_OutgoingMessage] = []
    for said in messages:
        if calls := said.message.get("tool_calls"):
            fresh = [(call["id"], _fitting_id(call["id"], dialect, used)) for call in calls]
            said = said.but(tool_calls=[{**c, "id": new} for c, (_, new) in zip(calls, fresh, strict=True)])
            open_calls = fresh
        elif said.role == "tool":
            pair = next((p for p in open_calls if p[0] == said.message["tool_call_id"]), None)
            if pair:
                open_calls.remove(pair)
                said = said.but(tool_call_id=pair[1])
        renamed.append(said)
    return renamed


def _fitting_id(id: str, dialect: Dialect, used: set[str]) -> str:
    """The id itself where it fits and is new, else one made from it; always the same for the same conversation."""
    length = dialect.id_length
    fits = re.fullmatch(dialect.id_pattern, id) and (len(id) == length if length else len(id) <= dialect.id_max)
    new, turn = id, 0
    while not fits or new in used:
        digest = hashlib.blake2b(f"{id}\0{turn}".encode("utf-8", "surrogatepass")).hexdigest()
        new, turn, fits = digest[: length or 24], turn + 1, True
    used.add(new)
    return new
