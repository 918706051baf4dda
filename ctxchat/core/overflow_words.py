"""The words in which servers refuse a prompt as too long.

By meaning, not by provider: what was too much, that it was too much, and which limit it met. Knows nothing of errors or
objects. Every gap in a pattern is bounded, so that its time grows with the text's length and no faster.
"""

from __future__ import annotations

import re


def either(*patterns: str) -> re.Pattern[str]:
    """One pattern for any of several, whatever the case."""
    return re.compile("|".join(patterns), re.I)


CODE = re.compile(
    r"(?!.*(?:deadline|timeout|rate|quota|image|file|output|completion|param|not_?found|budget_?exceeded))"
    r"(?:.*(?:context|prompt|input|max_?model_?len).*"
    r"(?:exceed|too_?(?:long|large|many|big)|overflow|out_?of|limit_?(?:reached|exceeded|error)|length_?error|exhausted)"
    r"|.*(?:exceed|out_?of|too_?long).*context|tokens?_?limit_?reached)",
    re.I,
)
"""A code or type that says it: `context_length_exceeded`, `exceed_context_size_error`, `PromptTooLong`, `OutofContextError`."""

NUMBERS = {"1261", "336007", "336103", "10907"}
"""The same as numbers: Zhipu's; Baidu's two; iFlytek's."""

SIZE_CODE = re.compile(
    r"(?:request|payload|body|content|entity)_?(?:entity_?)?too_?large(?:_?error)?|payloadtoolarge\w*", re.I
)

_TOO_MUCH = (
    r"(?:prompts?|inputs?|requests?|requested|messages?|conversation|chat|history|context|sequence|query|text|instructions?"
    r"|content|question|tokens?|payload|input_ids|token ?count)"
)
_EXCEEDS = (
    r"(?:exceed(?:s|ed|ing)?|surpass(?:es|ed)?|over(?:flow(?:s|ed|ing)?|runs?|ran)|(?:longer|larger|greater|bigger|higher|more) than"
    r"|(?:goes|went|is|are) (?:over|beyond|above|past)|>=?|beyond|(?:does|do)(?: not|n't) fit|cannot fit|won't fit|reached|hit)"
)
_WINDOW = (
    r"(?:context[\s_-]?(?:length|window|size|limit|budget|capacity|tokens)?|max[\w ]{0,20}(?:length|tokens|len|context|size|limit)"
    r"|maximum(?: (?:context|input|prompt|model|sequence|allowed|number|token|total)){1,3}|token[\s_-]?limit"
    r"|input[\s_-](?:length|limit|token)|n_ctx|num_ctx|session_len|model(?:'s)? (?:maximum|max|limit|context)|limit of \d"
    r"|kv[\s-]?cache|cache size|sequence length|length limit|max_?(?:model|seq|input|prompt|total|num)_?\w{0,12}"
    r"|(?:supported|allowed) (?:length|context|tokens|limit)|dimension size)"
)
_CONTEXT = r"context[\s_-]?(?:length|window|size|limit|budget)"
_EXCEEDED = (
    rf"\b{_TOO_MUCH}\b[^\n]{{0,90}}?\b{_EXCEEDS}[^\n]{{0,60}}?\b{_WINDOW}",
    rf"{_CONTEXT}[^\n.]{{0,50}}(?:exceed|overflow|reached|too (?:long|large)|is full|was full|surpass)",
    rf"exceed\w{{0,3}}[^\n.]{{0,60}}{_CONTEXT}|overflow\w{{0,3}} (?:the )?context|larger than (?:the )?(?:model'?s? )?context",
    r"context[\s_-]overflow(?:ed)?(?: error)?(?=\W*$|\s*[:(\n])|context (?:is full|full\b|exhausted|too (?:long|large))",
    r"context_?(?:length|window|size)_?exceeded|exceed_context_size|(?:ran|run|running) out of (?:the )?context",
    r"(?:not enough|insufficient|no) (?:space|room)[^\n.]{0,30}context|context shift is disabled|slot context|n_ctx_slot",
    r"(?:find|found) (?:a |no )?(?:free space in the )?kv (?:cache )?slot|free space in the kv cache",
    r"cannot truncate prompt|n_keep\b[^\n]{0,20}>=?\s?n_ctx|tokens to keep from the initial prompt|trying to keep the first \d+",
)
_TOLD = (
    r"maximum (?:allowed )?(?:context|prompt|model|input|sequence|token)[\s_-](?:length|window|size)?\s?(?:is|of|was|:|=|\()",
    r"max(?:imum)? (?:input|prompt|context)[\s_-](?:length|tokens?|characters)[^\n]{0,30}\d|maximum context length",
    r"context[\s_-](?:length|window|size)[^\n]{0,30}\d[\d,]*k?(?: tokens)?[^\n]{0,40}"
    r"(?:requested|but|however|given|got|received|your)",
    r"context length is only|context length only supports|configured context size",
    r"current length is \d[^\n]{0,40}limit|length[^\n]{0,20}while limit is|range of input length",
)
_TOO_LONG = (
    rf"\b{_TOO_MUCH}\b(?![^\n]{{0,30}}(?:header|image))[^\n]{{0,60}}?\btoo[\s_-]"
    r"(?:long|big|large (?:for|to|\(|:|by)|many (?:input |prompt )?tokens)",
    r"\btoo[\s_-]many[\s_-](?:input[\s_-]|prompt[\s_-]|total[\s_-])?tokens|too many (?:input )?characters",
    r"\b(?:prompt|input|context)[\s_-]too[\s_-](?:long|large|big)|input_?length_?error",
    r"(?:prompt|inputs?|messages|conversation|context|text|query)\b[^\n.]{0,40}\bare? ?(?:is )?too (?:long|large|big)\b",
    r"(?:reduce|shorten|trim|decrease|truncate)[^\n.]{0,30}(?:length|size|number|amount)? ?(?:of )?(?:the |your )?"
    r"\b(?:prompt|messages|input|context|conversation|history)\b",
    r"(?:use|try|with|provide) (?:a |using a )?shorter (?:prompt|input|message|context|conversation)",
    r"invalid '(?:messages|input|prompt)[^'\n]{0,60}': string too long",
)
_TOKENS = (
    r"(?:input|prompt|context|message|total|request\w{0,2})[\s_-](?:and output )?(?:tokens?|length)[^\n]{0,60}"
    r"(?:exceed|cannot be (?:more|greater|longer|larger)|\bover\b|limit|longer|more than|less than|at most"
    r"|(?:must|should)(?: not)? be (?:less|fewer|no more|at most|within|between|smaller|lower|under|longer|greater|more|in|<))",
    r"tokens?[\s_-](?:count|limit|length|size)[^\n.]{0,50}(?:exceed|\bover\b|surpass|too|reached)",
    r"exceed\w{0,3}[^\n.]{0,40}token[\s_-]?limit|over the (?:model'?s? )?(?:token|context) limit",
    r"\d tokens? (?:>|exceeds?|is (?:more|greater|larger|longer) than)|max(?:imum)? size:? \d[\d,]* tokens",
    r"`?inputs?`? must have less than|number of (?:input |prompt )?tokens[^\n]{0,60}(?:exceed|must|cannot|more than|greater|larger)",
    r"prompt (?:length|tokens?|size)[^\n]{0,60}(?:exceed|greater|larger|longer|more than|\bover\b|>)",
    r"(?:prompt|inputs?|messages|tokens)\b[^\n]{0,40}\+[^\n]{0,60}(?:must be|exceed|cannot|[<>])|max tokens of \d+ exceeded",
    r"expected maxlength: \d+, actual: \d+|start \(\d+\) \+ length \(\d+\) exceeds|indices sequence length is longer",
)
_TONGUES = (
    r"(?:上下文|输入|提示词?|请求|消息|内容|文本|对话|会话|长度|字数|prompt|tokens?|messages)[^\n。]{0,30}"
    r"(?:超过|超出|超限|过长|太长|超长|过大|大于|达到上限|超標|過長)",
    r"(?:超过|超出|超過)[^\n。]{0,26}(?:上下文|长度|token|字数|上限|长|長)",
    r"(?:压缩|缩短|精简|减少)[^\n。]{0,6}(?:上下文|输入|提示|对话|内容)",
    r"(?:コンテキスト|入力|プロンプト|トークン)[^\n。]{0,30}(?:超え|超過|長すぎ|上限|オーバー)",
    r"(?:컨텍스트|입력|프롬프트|토큰)[^\n]{0,30}(?:초과|깁니다|너무)",
    r"(?:контекст|запрос|промпт|токен|сообщени)\w{0,6}[^\n]{0,40}(?:превы|слишком|больше)",
    r"превы\w{0,8}[^\n]{0,40}(?:контекст|токен|длин)",
    r"(?:contexte?o?|prompt|eingabe|kontext\w{0,8}|entrada|anfrage|requête|mensaje|solicitud)\b[^\n]{0,40}"
    r"(?:excede|supera|dépasse|überschr|zu lang|zu groß|trop long|demasiado larg|muito long)",
)
EXPLICIT = either(*_EXCEEDED, *_TOLD, *_TOO_LONG, *_TOKENS, *_TONGUES)
"""Says that a prompt was too long: something exceeds a window, a window is told, something is too long, too many tokens."""

SIZE = either(
    r"(?:request|payload|content|entity|body|message)(?: (?:entity|body|size|content|payload))?(?: is| was)?[\s_]too[\s_](?:large|big)",
    r"request_too_large|payloadtoolarge|larger than max|request size (?:limit|is)|请求体(?:过大|超过)",
    r"(?:request|payload|body|message)(?: body| payload)? (?:size |length )?(?:exceed\w{0,3}|is (?:larger|greater|bigger) than)",
    r"exceeds? the maximum (?:allowed )?(?:request |payload |body )?size|maximum (?:request|payload|body) (?:body )?size",
)
"""A body refused for its size: an overflow where our count does not speak against it."""

WEAK = either(
    r"max_\w{0,12}tokens must be at least 1, got -\d+|default_max_tokens \(-\d+\)",
    r"^\W*(?:error:?\s*)?(?:token limit|input error|invalid input length)\W*$",
)
"""Says nothing alone; an overflow where the prompt by our count is near the window."""

BARE = re.compile(
    r"\A[\s\W]*(?:(?:litellm\.)?\w{0,60}(?:error|exception)\w{0,20}[\s:\-]{1,4}){0,3}"
    r"(?:error code|client error|http error|http|request failed with status code|status code|error)?[\s:'\"]{0,3}(?:400)?"
    r"[\s:'\"\-]{0,4}(?:status code)?\s{0,2}(?:\(no body\)|bad request|none|null|no body|error)?"
    r"(?:['\"]? for url.{0,300})?[\s\W]*\Z",
    re.I | re.S,
)
"""A refusal without a reason: «Bad Request», «400 status code (no body)», nothing at all."""
