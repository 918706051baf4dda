"""The sizes that a refusal names: the window, the prompt as the server counted it, and the room left for output.

Reads words only; judges nothing. In the patterns `#` stands for a number of tokens; characters, bytes and what is said of the
output are no such number.
"""

from __future__ import annotations

import re

_N = r"(?<![-\d])(\d[\d,_]{0,14}\d|\d)(k|m)?\b"
_UNIT = r"(?![\d,.]{0,20}\d)(?!\s*(?:characters|chars|bytes|kb|mb|output|completion|items|images|messages))"


def _numbered(*patterns: str, after: str = "") -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern.replace("#", _N + _UNIT + after), re.I) for pattern in patterns)


_WINDOWS = _numbered(
    r"n(?:um)?_ctx\\{0,8}[\"']?(?: is)?[\s:=(>]{1,4}#",
    r"\d\s{0,3}[+ ]\s{0,3}[\d,]{1,15}\s{0,9}>\s{0,9}#",
    r"\(?\d[\d,]{1,14}(?: tokens)? ?>=? ?#\)?",
    r"max_(?:model|seq|input|prompt|num|req|context|trajectory)_(?:(?:input|total)_)?(?:len|tokens)[\s:=(]{1,4}#",
    r"maximum context length of \S{1,60} is #",
    r"maximum (?:limit of|allowed length)[\s(]{1,3}#",
    r"maximum (?:allowed )?(?:is|of|context size of) #",
    r"longer than the (?:model'?s? )?(?:context|maximum)[^\n]{0,20}? length[^\n\d]{0,8}#",
    r"(?:maximum|max|model'?s?|available|configured"
    r"|allowed)[\s_-](?:\w{1,12}[\s_-]){0,2}?context[\s_-](?:length|window|size|limit)(?: limit)?"
    r"(?:[^\n\d\w]{0,3}| is| of| is only| of only|[^\n\d.]{1,30} is)[\s:(=]{0,3}#",
    r"(?<!remaining )context[\s_-](?:length|window|size|limit|capacity)(?: limit| size)?"
    r"(?:\s?(?:is|of|to|:|=|>=?|\())?(?: only)?[\s:(=]{0,3}#",
    r"#(?: tokens)? (?:maximum )?context (?:length|window)",
    r"max(?:imum)?[\s_-](?:allowed )?(?:prompt|model|input|sequence|seq|total|num|prompt_)[\s_-]?(?:token "
    r"|input )?(?:tokens?|length|len|limit|size)?"
    r"(?:\s?(?:is|of|:|=|\())?(?: only)?[\s:(=]{0,3}#",
    r"maximum number of (?:input )?tokens(?: allowed)?[\s:(]{0,4}#",
    r"range of input length should be \[\d+, ?#",
    r"(?:token|input|model|configured|length|tokens|internal)[\s_-](?:token )?limit(?: of| is|:|\s\()?[\s:(]{0,3}#",
    r"(?:while|total|(?<!remaining context )window) limit(?: is)? ?\(?#",
    r"(?:exceeds?|exceeded|over) the (?:\w{1,12} ){0,4}(?:limit|maximum|max|maximum length|context)(?: of)?[\s:(]{0,3}#",
    r"(?:must have less than|cannot exceed|no more than|must be <=?|only supports? up to|supports? up to|up to"
    r"|exceed model maximum|cannot be more than|must be less than|model window|prompt limit of)[\s(]{1,3}#",
    r"session_len[\s:=(]{1,3}#",
    r"max(?:imum)? size: # tokens",
    r"maximum of # (?:input )?tokens",
    r"max tokens(?: of|:|) # ?(?:exceeded|\.|$)",
    r"max(?:imum)? is #",
    r"limit(?: of| is| for this model is|:)? #(?: tokens)?",
    r"max(?:imum)? context(?: is| of|:)? ?\(?#",
    r"[,(;] ?(?:the )?max(?:imum)?:? #|(?:greater|longer|larger) than #|length exceeded: #",
    r"(?:allowed|maximum) number of (?:\w{1,8} )?tokens is #",
    r"max(?:imum)?[\s_](?:token|context|prompt|input)[\s_](?:count|len|length|size)(?: of| is|:|) ?#",
    r"the # (?:token|context|per-request) limit|#-token (?:budget|window|limit|context)",
    r"limit for the (?:input|prompt) is #|maximum allowed for model \S{1,60} \(?#|allocation \(#",
    r"too long > #|(?:larger|greater|longer) than [^\n\d]{1,40} #|\d{3} ?(?:tokens )?(?:of|/) ?#(?: tokens| context|\W|$)",
    r"must be (?:smaller|less|shorter|lower)[^\n\d]{3,60}\(?#",
    r"exceeds? (?:[\w']{1,12} ){0,3}(?:maximum|limit|max|context (?:window|length|size))[^\n\d]{0,4}#",
    r"(?:greater|longer|larger) than (?:the )?(?:[\w']{1,12} ){0,4}(?:max\w{0,10}|limit|length|window)[^\n\d]{0,12}#",
    r"allowed(?: is|:|) #|allowed (?:token|input|prompt) (?:size|length|count)(?: is| of|:|) #",
    r"model maximum \(#\)",
    r"exceed(?:s|ed)? #(?= tokens|\W*$)",
    r"\b(?:kontext\w{0,10}|contexto|contexte)\b\D{0,12}#|максимум[^\n\d]{0,12}#",
    r"最大[^\n\d]{0,12}#|上限[^\n\d]{0,6}#|限制[^\n\d]{0,4}#",
    r"(?:maximum allowed length of|only supports|maxTokens\() ?#|# available",
    r"exceeds? (?:[\w']{1,12} ){0,3}max(?:imum)? length[^\n\d]{0,4}#",
    after=r"(?!\s*(?:>|\+|requested))",
)
_PROMPTS = _numbered(
    r"n_prompt_tokens\\{0,8}[\"']?[\s:=(]{1,4}#",
    r"#\s{0,3}[+ ]\s{0,3}[\d,]{1,15}\s{0,9}>\s{0,9}\d",
    r"(?:prompt|input|request|context)(?: is)? too (?:long|large|big)[:,(\s]{1,3}#",
    r"(?:messages|prompt|input|request|conversation) (?:resulted in|contain(?:s|ed)?|has|have|is|uses?|had|needs?)"
    r"(?: about| already)? # (?:input |prompt )?tokens",
    r"(?:passed|your request has|received|recieved|counted|provided|supplied|contains|given|got)"
    r" #(?: input| prompt)? ?(?:tokens|`inputs`|$|[.)])",
    r"(?:given|current length is|your tokens|request input token count|prompt_len|received|got)[\s:=]{1,3}#",
    r"(?<!maximum )(?<!max )(?<!allowed )(?<!total )"
    r"(?:prompt|input)[\s_](?:token )?(?:tokens?|length|len|size|count)(?:[\s_](?:count|length))?"
    r"(?: [a-z]{1,8})?(?: is| of|:|=)?[\s(]{0,2}#",
    r"(?:number|count|total) of (?:input |prompt )?tokens(?: in the (?:prompt|input))?(?: is|:|)[\s(]{1,3}#",
    r"(?:request|prompt|input|sequence|context|message)s? \((?:total )?(?:length )?#(?: tokens)?\)",
    r"(?:prompt|context|sequence|input)(?: of)?(?: length)?(?: of)?[\s(~]{1,3}#(?: tokens)?\)? (?:tokens )?(?:is|exceeds?|>)",
    r"(?:requested|input|prompt|total) tokens? \(?#\)?",
    r"contains (?:approximately|about|roughly|over) # tokens|than allowed: # tokens|# requested",
    r"n_keep[\s:=(]{1,3}#|length of input text: #|text \(~?# tokens?\)",
    r"keep the first # tokens",
    r"(?:estimated|token|requested|tokens?)(?: token)? (?:count|number)(?: of| is|:|)[\s(]{1,3}#",
    r"\(requested:? #",
    r"#(?: input| prompt)? tokens (?:exceeds?|in (?:the|your) (?:prompt|request|input|messages))",
    r"#,? (?:tokens )?model maximum context",
    r"(?:^|[^\d,.])# tokens > ",
    r"(?<![+\d,.] )(?<![+\d,.])# ?(?:tokens ?)?>=? ?\d",
    r"共?\s?# ?(?:个)?\s?tokens?[^\n]{0,6}超|(?:输入|提示|上下文|序列)[^\n\d]{0,8}#",
    r"# ?(?:tokens ?)?(?:of|/) ?~?\d|(?<![a-z])n_tokens[\s=:(]{1,2}#|input_ids\w{0,12}\)?[\s=]{0,2}\(?#",
    r"too many tokens: #|содержит #",
)
_INPUTS = _numbered(
    r"(?<!/)# (?:tokens )?(?:in|from|of) (?:the |your |)(?:input )?(?:messages|prompt|input|functions|tools?"
    r"|text input|tool input|image input)\b",
    r"(?:prompt|request|input) (?:contains|has) # (?:input )?tokens",
    r"(?:given:|you passed) # (?:`?inputs`?|input) tokens",
)
_SUM = re.compile(r"(\d[\d,]{0,15})\s{0,3}[+ ]\s{0,3}(\d[\d,]{0,15})\s{0,9}>\s{0,9}(\d[\d,]{0,15})")
_LABELLED = re.compile(
    r"(?:prompt|input|messages)\D{0,20}(\d[\d,]{0,15})(?:\.0\), query length \(0)?\D{0,10}(?:\+|\bplus\b|\band\b)\D{0,40}\d",
    re.I,
)
_OUTPUT = re.compile(r"completion|output|max(?:imum)?_\w{0,12}tokens|max (?:new )?tokens", re.I)
_BOUND = re.compile(r"(?:contains|has) at least (\d[\d,]{0,15}) input tokens", re.I)
_SANE = range(64, 1 << 28)
_CODES = {1039, 1261, 2013}
"""Providers' codes that stand in brackets where a size could."""


def named_window(words: str) -> int:
    """The window in tokens that a refusal names; 0 where it names none."""
    return next((tokens for pattern in _WINDOWS for tokens in _found(pattern, words)), 0)


def named_prompt(words: str) -> int:
    """The prompt in tokens as the server counted it; 0 where it names none, or only a lower bound, or what the output is to
    add to it and cannot be told apart."""
    if _BOUND.search(words):
        return 0
    parts = _input_parts(words)
    if parts:
        return parts
    window = named_window(words)
    return next((t for pattern in _PROMPTS for t in _found(pattern, words) if t != window), 0)


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
    given = _input_parts(words)
    if not given:
        labelled = _LABELLED.search(words)
        given = _number(labelled[1]) if labelled else 0
    return max(0, window - given) if window and given else 0


def _input_parts(words: str) -> int:
    """The sum of what messages, functions and prompt are said to be."""
    return sum(_number(text) for pattern in _INPUTS for text in dict.fromkeys(m[1] for m in pattern.finditer(words)))


def _found(pattern: re.Pattern[str], words: str) -> list[int]:
    """The numbers a pattern finds that can be tokens of a prompt or a window."""
    numbers: list[int] = []
    for match in pattern.finditer(words):
        digits, *unit = [group for group in match.groups() if group]
        tokens = _number(digits) * ({"k": 1000, "m": 1_000_000}[unit[0].lower()] if unit else 1)
        if tokens in _SANE and tokens not in _CODES:
            numbers.append(tokens)
    return numbers


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
