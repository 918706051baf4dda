"""What a question is about: its own words, those of the question it leans on, words of like meaning, and what would answer it."""

from __future__ import annotations

import re

import msgspec

from ctxchat.models.offline.passages import Wish
from ctxchat.models.offline.transcript import Transcript
from ctxchat.models.offline.words import Topic, stem, topic

EARLIER = 0.35
"""What all words of the question before count together, beside those of one that leans on it."""

ALIKE = 0.5
"""What a word of like meaning counts."""

_ALIKE_WORDS = """
test: pytest unittest jest
install: pip setup
config: setting option
configure: config setting
setting: config option
license: licence
start: launch serve
delete: remove
limit: max maximum
maximum: max limit
timeout: seconds
password: secret credential
author: maintainer
dependency: require
version: release
error: exception fail
fail: error failure
"""
_ALIKE = {
    stem(word): tuple(map(stem, others.split()))
    for word, others in (r.split(":") for r in _ALIKE_WORDS.strip().split("\n"))
}

_DEFINES = re.compile(
    r"""\bwhere\b.*\b(?:set|defined?|declared?|implemented|configured|come|stored|live)\b
    | \b(?:wo|où|dónde|onde|dove)\b | 在哪 | どこ""",
    re.I | re.X,
)
_FIGURES = re.compile(
    r"""\bhow\ (?:many|much|often|long|big|large|old|fast)\b | \bwhen\b
    | \b(?:number|size|limit|port|version|timeout|interval)\b
    | \bwie\ (?:viele?|oft|lange)\b | \bwann\b | \bcombien\b | \bcuánt | \bquant[oai] | 多少 | 几 | いくつ | 何""",
    re.I | re.X,
)
_COMMAND = re.compile(
    r"""\bhow\ (?:do|can|should|to|does\ one)\b.*\b(?:run|build|install|start|use|test|deploy|launch|execute|set\ up|lint)\b
    | \bwie\b.*\b(?:starte|installiere|baue|teste|führe)\b | \bcomment\b.*\b(?:lancer|installer)\b""",
    re.I | re.X,
)
_LEANS = re.compile(
    r"""^\W*(?:and|und|et|y|e|but|also|what\ about|how\ about)\b
    | \b(?:it|its|they|them|their|those|there|he|she|him|her)\b""",
    re.I | re.X,
)
_MORE = re.compile(
    r"^\W*(?:(?:tell|show|give)(?: me)? )?(?:more|else|other|further|next|mehr|weiter|encore|plus|más|mais|altro)\b",
    re.I,
)
_REF = re.compile(r"`([^`\n]+):(\d{1,9})`")


class Question(msgspec.Struct, frozen=True):
    """What is asked: its topic, terms of lesser weight, what kind of line would answer it, and places already quoted."""

    topic: Topic
    lesser: dict[str, float]
    wish: Wish
    quoted: frozenset[tuple[str, int]] = frozenset()

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Its terms, each with those of like meaning; the words of an earlier question as one more."""
        alike = {s for t in self.topic.terms for s in _ALIKE.get(t, ())}
        earlier = tuple(t for t in self.lesser if t not in alike)
        own = tuple((t, *_ALIKE.get(t, ())) for t in self.topic.terms[:6])
        return (*own, earlier) if earlier else own


def understand(seen: Transcript) -> Question:
    """The question's topic; where it leans on the one before, that one's words as well, with less weight."""
    now = topic(seen.question)
    lesser = {s: ALIKE for t in now.terms for s in _ALIKE.get(t, ())}
    leans = bool(_LEANS.search(seen.question[:300]))
    more = bool(_MORE.match(seen.question)) or now.empty
    if leans or more:
        before = next((t for t in map(topic, seen.earlier[:4]) if not t.empty), Topic())
        weight = 1.0 if more else EARLIER * len(now.terms) / max(1, len(before.terms))
        lesser |= {t: weight for t in before.terms if t not in now.terms}
        if more:
            now = before
    text = seen.question[:600]
    wish = Wish(
        defines=bool(_DEFINES.search(text)),
        figures=bool(_FIGURES.search(text)),
        command=bool(_COMMAND.search(text)),
        tests="test" in now.terms,
    )
    quoted = frozenset((p, int(n)) for p, n in _REF.findall(seen.last_reply)) if more else frozenset()
    return Question(now, lesser, wish, quoted)
