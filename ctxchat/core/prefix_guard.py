"""The prefix guard: compares each request with the one before to the same model, and tells where its prefix differs, and why.

Providers cache the prefix of a conversation, and some accept a model's reasoning only after the same prefix, so a request should
be the last one with something added at its end. Pure; what is done about a difference is up to the agent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ctxchat.core.cache_state import HeldPrefix
from ctxchat.core.head import ToolSpec
from ctxchat.core.messages import Message
from ctxchat.core.prefix_break import UNKNOWN_PLACE, PrefixBreak
from ctxchat.core.tool_share import FIND_TOOL
from ctxchat.core.view import View


class MarkedPrefix(msgspec.Struct, frozen=True, array_like=True):
    """A prefix of a request that the server was asked to cache besides the whole: its number of messages (tools being the first),
    their digest, and its estimated share of the request's tokens."""

    length: int
    digest: str
    share: float


class SentPrefix(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fingerprint of the request last sent to a model, which survives restarts: its number of messages (tools being the
    first), their digest, and the `explanations` of `SentRequest`. `started` is when it was sent (ISO 8601, UTC), `life` the
    seconds for which its server promised to cache it, `marked` the prefixes that are cached besides the whole."""

    model: str
    length: int
    digest: str
    explanations: dict[str, str] = {}
    started: str = ""
    life: int = 0
    marked: tuple[MarkedPrefix, ...] = ()
    effort: str = ""


class SentRequest(msgspec.Struct, frozen=True):
    """A request as the guard compares it. `tokens` is our estimate for each message, tools being the first. `explanations` maps
    the name of each thing that may explain a difference (in words, for people) to its value. `effort` is not part of the
    messages, but a provider's cache holds for one level only; reasoning stays valid at another."""

    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    tokens: tuple[int, ...]
    explanations: dict[str, str]
    effort: str = ""

    def first_difference(self, before: SentRequest) -> PrefixBreak | None:
        """Where this request differs from the one before; None where it begins with all of that one."""
        place = self._first_difference(before)
        other_effort = self.effort != before.effort
        if place is None:
            return self._with_other_effort(len(before.tokens)) if other_effort else None
        behind = before.messages[max(0, place - 1) :]
        sent_seqs, sent_heads = {m.seq for m in behind if m.seq}, [m.content for m in behind if not m.seq]
        by_message = zip(self.tokens[1:], self.messages, strict=True)
        read_anew = [t for t, m in by_message if (m.seq in sent_seqs if m.seq else m.content in sent_heads)]
        at = self.messages[place - 1] if 0 < place <= len(self.messages) and not other_effort else None
        kept, lost = sum(self.tokens[:place]), sum(read_anew) if place else sum(read_anew) + self.tokens[0]
        cause = explanation(before.explanations, self.explanations)
        return PrefixBreak(
            place=place,
            cause=f"{cause}, {self._effort_in_words}" if cause and other_effort else cause,
            message=at.id if at and at.seq else "",
            kept=0 if other_effort else kept,
            lost=kept + lost if other_effort else lost,
            thoughts=self._thoughts(place),
        )

    @property
    def _effort_in_words(self) -> str:
        return f"effort {self.effort or 'as usual'}"

    def _with_other_effort(self, length: int) -> PrefixBreak:
        return PrefixBreak(0, self._effort_in_words, lost=sum(self.tokens[:length]))

    def _first_difference(self, before: SentRequest) -> int | None:
        """The index of the first message that differs from the request before, the tools being 0; None where it begins with all
        of that one."""
        if self.tools != before.tools:
            return 0
        for place, (new, old) in enumerate(zip(self.messages, before.messages, strict=False), 1):
            if new is not old and _wire_fields(new) != _wire_fields(old):
                return place
        return None if len(self.messages) >= len(before.messages) else len(self.messages) + 1

    def differs_from(self, before: SentPrefix) -> PrefixBreak | None:
        """As `first_difference`, for a request of an earlier process, of which only the fingerprint is left."""
        if len(self.messages) + 1 >= before.length and _digests(self)[0][before.length - 1] == before.digest:
            return None if self.effort == before.effort else self._with_other_effort(before.length)
        cause = explanation(before.explanations, self.explanations)
        return PrefixBreak(UNKNOWN_PLACE, cause, lost=sum(self.tokens), thoughts=self._thoughts(0))

    def _thoughts(self, place: int) -> int:
        """The number of messages from `place` on whose reasoning is sent."""
        return sum(message.reasoning is not None for message in self.messages[max(0, place - 1) :])


NOTHING_MARKED: Mapping[int, float] = {}


class PrefixGuard:
    """Remembers the request last sent to each model. `earlier` are the fingerprints from earlier processes, by model."""

    def __init__(self, earlier: Mapping[str, SentPrefix]) -> None:
        self._earlier = dict(earlier)
        self._sent: dict[str, SentRequest] = {}
        self._digests: dict[str, tuple[list[str], hashlib.blake2b]] = {}

    def check(self, model: str, request: SentRequest) -> PrefixBreak | None:
        """Where this request differs from the last one to this model; None where it begins with all of that one, or is the
        first."""
        if before := self._sent.get(model):
            return request.first_difference(before)
        return request.differs_from(self._earlier[model]) if model in self._earlier else None

    def remember(self, model: str, request: SentRequest, marked: Mapping[int, float] = NOTHING_MARKED) -> SentPrefix:
        """Record that this request is sent now; returns its fingerprint. `marked` maps the length of each prefix that is cached
        besides the whole to its share of the tokens. Where the request begins with the one before, only its new messages are
        hashed."""
        begun = self._digests[model] if self._goes_on(model, request) else None
        digests, whole = self._digests[model] = _digests(request, begun)
        self._sent[model] = request
        return SentPrefix(
            model,
            len(digests),
            whole.hexdigest(),
            request.explanations,
            marked=tuple(MarkedPrefix(n, digests[n - 1], share) for n, share in marked.items()),
            effort=request.effort,
        )

    def held_part(self, model: str, request: SentRequest, held: Sequence[HeldPrefix]) -> tuple[HeldPrefix, ...]:
        """Those of the prefixes `held` by a server with which this request begins."""
        held = [each for each in held if each.effort == request.effort and each.length <= len(request.messages) + 1]
        if not held:
            return ()
        digests = self._digests[model][0] if self._goes_on(model, request) else _digests(request)[0]
        return tuple(e for e in held if e.length <= len(digests) and digests[e.length - 1] == e.digest)

    def _goes_on(self, model: str, request: SentRequest) -> bool:
        return model in self._sent and request.first_difference(self._sent[model]) is None


BY_REFERENCE = "found tools by reference"
"""The explanation of a difference, and the mark of a result of `find_tools`, where that is not sent in words."""


def request_of(
    view: View, explanations: Mapping[str, str], effort: str = "", *, by_reference: bool = False
) -> SentRequest:
    """The request that a view makes; `by_reference`: results of `find_tools` are sent as references (`ModelPort`)."""
    tokens = (sum(view.tool_tokens), *(item.tokens for item in view.items))
    messages = tuple(item.message for item in view.items)
    if by_reference and any(message.name == FIND_TOOL for message in messages):
        messages = tuple(replace(m, name=BY_REFERENCE) if m.name == FIND_TOOL else m for m in messages)
        explanations = {**explanations, BY_REFERENCE: ""}
    return SentRequest(view.tools, messages, tokens, dict(explanations), effort)


def explanation(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The names of what differs between two `explanations`, in words; empty where nothing does."""
    names = [name if name in now else f"{name} taken back" for name in before if before[name] != now.get(name)]
    return ", ".join([*names, *(name for name in now if name not in before)])


def _digests(
    request: SentRequest, begun: tuple[list[str], hashlib.blake2b] | None = None
) -> tuple[list[str], hashlib.blake2b]:
    """The digest of each prefix of a request, that of the tools alone first, and the hash state after all of it. `begun` is the
    result for a request with which this one begins."""
    prefixes, digest = (list(begun[0]), begun[1].copy()) if begun else ([], hashlib.blake2b(digest_size=12))
    if not prefixes:
        digest.update(msgspec.json.encode(request.tools))
        prefixes.append(digest.hexdigest())
    for message in request.messages[len(prefixes) - 1 :]:
        digest.update(_bytes(message))
        prefixes.append(digest.hexdigest())
    return prefixes, digest


def _bytes(message: Message) -> bytes:
    """The bytes of a message that are hashed."""
    try:
        return msgspec.json.encode(_wire_fields(message))
    except UnicodeEncodeError:  # half of a surrogate pair, in what an older version or another agent wrote
        return repr(_wire_fields(message)).encode("utf-8", "backslashreplace")


def _wire_fields(message: Message) -> Sequence[object]:
    """The fields of a message that are sent to a provider."""
    return (message.role, message.content, message.calls, message.call_id, message.name, message.reasoning)
