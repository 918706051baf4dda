"""Extracts notes from messages: goals, rules, decisions, what was done and what failed, files, names. A note is a line of the
summary that `summary` makes without a model.

Sentences are recognised by patterns of words in eight languages and kept as they are; nothing is added. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.expressions import expression
from ctxchat.core.facts import asks
from ctxchat.core.messages import Message, ToolCall
from ctxchat.models.offline.phrases import BEGINNINGS
from ctxchat.models.offline.words import terms

Part = Literal["goal", "rules", "decisions", "progress", "failed", "files", "next", "exact"]
"""The section of a summary that a note belongs to."""

Tag = Literal["", "settled", "open", "done", "in progress", "blocked", "now", "read", "changed"]
"""What is said of a note in front of its text. Decisions are `settled` or `open`; progress is `done`, `in progress` or `blocked`;
a goal is `now` where it is the newest of several; files were `read` or `changed`."""

_FLAGS = re.I | re.X

RULE = expression(
    r"""\b(?:always|never|must(?:\ not)?|don['’]t|do\ not|make\ sure|prefer|avoid|only\ use|use\ only|from\ now\ on)\b
    | \bremember\ (?:to|that)\b
    | \b(?:immer|niemals|nie|muss|müssen|darf|dürfen|ab\ jetzt|nur\ noch)\b
    | \b(?:toujours|jamais|il\ faut|dois|doit|désormais)\b | \b(?:siempre|nunca|debes?|no\ uses|evita)\b
    | \b(?:sempre|jamais|deve[ms]?|não\ use|evite)\b | \b(?:mai|devi|devono|non\ usare|evita)\b
    | 必ず | しないで | 禁止 | 常に | 必须 | 不要 | 总是 | 始终 | 请勿 | 一定要""",
    _FLAGS,
)
SETTLED = expression(
    r"""\b(?:decided|we['’]ll\ use|we\ will\ use|let['’]s\ (?:use|go|keep|take)|go(?:ing)?\ with|we\ chose|agreed|settled\ on)\b
    | \b(?:entschieden|wir\ nehmen|einigen\ uns|beschlossen)\b | \b(?:décidé|on\ prend|choisi|convenu)\b
    | \b(?:decidid[oa]|decidimos|acordamos|elegimos|usaremos)\b | \b(?:ficou\ decidido|escolhemos|vamos\ usar)\b
    | \b(?:deciso|scelto|abbiamo\ scelto|usiamo|useremo)\b | 決め(?:た|ました) | 採用 | にしましょう | 决定 | 采用 | 选定""",
    _FLAGS,
)
OPEN = expression(
    r"""\b(?:open\ question|undecided|not\ (?:yet\ )?decided|tbd|to\ be\ decided|should\ we|still\ unclear)\b
    | \b(?:noch\ offen|noch\ nicht\ entschieden|sollen\ wir|sollten\ wir)\b | \b(?:à\ décider|devons-nous|faut-il)\b
    | \b(?:por\ decidir|pendiente|deberíamos)\b | \b(?:em\ aberto|a\ decidir|devemos|devíamos)\b
    | \b(?:da\ decidere|dovremmo)\b | 未定 | 検討中 | べきか | 待定 | 未决定 | 要不要 | 是否应该""",
    _FLAGS,
)
FAILED = expression(
    r"""\b(?:did\ ?n[o'’]t\ work|does\ ?n[o'’]t\ work|did\ not\ work|does\ not\ work)\b
    | \b(?:failed|fails|no\ luck|gave\ up|reverted|still\ broken)\b
    | \b(?:funktioniert\ nicht|fehlgeschlagen|klappt\ nicht|hat\ nicht\ geklappt)\b | \b(?:pas\ marché|échoué|ne\ marche\ pas)\b
    | \b(?:no\ funcion[aó]|falló|fallaron)\b | \b(?:não\ funcion(?:ou|a)|falhou)\b | \b(?:non\ (?:ha\ )?funziona(?:to)?|fallito)\b
    | 失敗 | 動かな | うまくいかな | 失败 | 不行 | 没有成功""",
    _FLAGS,
)
NEXT = expression(
    r"""\b(?:next\ (?:step|i|we|up)|next,|to-?do|remaining|still\ (?:need|have)\ to|what\ is\ left)\b
    | \b(?:als\ nächstes|nächster\ schritt|noch\ zu\ tun)\b | \b(?:ensuite|reste\ à|prochaine\ étape)\b
    | \b(?:siguiente\ paso|falta|a\ continuación)\b | \b(?:próximo\ passo|falta|a\ seguir)\b | \b(?:prossimo\ passo|resta\ da)\b
    | 次に | これから | 残り | 接下来 | 下一步 | 还需要 | 待办""",
    _FLAGS,
)
BLOCKED = expression(
    r"""\b(?:blocked|waiting\ (?:for|on)|cannot\ (?:continue|proceed)|can['’]t\ (?:continue|proceed)|not\ allowed)\b
    | \b(?:blockiert|warte\ auf|warten\ auf)\b | \b(?:bloqué|en\ attente)\b | \b(?:bloquead[oa]|esperando|aguardando)\b
    | \b(?:bloccat[oa]|in\ attesa)\b | 待ち | 止まって | 等待 | 受阻 | 卡住""",
    _FLAGS,
)

MAX_NOTE_CHARS = 400
"""Characters of one note; a longer sentence is cut, with a mark."""

_SENTENCE = expression(r"(?<=[.!?…])\s+(?=[^\sa-z])|(?<=[。！？])|\n+")
_FENCE = expression(r"^(`{3,}|~{3,}).*?(?:^\1[ \t]*$|\Z)", re.M | re.S)
_ERROR = expression(
    r"\b(?:\w*error|\w*exception|traceback|failed|failure|fatal|not found|no such|denied|panic)\b|失败|エラー", re.I
)
_EXIT = expression(r"\bexit(?:ed)?(?: with)?(?: code| status)?:?\s+(?!0\b)\d+", re.I)
_EXACT = expression(
    r"""https?://[^\s<>"'`)\]]+ | `([^`\n]{2,80})` | (?<![\w./-])(?:[\w.-]+/)+[\w-]+(?:\.\w+)?
    | \b[A-Z][A-Z0-9]+-\d+\b | \b[0-9a-f]{7,40}\b(?<![a-z]{7}) | \b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b | \b[a-z]\w*_\w+\b
    | \b\d+(?:[.,:]\d+)*\s?(?:%|ms|s|min|h|GB|MB|KB|kB|km|m|kg|€|\$|USD|EUR|tokens|px)(?!\w) | \bv?\d+\.\d+(?:\.\d+)+\b""",
    re.X,
)
"""Matches what must be kept letter by letter: addresses, code, paths, keys of issues, hashes, identifiers, numbers with units."""

_CHANGES = expression(r"write|edit|create|patch|replace|delete|move|append", re.I)
"""Matches names of tools that change files."""

_PATH_NAMES = ("path", "file_path", "file", "filename")
"""Names of arguments that hold a path."""

_SHOWN_NAMES = ("command", *_PATH_NAMES, "pattern", "query", "url")
"""Names of arguments of which the first present one describes a call."""

_LOOKING = ("list_files", "grep", "glob")
"""Tools whose path is where they look and not a file they read."""


class Note(msgspec.Struct, frozen=True):
    """One line of a summary. `score` says how much it matters (about 0 to 1). `continues`: it is a reply to a request from before
    the first of the messages, which is in the earlier summary."""

    part: Part
    text: str
    tag: Tag = ""
    score: float = 0.5
    continues: bool = False


def notes_of(messages: Sequence[Message]) -> list[Note]:
    """All notes from these messages, in their order; of the requests only the first and the newest."""
    weigh = _Weights(m.text for m in messages if m.role in {"user", "assistant"})
    notes: list[Note] = []
    turns = list(_turns(messages))
    for number, turn in enumerate(turns):
        found = _notes_of_turn(turn, weigh, first=number == 0)
        # What an earlier turn meant to do next has been done by now, or other requests have come since.
        notes += [n for n in found if n.part != "next" or number >= len(turns) - 2]
    requests = [n for n in notes if n.part == "goal"]
    requests = [n for n in requests if n.score == 1.0] or requests  # a message of rules alone asks for nothing
    goals = requests[:1] + [Note("goal", n.text, tag="now", score=1.0) for n in requests[-1:] if len(requests) > 1]
    others = [n for n in notes if n.part != "goal"]
    settled = [n.text for n in others if n.tag == "settled"]
    others = [n for n in others if not (n.tag == "open" and covered(n.text, settled))]
    return [*goals, *others, *_exact(messages)]


def covered(text: str, by: Iterable[str]) -> bool:
    """True where at least 60 % of a text's terms are in one of the other texts, which then deals with the same matter."""
    own = set(terms(text))
    return bool(own) and any(len(own & set(terms(other))) >= 0.6 * len(own) for other in by)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without code blocks, quotations, tables and list marks."""
    plain = _FENCE.sub("", text)
    pieces = (
        re.sub(r"\s+", " ", p).strip(" -*#\t") for p in _SENTENCE.split(plain) if not p.lstrip().startswith((">", "|"))
    )
    return [p for p in pieces if any(c.isalnum() for c in p)]


class _Weights:
    """Weighs sentences by how often their terms come up in the whole conversation."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(t for text in texts for t in set(terms(text[:20_000])))
        self._most = max(self._counts.values(), default=1)

    def __call__(self, sentence: str, place: float = 0.0) -> float:
        """The weight of a sentence, about 0 to 1; `place` is its position in its message, from 0 (beginning) to 1."""
        found = [self._counts[t] / self._most for t in set(terms(sentence)) if len(t) > 3 or not t.isascii()]
        strong = sorted(found, reverse=True)[:6]
        return 0.7 * (sum(strong) / len(strong) if strong else 0.0) + 0.3 * (1 - place)


# ── one turn ──


def _turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages in turns, each from one user message to the next."""
    turn: list[Message] = []
    for message in messages:
        if message.role == "user" and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _notes_of_turn(turn: Sequence[Message], weigh: _Weights, *, first: bool) -> list[Note]:
    """The notes of one turn: what the user, the replies and the tools said, and how far the request is. `first`: it is the first
    of the turns, which may have no user message."""
    asked = turn[0].text if turn[0].role == "user" else ""
    replies = [m for m in turn if m.role == "assistant" and not m.calls and m.text.strip() and not m.interrupted]
    notes = list(_from_user(asked, weigh)) if asked else []
    for message in turn:
        if message.role == "assistant":
            notes += _from_reply(message.text, weigh)
    notes += _from_tools(turn)
    outcome = _gist(replies[-1].text, weigh) if replies else ""
    request = _request(asked)
    if request and outcome and BLOCKED.search(outcome):
        notes.append(Note("progress", f"{request} → {outcome}", tag="blocked", score=0.9))
    elif request and replies:
        notes.append(Note("progress", f"{request} → {outcome}" if outcome else request, tag="done", score=0.5))
    elif request:
        notes.append(Note("progress", request, tag="in progress", score=1.0))
    elif first and replies:
        notes.append(Note("progress", outcome, tag="done", continues=True))
    return notes


def _request(text: str) -> str:
    """The first one or two sentences of a request, without rules."""
    wishes = _wishes(text)
    return _clipped(" ".join(wishes[:2]) if wishes and len(wishes[0]) < 60 else wishes[0], 240) if wishes else ""


def _wishes(text: str) -> list[str]:
    """The sentences of a request without standing rules, which have their own section; all of them where it holds only rules."""
    every = sentences(text)
    return [s for s in every if not RULE.search(s)] or every


def _from_user(text: str, weigh: _Weights) -> Iterator[Note]:
    """The notes of a user message: its request, and its sentences that are decisions, rules, or weigh much."""
    every = sentences(text)
    if every:
        wants = any(not (RULE.search(s) or SETTLED.search(s)) for s in every)
        yield Note("goal", _clipped(" ".join(_wishes(text)[:3])), score=1.0 if wants else 0.9)
    for place, sentence in enumerate(every[:80]):
        score = weigh(sentence, place / len(every))
        asked = asks(sentence)
        if OPEN.search(sentence):
            yield Note("decisions", _clipped(sentence), tag="open", score=0.8)
        elif SETTLED.search(sentence) and not asked:
            yield Note("decisions", _clipped(sentence), tag="settled", score=0.9)
        elif RULE.search(sentence) and not asked:
            yield Note("rules", _clipped(sentence), score=0.9)
        elif FAILED.search(sentence) and not asked:
            yield Note("failed", _clipped(sentence), score=0.6)
        elif score > 0.75 and place and not asked:
            yield Note("rules", _clipped(sentence), score=score / 2)


def _from_reply(text: str, weigh: _Weights) -> Iterator[Note]:
    """The notes of a model's reply: what is next, what is blocked, what was decided, what failed."""
    own = [s for s in sentences(text) if not s.startswith(BEGINNINGS)]
    for place, sentence in enumerate(own[:200]):
        score = 0.8 * weigh(sentence, place / len(own))
        if NEXT.search(sentence):
            yield Note("next", _clipped(sentence), score=score)
        elif BLOCKED.search(sentence):
            yield Note("progress", _clipped(sentence), tag="blocked", score=0.7)
        elif SETTLED.search(sentence):
            yield Note("decisions", _clipped(sentence), tag="settled", score=0.6)
        elif FAILED.search(sentence):
            yield Note("failed", _clipped(sentence), score=0.5)


def _gist(text: str, weigh: _Weights) -> str:
    """The sentence of a reply that weighs most."""
    candidates = [s for s in sentences(text) if not s.startswith(BEGINNINGS)] or _quoted(text)
    if not candidates:
        return ""
    best = max(range(len(candidates)), key=lambda i: weigh(candidates[i], i / len(candidates)))
    return _clipped(candidates[best], 240)


def _quoted(text: str) -> list[str]:
    """The lines in block quotes of a text: an answer of the built-in assistant may have nothing else."""
    return [line.lstrip("> ").strip() for line in text.split("\n") if line.startswith(">") and line.strip("> ")]


# ── tools, files, names ──


def _from_tools(turn: Sequence[Message]) -> Iterator[Note]:
    """The notes of a turn's calls: what failed, and which files were read or changed."""
    results = {m.call_id: m.text for m in turn if m.role == "tool"}
    for message in turn:
        for call in message.calls:
            result = results.get(call.id, "")
            trouble = _trouble(result)
            if trouble:
                yield Note("failed", f"`{_clipped(_describe(call), 120)}`: {trouble}", score=0.5)
            for path in _paths(call):
                if not trouble:
                    yield Note("files", f"`{path}`", tag="changed" if _CHANGES.search(call.name) else "read", score=0.5)


def _trouble(result: str) -> str:
    """The line of a result that tells what went wrong; empty where nothing did."""
    head = result[:4_000] + result[-4_000:] if len(result) > 8_000 else result
    lines = [line.strip() for line in head.split("\n") if line.strip()]
    wrong = bool(_EXIT.search(head)) or "Traceback (most recent call last)" in head
    if not lines or not (wrong or _ERROR.search(lines[0]) or "did not allow" in lines[0]):
        return ""
    telling = [line for line in lines if _ERROR.search(line) and not line.startswith("Traceback")]
    return _clipped(telling[-1] if wrong and telling else lines[0], 200)


def _describe(call: ToolCall) -> str:
    """A call in one line: the tool's name and its most telling argument."""
    arguments = fields_of(call.arguments) or {}
    shown = next((value for name in _SHOWN_NAMES if isinstance(value := arguments.get(name), str)), "")
    return " ".join(f"{call.name} {shown}".split()).replace("`", "'")


def _paths(call: ToolCall) -> list[str]:
    """The paths of the files that a call read or changed."""
    if call.name in _LOOKING:
        return []
    arguments = fields_of(call.arguments) or {}
    found = [value for name in _PATH_NAMES if isinstance(value := arguments.get(name), str)]
    return [" ".join(p.split()).replace("`", "'") for p in found if p.strip()]


def _exact(messages: Sequence[Message]) -> list[Note]:
    """The texts in user messages and replies that must be kept letter by letter (see `_EXACT`), the most used first."""
    counts: Counter[str] = Counter()
    for message in messages:
        if message.role in {"user", "assistant"}:
            weight = 2 if message.role == "user" else 1
            for match in _EXACT.finditer(message.text[:50_000]):
                counts[(match[1] or match[0]).strip().rstrip(".,;:")] += weight
    most = max(counts.values(), default=1)
    best = [text for text, _ in counts.most_common(40) if 2 <= len(text) <= 120]
    return [Note("exact", f"`{text}`", score=0.5 * counts[text] / most) for text in best if "`" not in text]


def _clipped(text: str, most: int = MAX_NOTE_CHARS) -> str:
    """The text as one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
