"""Ranks tools by how well their texts match a request in plain words; `find_tools` uses it for tools of MCP servers whose
descriptions are too large to send all of them (`core.tool_share`).

The ranking is BM25 over the words of a tool's name, description and arguments, with synonyms, and with a bonus for tools of a
server whose tools match as a whole. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ctxchat.core.head import ToolSpec
from ctxchat.core.stems import forms, stem
from ctxchat.core.tool_share import BETWEEN

NAME_WEIGHT, ARGUMENT_WEIGHT = 2.0, 0.4
"""Weights of a word in a tool's name and in its arguments; a word in its description weighs 1."""

ALIKE_WEIGHT = 0.6
"""Weight of a synonym, against the word itself."""

SERVER_WEIGHT = 1.0
"""Weight of the score of a tool's server: a request for a row of a spreadsheet is meant for the server that knows spreadsheets,
though other servers' tools have rows, too."""

SATURATION, LENGTH_SHARE = 1.2, 0.2
"""BM25's k1 and b: how soon repetitions of a word stop counting, and how much the length of a description matters."""

# The words of a line are synonyms of each other. A word in several lines does not make these lines one: `open` means both
# `create` and `visit`, which do not mean each other.
_ALIKE = """
    create add new make open start begin insert write register set build schedule prepare compose introduce append
    append add insert extend
    delete remove drop erase destroy discard clear trash bin wipe rid purge
    cancel call off stop end quit terminate close finish complete abort kill kick halt
    update edit change modify rename rewrite adjust alter set correct fix postpone reschedule
    get read fetch show view see look retrieve display describe detail inspect check give content what
    list show all see browse enumerate overview which
    search find look query locate seek usage occurrence
    send post write deliver message tell inform announce say notify
    run execute start invoke call trigger launch perform
    start begin launch kick
    upload put store save push
    download save fetch export
    export convert make dump
    import load
    move relocate transfer shift put sort
    copy duplicate clone fork
    share permission access grant invite give let allow right role see edit
    revoke remove unshare access kick
    comment reply answer respond note remark feedback
    reply answer respond accept decline
    forward pass
    merge join combine integrate
    join enter
    leave quit exit
    file document doc paper text readme
    folder directory
    document text spreadsheet sheet presentation
    presentation slide deck
    spreadsheet sheet table cell row line number
    issue ticket bug task problem story defect
    label tag category
    repository repo project codebase code
    pull merge pr request change review
    commit change
    review approve reject feedback
    workflow ci build pipeline job run
    release version publish ship
    mail email letter message inbox
    spam junk phishing
    newsletter unsubscribe subscription
    away vacation holiday office absence
    filter rule automatic automatically sort
    thread conversation discussion whole
    draft prepare unsent
    unread new read
    meeting event appointment agenda calendar date
    event agenda schedule meeting
    line row
    recurring repeat daily weekly weekday monthly every
    reminder remind alarm
    book reserve schedule plan
    free available availability busy spare
    invitation invite
    holiday vacation
    guest attendee participant
    time clock hour
    user person member people account colleague employee team who
    channel room conversation group team
    direct private dm
    reaction emoji react thumb smiley
    poll vote survey choice
    notification mute snooze pause quiet silence
    picture image screenshot photo
    page website site url web address link
    navigate go open visit browse
    click press push tap button element
    type enter fill input write
    select choose pick option dropdown
    device phone iphone tablet mobile
    network request traffic call
    page site tab web
    console error javascript
    cookie storage cache
    table schema column database
    column field
    row record entry line data
    sql statement query select count
    session connection
    lock block wait
    slow long performance
    privilege right permission grant role
    backup dump snapshot
    restore undo recover back revert
    rollback undo revert back previous
    version revision history earlier previous past old
    size space disk large storage big
    pod container instance process
    log output trace print
    scale replica copy size instance
    deploy deployment rollout release ship
    restart reboot again rerun retry
    node machine server host
    memory cpu usage use
    status state health progress done
    transition move mark state status done
    invoice bill
    payment charge pay money
    customer client buyer subscriber
    refund reimburse return money back
    subscription plan membership
    overdue late unpaid due
    coupon discount voucher
    dispute chargeback contest
    payout transfer bank
    assign owner responsible give
    due deadline until
    attach attachment attached file
    link connect relate relation
    work time spent hour effort
    secret credential password token leak leaked key
    contributor author who wrote
    revenue income sale earning
"""


def _parse_synonyms() -> Mapping[str, frozenset[str]]:
    """The stem of each word in `_ALIKE`, with the stems of its synonyms."""
    synonyms: dict[str, set[str]] = {}
    for line in _ALIKE.split("\n"):
        words = {stem(word) for word in line.split()}
        for word in words:
            synonyms.setdefault(word, set()).update(words - {word})
    return {word: frozenset(others) for word, others in synonyms.items()}


_SYNONYMS = _parse_synonyms()
_TOOL_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
"""Matches a word or an identifier in snake case."""


def best_tools(wanted: str, tools: Sequence[ToolSpec], most: int) -> list[ToolSpec]:
    """At most `most` tools that match the request `wanted`, best first; a tool that shares no word with it is left out."""
    request = list(dict.fromkeys(_stems(wanted)))
    tool_weights = [_weigh_stems(tool) for tool in tools]
    server_weights: dict[str, Counter[str]] = {}
    for tool, weights in zip(tools, tool_weights, strict=True):
        server_weights.setdefault(tool.name.partition(BETWEEN)[0], Counter()).update(weights)
    by_server = dict(zip(server_weights, _scores(request, list(server_weights.values())), strict=True))
    best = max(by_server.values(), default=0.0) or 1.0
    scored = [
        (score * (1 + SERVER_WEIGHT * by_server[tool.name.partition(BETWEEN)[0]] / best), index)
        for index, (tool, score) in enumerate(zip(tools, _scores(request, tool_weights), strict=True))
    ]
    ranked = sorted((-score, index) for score, index in scored if score > 0)
    return [tools[index] for _, index in ranked[:most]]


def _scores(request: Sequence[str], texts: Sequence[Mapping[str, float]]) -> list[float]:
    """The BM25 score of each text for the stems of a request.

    A text is given as its stems with their weights, in place of counts. A stem of the request scores by itself or by its best
    synonym, whichever is more.
    """
    texts_with = Counter(word for text in texts for word in text)
    mean_length = sum(sum(text.values()) for text in texts) / len(texts) if texts else 1.0

    def score_text(text: Mapping[str, float]) -> float:
        length_penalty = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * sum(text.values()) / mean_length)

        def score_word(word: str) -> float:
            if word not in text:
                return 0.0
            rarity = math.log(1 + len(texts) / texts_with[word])
            return rarity * text[word] * (SATURATION + 1) / (text[word] + length_penalty)

        return sum(
            max([score_word(word), *(ALIKE_WEIGHT * score_word(other) for other in _SYNONYMS.get(word, ()))])
            for word in request
        )

    return [score_text(text) for text in texts]


def _weigh_stems(tool: ToolSpec) -> Mapping[str, float]:
    """Each stem in a tool's texts with its weight: the weights of the places where it stands, added up."""
    weights: dict[str, float] = {}
    parts = (
        (NAME_WEIGHT, tool.name),
        (1.0, tool.description),
        (ARGUMENT_WEIGHT, " ".join(_schema_texts(tool.parameters))),
    )
    for weight, text in parts:
        for word in _stems(text):
            weights[word] = weights.get(word, 0.0) + weight
    return weights


def _stems(text: str) -> Iterator[str]:
    """The stems of a text's words. Words too common for the search index (`all`, `new`) give none, unless they are synonyms."""
    for name in _TOOL_WORD.findall(re.sub(r"\bset up\b", "create", text)):
        yield from forms(name) or ((word,) if (word := stem(name.lower())) in _SYNONYMS else ())


def _schema_texts(node: object) -> Iterator[str]:
    """The names of properties and the descriptions in a JSON schema, at any depth."""
    if isinstance(node, dict):
        fields = cast("dict[str, object]", node)
        properties = fields.get("properties")
        if isinstance(properties, dict):
            yield from cast("dict[str, object]", properties)
        if isinstance(description := fields.get("description"), str):
            yield description
        for value in fields.values():
            yield from _schema_texts(value)
    elif isinstance(node, list):
        for item in cast("list[object]", node):
            yield from _schema_texts(item)
