"""Shapes a conversation for a family of providers: a `Dialect` holds the rules that the family has beyond OpenAI's format,
`family` finds a model's dialect, and `shape` applies it to the items (messages) of a view. Pure.

What is sent for an item depends on it and on the items before it, never on later ones: so each request begins with the same bytes
as the one before, which the provider has cached.

The order of `shape`: each item becomes a message with the reasoning that the family accepts (`_outgoing`); system messages are
joined (`_headed`), images moved out of results (`_images_behind`), call ids fitted (`_with_fitting_ids`), messages inserted where
roles must alternate (`_in_turn`), and cache marks set (`_marked`).
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
"""The text of a user message that is inserted where a provider requires one and the person wrote none."""

NOTED = "[noted]"
"""The text of an assistant message that is inserted between user messages, where a provider requires that roles alternate."""

_BEHIND = "[the image is in the next message]"
_OF_RESULTS = "[images of the results above, in their order]"

_OF_NO_TURN = -1
"""The turn of a message that belongs to the results before it: it is joined with no message of the person."""

_NOTHING_THOUGHT = " "
"""The shortest reasoning that is accepted where a provider requires some and there was none."""

_KINDS = {"user": {"text", "image_url", "input_audio", "file"}, "tool": {"text", "image_url"}}
"""The types of parts that providers accept in messages of a role; in other roles only text."""

Thoughts = Literal["", "blocks", "items", "reasoning_details", "reasoning_content", "as received", "in text"]
"""The form in which a reply's reasoning is sent back: not at all (empty); the whole reply as Anthropic's `blocks` or OpenAI's
`items`; as OpenRouter's `reasoning_details`; as text in the field `reasoning_content`; in the field in which it came (`as
received`); or in front of the answer, as text, where it came in no field (`in text`)."""


class Dialect(msgspec.Struct, frozen=True):
    """The rules of one family.

    Ids of calls match `id_pattern` and have `id_length` characters, or with 0 at most `id_max`; `keep_ids`: they are sent
    unchanged. `user_first`: the first message must not be the assistant's. `alternates`: user and assistant must alternate.
    `user_after_tool` false: only an assistant message may follow results. `reasoning` is the form in which reasoning is sent
    back; `wants_thoughts`: every reply with calls needs some; `signs_text`: a text's signature is sent back without reasoning.
    `markers`: cache marks are understood, in the parts of a message. `result_images`: results may hold images, which otherwise
    come in a message of their own behind them; `refused_images` are image formats that are not sent.
    """

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
)  # litellm puts the signatures of calls into the ids
DEEPSEEK = Dialect("deepseek", alternates=False, reasoning="reasoning_content", wants_thoughts=True)
THINKS_ALOUD = Dialect("thinks-aloud", reasoning="reasoning_content")
DASHSCOPE = Dialect("dashscope", alternates=False, reasoning="reasoning_content", markers=True)
MINIMAX = Dialect("minimax", alternates=False, reasoning="in text")
LOCAL = Dialect("local", reasoning="as received")
HOSTED = Dialect("hosted")
OPENROUTER = Dialect("openrouter", user_first=False, alternates=False, reasoning="reasoning_details")
OPENROUTER_MARKED = msgspec.structs.replace(OPENROUTER, name="openrouter-marked", markers=True)
OPENROUTER_CLAUDE = msgspec.structs.replace(OPENROUTER_MARKED, name="openrouter-claude")
"""OpenRouter for a Claude: Anthropic's cache marks in the parts of a message."""

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
"""Dialects of providers that have one for all their models, by litellm's prefix."""

_ANYBODYS = {"openai", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy", "ollama", "ollama_chat"}
"""Prefixes under which local servers are used; these apply the model's own chat template."""

_OPENAI_LIKE = {"openai", "azure", "groq", "xai", "cerebras", "github", "github_copilot"}


def family(prefix: str, model: str, *, own_server: bool) -> Dialect:
    """The dialect of a model, by litellm's prefix of its provider, or by its name on a server that applies its own chat template.
    `own_server`: it is served at an address of the person's own."""
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
    """The messages of a request, shaped for a family.

    `keep_reasoning`: reasoning is sent back, in the family's form. `model` is litellm's name of the model that is asked, since
    signed reasoning of another one is not for it. `lasting` says whether cache marks last an hour; None: no marks. A reply that
    is sent back as it came has a field `blocks`, in its provider's format, beside its text and calls.
    """
    thoughts = dialect.reasoning if keep_reasoning else ""
    outgoing = _headed([sent for item in items if (sent := _outgoing(item, dialect, thoughts, model)) is not None])
    if not dialect.result_images:
        outgoing = list(_images_behind(outgoing))
    outgoing = list(_in_turn(_with_fitting_ids(outgoing, dialect), dialect))
    if dialect.markers and lasting is not None:
        outgoing = _marked(outgoing, {"type": "ephemeral", "ttl": "1h"} if lasting else {"type": "ephemeral"})
    return [sent.message for sent in outgoing]


def takes_back(reply: Message, dialect: Dialect, model: str) -> bool:
    """True where a reply's reasoning is sent back to this model of this family, and the model can read it."""
    came = reply.reasoning.received if reply.reasoning else None
    return bool(_thoughts(reply, {}, dialect.reasoning, model)) and (came is None or received.understood(came, model))


class _OutgoingMessage(msgspec.Struct, frozen=True):
    """A message of the request, with the turn of its item. `turn` None: it belongs to no turn (the head, a summary), and was
    first sent together with the messages beside it. `passing`: it is part of this request only."""

    message: Wire
    turn: int | None = None
    passing: bool = False

    @property
    def role(self) -> str:
        return self.message["role"]

    def but(self, **fields: Any) -> _OutgoingMessage:
        """The same with other fields in its message."""
        return msgspec.structs.replace(self, message={**self.message, **fields})


def may_think(messages: Sequence[Wire]) -> bool:
    """False where thinking on a budget must be off for a request to Anthropic: a round of calls is under way whose signed
    thinking is not in it."""
    since = [m for m in messages[_last_user(messages) + 1 :] if m["role"] == "assistant" and m.get("tool_calls")]
    return all(message.get("thinking_blocks") or message.get("blocks") for message in since)


def _last_user(messages: Sequence[Wire]) -> int:
    return max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)


def _outgoing(item: Item, dialect: Dialect, thoughts: Thoughts, model: str) -> _OutgoingMessage | None:
    """An item as a message with the reasoning that this family accepts; None where it has no content left."""
    sent = _without_empty(_name_unknown_parts(to_sent(item.message)))
    if sent is None:
        return None
    if item.message.role == "assistant":
        sent |= _thoughts(item.message, sent, thoughts, model)
        if dialect.signs_text:
            sent |= _text_signature(item.message, model)
        if dialect.wants_thoughts and sent.get("tool_calls") and "reasoning_content" not in sent:
            sent["reasoning_content"] = _NOTHING_THOUGHT
    results_too = dialect.reasoning != "blocks"  # Anthropic's results can be marked themselves
    if dialect.markers and isinstance(sent["content"], str) and (results_too or sent["role"] != "tool"):
        sent["content"] = [
            {"type": "text", "text": sent["content"]}
        ]  # always parts, so that a mark changes no other byte
    alone = not item.group or item.kind == "summary"
    return _OutgoingMessage(sent, None if alone else item.turn, passing=item.section == "injected" and not item.group)


def _thoughts(message: Message, sent: Wire, thoughts: Thoughts, model: str) -> Wire:
    """The fields of a reply's message that send its reasoning back, in the form `thoughts`; empty where there is none for this
    model. A session may have changed models, and one provider's blocks are an error for another."""
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
    """The field with Gemini's signature of a reply's text, as litellm expects it; empty for another model's reply."""
    came = message.reasoning.received if message.reasoning else None
    if came is None or came.form != "signature" or came.model != model:
        return {}
    return {"provider_specific_fields": {"thought_signatures": msgspec.json.decode(came.blocks)}}


def _fields(came: Received | None) -> Wire:
    """The fields of the chat format in which a reply's reasoning came; a value of None stands for the reasoning's text."""
    return cast(Wire, msgspec.json.decode(came.blocks)) if came and came.form == "chat" else {}


def _old(blocks: str) -> list[Wire]:
    """The blocks of reasoning that older versions stored."""
    return msgspec.json.decode(blocks) if blocks else []


def _name_unknown_parts(message: Wire) -> Wire:
    """The message with a short text in place of parts that no provider accepts in its role; imported histories have such
    parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kinds = _KINDS.get(message["role"], {"text"})
    return {**message, "content": [part if part.get("type") in kinds else _typed_part(part) for part in content]}


def _images_behind(messages: Iterable[_OutgoingMessage]) -> Iterator[_OutgoingMessage]:
    """The messages with the images of results moved to a user message behind them, since in most formats a result is text
    only."""
    held: list[Wire] = []
    for sent in messages:
        content = sent.message.get("content")
        if held and sent.role != "tool":
            yield _OutgoingMessage({"role": "user", "content": held}, _OF_NO_TURN)
            held = []
        parts = content if sent.role == "tool" and isinstance(content, list) else []
        if images := [part for part in parts if part.get("type") == "image_url"]:
            held += [*([] if held else [{"type": "text", "text": _OF_RESULTS}]), *images]
            texts = [part for part in parts if part.get("type") != "image_url"]
            sent = sent.but(content=[*texts, {"type": "text", "text": _BEHIND}])
        yield sent
    if held:
        yield _OutgoingMessage({"role": "user", "content": held}, _OF_NO_TURN)


def _typed_part(part: Wire) -> Wire:
    """A part that cannot be sent, as text: its own text where it has one, else its type."""
    text = part.get(str(part.get("type")))  # a refusal has its text in a field named `refusal`
    return {"type": "text", "text": text if isinstance(text, str) else f"[{part.get('type', 'part')}: not shown]"}


def _without_empty(message: Wire) -> Wire | None:
    """The message without empty texts, which several providers refuse; None where nothing is left of it."""
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
    """The messages with all system messages joined into one at the beginning."""
    head = [sent for sent in messages if sent.role == "system"]
    if len(head) < 2:
        return list(messages)
    content: Any = head[0].message["content"]
    for sent in head[1:]:
        content = joined(content, sent.message["content"])
    return [head[0].but(content=content), *(sent for sent in messages if sent.role != "system")]


def _in_turn(messages: Sequence[_OutgoingMessage], dialect: Dialect) -> Iterator[_OutgoingMessage]:
    """The messages in an order of roles that the family accepts, with messages inserted where one is missing.

    Successive user messages are joined only where they were first sent in the same request. Otherwise an assistant message goes
    between them: to join them would change what was sent, and cached, before.
    """
    held: _OutgoingMessage | None = None
    before = "system"
    for sent in messages:
        role = sent.role
        if held and role == before == "user" and dialect.alternates:
            if None in {held.turn, sent.turn} or held.turn == sent.turn:
                turn = sent.turn if held.turn is None else held.turn
                held = msgspec.structs.replace(
                    held.but(content=joined(held.message["content"], sent.message["content"])), turn=turn
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
        held, before = sent, role
    if held:
        yield held


def _content(text: str, dialect: Dialect) -> str | list[Wire]:
    return [{"type": "text", "text": text}] if dialect.markers else text


def _marked(messages: Sequence[_OutgoingMessage], mark: Wire) -> list[_OutgoingMessage]:
    """The messages with cache marks: on the system message, on the last message that will be sent again, and where the last two
    requests ended (before the newest replies), which is where the provider has written to its cache, however much was added
    since."""
    stable = len(messages)
    while stable and messages[stable - 1].passing:
        stable -= 1
    replies = [n for n, sent in enumerate(messages[:stable]) if sent.role == "assistant"]
    ends = [n - 1 for n in replies if n and messages[n - 1].role in {"user", "tool"}]
    marked = {n for n, sent in enumerate(messages) if sent.role == "system"} | {stable - 1, *ends[-2:]}
    return [_with_mark(sent, mark) if n in marked else sent for n, sent in enumerate(messages)]


def _with_mark(sent: _OutgoingMessage, mark: Wire) -> _OutgoingMessage:
    """The message with a cache mark, in its last part, or in itself where it is a result or has no parts."""
    content = sent.message.get("content")
    if isinstance(content, list) and content and sent.role != "tool":
        return sent.but(content=[*content[:-1], {**content[-1], "cache_control": mark}])
    return sent.but(cache_control=mark)


def _with_fitting_ids(messages: Sequence[_OutgoingMessage], dialect: Dialect) -> list[_OutgoingMessage]:
    """The messages with call ids that the family accepts and that occur only once. Results are paired with the calls of the
    newest reply, since several replies may use the same id."""
    if dialect.keep_ids:
        return list(messages)
    used: set[str] = set()
    open_calls: list[tuple[str, str]] = []  # old and new id
    renamed: list[_OutgoingMessage] = []
    for sent in messages:
        if calls := sent.message.get("tool_calls"):
            open_calls = [(call["id"], _fitting_id(call["id"], dialect, used)) for call in calls]
            sent = sent.but(tool_calls=[{**c, "id": new} for c, (_, new) in zip(calls, open_calls, strict=True)])
        elif sent.role == "tool":
            pair = next((p for p in open_calls if p[0] == sent.message["tool_call_id"]), None)
            if pair:
                open_calls.remove(pair)
                sent = sent.but(tool_call_id=pair[1])
        renamed.append(sent)
    return renamed


def _fitting_id(id: str, dialect: Dialect, used: set[str]) -> str:
    """The id itself where the family accepts it and it is not in `used`, else one derived from it; the same in every request of a
    conversation. Adds it to `used`."""
    length = dialect.id_length
    fits = re.fullmatch(dialect.id_pattern, id) and (len(id) == length if length else len(id) <= dialect.id_max)
    new, turn = id, 0
    while not fits or new in used:
        digest = hashlib.blake2b(f"{id}\0{turn}".encode("utf-8", "surrogatepass")).hexdigest()
        new, turn, fits = digest[: length or 24], turn + 1, True
    used.add(new)
    return new
