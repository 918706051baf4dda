"""Which tools do what somebody wants, by the words of their names, descriptions and arguments. Pure."""

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
"""What a word in a tool's name and in its arguments counts, against one in its description."""

ALIKE_WEIGHT = 0.6
"""What a word counts that only means much the same."""

SERVER_WEIGHT = 1.0
"""What a tool's server counts as a whole: who asks for a row of a spreadsheet wants a tool of the one that knows spreadsheets."""

SATURATION, LENGTH_SHARE = 1.2, 0.2
"""How soon a word that comes again counts no more, and how much the length of a description matters (BM25's k1 and b)."""

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


def _alike() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _ALIKE.split("\n"):
        words = {stem(word) for word in line.split()}
        for word in words:
            found.setdefault(word, set()).update(words - {word})
    return {word: frozenset(others) for word, others in found.items()}


_OTHERS = _alike()
_TOOL_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")


def best_tools(wanted: str, tools: Sequence[ToolSpec], most: int) -> list[ToolSpec]:
    """The tools that fit best, best first; those of which no word was said are none."""
    asked = list(dict.fromkeys(_words(wanted)))
    weights = [_weights(tool) for tool in tools]
    servers: dict[str, Counter[str]] = {}
    for tool, each in zip(tools, weights, strict=True):
        servers.setdefault(tool.name.partition(BETWEEN)[0], Counter()).update(each)
    by_server = dict(zip(servers, _scores(asked, list(servers.values())), strict=True))
    best = max(by_server.values(), default=0.0) or 1.0
    scored = [
        (score * (1 + SERVER_WEIGHT * by_server[tool.name.partition(BETWEEN)[0]] / best), place)
        for place, (tool, score) in enumerate(zip(tools, _scores(asked, weights), strict=True))
    ]
    ranked = sorted((-score, place) for score, place in scored if score > 0)
    return [tools[place] for _, place in ranked[:most]]


def _scores(asked: Sequence[str], texts: Sequence[Mapping[str, float]]) -> list[float]:
    """How well each text answers (BM25): for each word what it counts itself, or the best of those that mean much the same."""
    holding = Counter(word for each in texts for word in each)
    usual = sum(sum(each.values()) for each in texts) / len(texts) if texts else 1.0

    def score(text: Mapping[str, float]) -> float:
        long = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * sum(text.values()) / usual)

        def of(word: str) -> float:
            if word not in text:
                return 0.0
            return math.log(1 + len(texts) / holding[word]) * text[word] * (SATURATION + 1) / (text[word] + long)

        return sum(max([of(word), *(ALIKE_WEIGHT * of(other) for other in _OTHERS.get(word, ()))]) for word in asked)

    return [score(text) for text in texts]


def _weights(tool: ToolSpec) -> Mapping[str, float]:
    """What each word counts for a tool."""
    found: dict[str, float] = {}
    parts = ((NAME_WEIGHT, tool.name), (1.0, tool.description), (ARGUMENT_WEIGHT, " ".join(_said(tool.parameters))))
    for weight, text in parts:
        for word in _words(text):
            found[word] = found.get(word, 0.0) + weight
    return found


def _words(text: str) -> Iterator[str]:
    for name in _TOOL_WORD.findall(re.sub(r"\bset up\b", "create", text)):
        yield from forms(name) or ((word,) if (word := stem(name.lower())) in _OTHERS else ())


def _said(node: object) -> Iterator[str]:
    """Names and descriptions in a schema."""
    if isinstance(node, dict):
        fields = cast("dict[str, object]", node)
        properties = fields.get("properties")
        if isinstance(properties, dict):
            yield from cast("dict[str, object]", properties)
        if isinstance(about := fields.get("description"), str):
            yield about
        for value in fields.values():
            yield from _said(value)
    elif isinstance(node, list):
        for item in cast("list[object]", node):
            yield from _said(item)
