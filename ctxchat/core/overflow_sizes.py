"""The sizes that a refusal names: the window, and the room it leaves for output. Reads words only; judges nothing."""

from __future__ import annotations

import re

_N = r"(\d[\d,_]{0,14}\d|\d)(k|m)?\b"
_UNIT = r"(?![\d,.]{0,20}\d)(?!\s*(?:characters|chars|bytes|kb|mb|output|completion))"
_LIMITS = tuple(
    re.compile(pattern.replace("#", _N + _UNIT), re.I)
    for pattern in (
        r"n_ctx\\{0,8}[\"']?[\s:=(>]{1,4}#",
        r"\d\s{0,3}\+\s{0,3}[\d,]{1,15}\s{0,9}>\s{0,9}#",
        r"\d tokens > # maximum",
        r"max_(?:model|seq|input|prompt|num)_(?:len|tokens)[\s:=(]{1,4}#",
        r"maximum context length of \S{1,60} is #",
        r"maximum (?:limit of|allowed length)[\s(]{1,3}#",
        r"longer than the (?:model'?s? )?(?:context|maximum)[^\n]{0,20}? length[^\n\d]{0,8}#",
        r"(?:maximum|max|model'?s?|available|configured"
        r"|allowed)[\s_-](?:\w{1,12}[\s_-]){0,2}?context[\s_-](?:length|window|size|limit)(?: limit)?"
        r"(?:[^\n\d\w]{0,3}| is| of| is only| of only|[^\n\d.]{1,30} is)[\s:(=]{0,3}#",
        r"context[\s_-](?:length|window|size|limit)(?: limit)?(?:\s?(?:is|of|to|:|=|>=?|\())?(?: only)?[\s:(=]{0,3}#",
        r"#(?: tokens)? (?:maximum )?context (?:length|window)",
        r"max(?:imum)?[\s_-](?:allowed )?(?:prompt|model|input|sequence|seq|total|num|prompt_)[\s_-]?(?:token "
        r"|input )?(?:tokens?|length|len|limit|size)?"
        r"(?:\s?(?:is|of|:|=|\())?(?: only)?[\s:(=]{0,3}#",
        r"maximum number of (?:input )?tokens(?: allowed)?[\s:(]{0,4}#",
        r"range of input length should be \[\d+, ?#",
        r"(?:token|input|model|configured|length|tokens)[\s_-](?:token )?limit(?: of| is|:|\s\()?[\s:(]{0,3}#",
        r"while limit is #",
        r"(?:exceeds?|exceeded|over) the (?:\w{1,12} ){0,4}(?:limit|maximum|maximum length)(?: of)?[\s:(]{0,3}#",
        r"(?:must have less than|cannot exceed|no more than|must be <=?|only supports? up to|supports? up to"
        r"|exceed model maximum)[\s(]{1,3}#",
        r"session_len[\s:=(]{1,3}#",
        r"max(?:imum)? size: # tokens",
        r"maximum of # tokens",
        r"max tokens of # exceeded",
        r"limit of # tokens",
        r"model maximum \(#\)",
        r"最大[^\n\d]{0,12}#|上限[^\n\d]{0,6}#",
    )
)
_INPUTS = tuple(
    re.compile(pattern.replace("#", r"(\d[\d,]{0,15})"), re.I)
    for pattern in (
        r"# (?:tokens )?(?:in|from|of) (?:the |your |)(?:input )?(?:messages|prompt|input|functions|tools?"
        r"|text input|tool input|image input)\b",
        r"(?:prompt|request|input) (?:contains|has) # (?:input )?tokens",
        r"given: # `?inputs`? tokens",
    )
)
_SUM = re.compile(r"(\d[\d,]{0,15})\s{0,3}\+\s{0,3}(\d[\d,]{0,15})\s{0,9}>\s{0,9}(\d[\d,]{0,15})")
_LABELLED = re.compile(r"(?:prompt|input|messages)\D{0,20}(\d[\d,]{0,15})\D{0,10}\+\D{0,40}\d", re.I)
_OUTPUT = re.compile(r"completion|output|max_\w{0,12}tokens|max tokens", re.I)
_BOUND = re.compile(r"contains at least (\d[\d,]{0,15}) input tokens", re.I)
_SANE = range(64, 1 << 28)


def named_window(words: str) -> int:
    """The window in tokens that a refusal names; 0 where it names none."""
    for pattern in _LIMITS:
        for match in pattern.finditer(words):
            groups = [group for group in match.groups() if group]
            tokens = _number(groups[0]) * {"k": 1000, "m": 1_000_000}.get(groups[-1].lower(), 1)
            if tokens in _SANE:
                return tokens
    return 0


def room_for_output(words: str, estimated_tokens: int | None) -> int:
    """Tokens of output that fit beside an input that fits by itself; 0 where the refusal does not say so.

    Where the server only gives a lower bound of the input, our own count decides, with a tenth on top.
    """
    if not _OUTPUT.search(words):
        return 0
    summed = _SUM.search(words)
    if summed:
        return max(0, _number(summed[3]) - _number(summed[1]))
    window = named_window(words)
    if _BOUND.search(words):
        counted = int(estimated_tokens * 1.1) if estimated_tokens else window
        return max(0, window - counted)
    given = sum(_number(text) for pattern in _INPUTS for text in dict.fromkeys(pattern.findall(words)))
    if not given:
        labelled = _LABELLED.search(words)
        given = _number(labelled[1]) if labelled else 0
    return max(0, window - given) if window and given else 0


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
