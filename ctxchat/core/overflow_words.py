"""The words in which servers refuse a prompt as too long, and those they use for what only looks like it.

By meaning, not by provider: what was too much, of what, and which limit it met. Knows nothing of errors or objects.
Every pattern has bounded gaps, so that its time grows with the text's length and no faster.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I)


# ── codes ──

OVERFLOW_CODE = re.compile(
    r"(?!.*(?:deadline|timeout|rate|quota|image|file|output|completion|param|not_?found|budget_?exceeded))"
    r"(?:.*(?:context|prompt|input(?!_?valid)|max_?model_?len).*"
    r"(?:exceed|too_?(?:long|large|many|big)|overflow|out_?of|limit_?(?:reached|exceeded|error)|length_?error|exhausted)"
    r"|.*(?:exceed|out_?of|too_?long).*context|tokens?_?limit_?reached)",
    re.I,
)
"""A code or type that says it: `context_length_exceeded`, `exceed_context_size_error`, `PromptTooLong`, `OutofContextError`."""

OVERFLOW_NUMBERS = {"1261", "336007", "336103", "10907"}
"""The same as numbers: Zhipu; Baidu's two; iFlytek."""

SIZE_CODE = re.compile(
    r"(?:request|payload|body|content|entity)_?(?:entity_?)?too_?large(?:_?error)?|payloadtoolarge\w*", re.I
)

DENIED_CODE = re.compile(
    r"rate_?limit|too_?many_?requests|throttl|quota|billing|balance|credit|payment|arrear|api_?key|auth|permission|forbidden"
    r"|access_?denied|content_?(?:filter|policy|management)|responsible|moderation|safety|sensitive|data_?inspection"
    r"|not_?found|overloaded|time_?out|deadline|^tokens$|^requests$|above_max_length|usage_?limit|budget_?exceeded"
    r"|image_|unsupported|unknown_parameter",
    re.I,
)

# ── what is never an overflow, whatever else the text says ──

_RATE = (
    r"rate[\s_-]{0,2}limit",
    r"too many (?:concurrent )?requests",
    r"\btokens?[\s_-]{0,2}(?:per|/)[\s_-]{0,2}(?:min|hour|day|sec|month|week)",
    r"(?:requests|inputs?|calls)[\s_-]{0,2}(?:per|/)[\s_-]{0,2}(?:min|hour|day|sec)",
    r"per[ -](?:minute|hour|day)\b|\b(?:TPM|RPM|TPD|RPD|QPS|QPM|ITPM)\b",
    r"throttl|too many tokens,? please wait|please (?:wait|slow down)|before trying again",
    r"resource(?:[\s_-]has been)?[\s_-]?exhausted|concurren(?:cy|t) (?:request )?limit|usage limit|(?:daily|weekly|monthly) limit",
    r"extra usage is required|too many tokens in (?:the last|a)|in this interval",
    r"频率|频繁|限流|每分钟|每秒|每天|并发|速率|限速|レート制限|요청 한도",
)
_QUOTA = (
    r"\bquota|insufficient[\s_-]?(?:funds|balance|credit|user)|credit balance|credit[- ]?limit|\bbilling\b|payment required",
    r"(?:more|out of|add|purchase|available|remaining) credits|can only afford|spend(?:ing)? limit|budget (?:has been )?exceeded",
    r"free[ -](?:tier|plan|allocation)|budgetexceeded|current plan",
    r"余额|欠费|额度|配额|充值|套餐",
)
_AUTH = (
    r"(?:invalid|incorrect|missing|expired|wrong|no|your|bad)[\s_]{0,2}(?:\w{1,10} )?api[\s_-]?key|authenticat|unauthori[sz]ed",
    r"permission[\s_-]?denied|access denied|forbidden|not authori[sz]ed|invalid (?:access )?token\b|token (?:is |has )?expired",
    r"\bjwt\b|鉴权|密钥|无权|未授权|令牌(?:无效|已过期)|access token",
)
_FILTER = (
    r"content[\s_-]{0,2}(?:filter|polic|management|moderation)|responsible ?ai|safety (?:system|filter|setting|polic)|\bflagged\b",
    r"policy violation|harmful|inappropriate|moderation|blocked (?:by|due|for)|敏感|违规|安全(?:策略|审核|检查)|不合规",
)
_MISSING = (
    r"model\b.{0,80}(?:not found|does(?: not|n't) exist|not exist|is not (?:a valid|available|supported)|has been deprecated)",
    r"(?:no such|unknown|unsupported|invalid) model|model[\s_]not[\s_]found|模型不存在|deploymentnotfound",
    r"(?:unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extraneous|missing required) (?:\w{1,12} )?"
    r"(?:parameter|argument|field|keyword|key|option|property|value)",
    r"extra inputs are not permitted|additional propert|not permitted|field required|is not supported (?:by|with|for|on) this",
    r"does not support (?:the )?(?:parameter|context_)",
)
_FORM = (
    r"string[\s_]too[\s_]long|string_above_max_length|array[\s_]too[\s_]long|above_max_length|invalid '(?:tools|user|metadata|stop)",
    r"too many (?:inputs|tools|images|files|functions|stop|messages in|items|documents|texts|attachments|videos|choices|columns)",
    r"(?:number|amount|count) of (?:tools|functions|images|files|stop|documents|texts|inputs in)\b.{0,40}(?:exceed|limit|max|must|more)",
    r"(?:batch|array|list)[\s_]?(?:size|length|of)?\b.{0,40}(?:exceed|too (?:large|long|big|many)|larger than|must be|greater than|maximum)",
    r"(?:header|cookie|ur[li]|uri|file ?name|name|description|metadata|id|user|title|stop sequence|schema|enum|grammar)s?"
    r"(?: \S{1,30})?(?: \S{1,30})? (?:is |are )?(?:too (?:long|large|big|many|complex)|exceeds?)",
    r"/texts/\d|maxItems|grammar compilation|max_tokens_per_doc",
    r"context (?:window|length|size) (?:is )?too small|minimum is \d|is too short",
    r"context (?:deadline|cancel)|deadline[\s_]exceeded|timed? ?out|timeout",
    r"out of memory|insufficient memory|not enough memory|cuda error|failed to (?:load|allocate)|requires more (?:system )?memory",
    r"context_length must|n_ctx must|num_ctx must",
)
_MEDIA = re.compile(
    r"\b(?:images?|photos?|pictures?|files?|audio|videos?|pdfs?|documents?|attachments?|uploads?|base64|data-?uri|pixels?|dimensions?"
    r"|图片|图像|文件|视频|音频)\b.{0,90}(?:too (?:large|long|big|many)|exceed|larger than|maximum|limit|at most|over\b|超过|超出|过大|大于)"
    r"|(?:图片|图像|文件|视频|音频).{0,20}(?:超过|超出|过大|大于|太大)|max bytes|megapixel"
    r"|(?:too (?:large|big)|exceed\w{0,3}|larger than|limit)\b[^\n]{0,40}\b(?:images?|audio|videos?|files?|uploads?|attachments?)\b",
    re.I,
)
_TOKENS = re.compile(r"\btokens?\b|context|prompt (?:is|too)|上下文", re.I)
_DENIALS = _any(*_RATE, *_QUOTA, *_AUTH, *_FILTER, *_MISSING, *_FORM)

# ── the output's limit ──

_OUTPUT_NAME = r"(?!max tokens of \d+ exceeded)max[\s_]?(?:completion|new|output|gen|response)?[\s_]?tokens(?:[\s_]?to[\s_]?sample)?|maxoutputtokens|maxtokens|max_length_to_generate|num_predict"
_OUTPUT = _any(
    _OUTPUT_NAME,
    r"maximum (?:number of )?(?:output |completion |new )?tokens you requested|budget_tokens|thinking[._ ]budget",
    r"(?:output|completion|response|generated|reply)[\s_](?:tokens?|length|limit)",
    r"最大输出|输出长度|输出token",
)
_INPUT_TOO = _any(
    r"\b(?:prompt|messages|input|inputs|question)\b.{0,160}(?:max_\w{0,12}tokens|completion|output|prediction)",
    r"(?:max_\w{0,12}tokens|completion|output|prediction|answering).{0,200}\b(?:prompt|messages|input|inputs|context length of your)\b",
    r"max_\w{0,12}tokens.{0,30}(?:would )?exceeds?.{0,30}context",
    r"the length of the (?:messages|prompt|input)",
)
_MEASURED = _any(
    r"context|max_model_len|max_seq_len|maximum (?:model|sequence|total|input|prompt)|total|sum|must be <=|cannot exceed|exceed",
)

# ── the prompt is too long ──

_SUBJECT = (
    r"(?:prompts?|inputs?|requests?|requested|messages?|conversation|chat|history|context|sequence|query|text|instruction|content|question"
    r"|tokens?|payload|length of (?:the |your )?(?:prompt|input|messages)|input_ids|token ?count)"
)
_EXCEEDS = (
    r"(?:exceed(?:s|ed|ing)?|surpass(?:es|ed)?|over(?:flow(?:s|ed|ing)?|runs?|ran)|(?:is|are|was|were)? ?(?:longer|larger|greater|bigger|higher|more) than"
    r"|(?:goes|went|is|are) (?:over|beyond|above|past)|>=?|beyond|does(?: not|n't) fit|do(?: not|n't) fit|cannot fit|won't fit|reached|hit)"
)
_WINDOW = (
    r"(?:context[\s_-]?(?:length|window|size|limit|budget|capacity|tokens)?|max[\w ]{0,20}(?:length|tokens|len|context|size|limit)"
    r"|maximum(?: (?:context|input|prompt|model|sequence|allowed|number|token|total)){1,3}|token[\s_-]?limit|input[\s_-](?:length|limit|token)"
    r"|n_ctx|num_ctx|session_len|model(?:'s)? (?:maximum|max|limit|context)|limit of \d|kv[\s-]?cache|cache size|sequence length|length limit"
    r"|max_?(?:model|seq|input|prompt|total|num)_?\w{0,12}|supported (?:length|context|tokens)|allowed (?:length|tokens|limit)|dimension size)"
)
EXPLICIT = _any(
    # something exceeds a window, or a window is exceeded
    rf"\b{_SUBJECT}\b[^\n]{{0,90}}?\b{_EXCEEDS}[^\n]{{0,60}}?\b{_WINDOW}",
    r"context[\s_-]?(?:length|window|size|limit|budget)[^\n.]{0,50}(?:exceed|overflow|reached|too (?:long|large)|is full|was full|surpass)",
    r"exceed\w{0,3}[^\n.]{0,60}context[\s_-]?(?:length|window|size|limit|budget)|overflow\w{0,3} (?:the )?context",
    r"context (?:overflow(?:ed)?(?: error)?(?=\W*$|\s*[:(\n])|is full|full\b|exhausted|too (?:long|large))|(?:ran|run|running) out of (?:the )?context",
    r"context_?(?:length|window|size)_?exceeded|contextwindowexceeded|contextlengthexceeded|context_window_exceeded|exceed_context_size",
    r"larger than (?:the )?(?:model'?s? )?context|(?:not enough|insufficient|no) (?:space|room|context)[^\n.]{0,30}context|context shift is disabled",
    # a window is told, and what was asked for
    r"maximum (?:allowed )?(?:context|prompt|model|input|sequence|token)[\s_-](?:length|window|size)?\s?(?:is|of|was|:|=|\()",
    r"max(?:imum)? (?:input|prompt|context)[\s_-](?:length|tokens?|characters)[^\n]{0,30}\d",
    r"context[\s_-](?:length|window|size)[^\n]{0,30}\d[\d,]*k?(?: tokens)?[^\n]{0,40}(?:requested|but|however|given|got|received|your)",
    r"context length is only|configured context size|current length is \d[^\n]{0,40}limit|length[^\n]{0,20}while limit is",
    # too long, too many
    rf"\b{_SUBJECT}\b(?![^\n]{{0,30}}(?:header|image))[^\n]{{0,60}}?\btoo[\s_-](?:long|big|large (?:for|to|\(|:|by)|many (?:input |prompt )?tokens)",
    r"\btoo[\s_-]many[\s_-](?:input[\s_-]|prompt[\s_-]|total[\s_-])?tokens|too many (?:input )?characters|\b(?:prompt|input|context)[\s_-]too[\s_-](?:long|large|big)",
    r"(?:prompt|inputs?|messages|conversation|context|text|query)\b[^\n.]{0,40}\bare? ?(?:is )?too (?:long|large|big)\b",
    # the number of tokens, and what it may be
    r"(?:input|prompt|context|message|total|request\w{0,2})[\s_-](?:and output )?(?:tokens?|length)[^\n]{0,60}(?:exceed|cannot|must (?:be|not)|should (?:be|not)|over|limit|longer|more than|less than|at most)",
    r"tokens?[\s_-](?:count|limit|length|size)[^\n.]{0,50}(?:exceed|over|surpass|too|reached)|exceed\w{0,3}[^\n.]{0,40}token[\s_-]?limit",
    r"\d tokens? (?:>|exceeds?|is (?:more|greater|larger|longer) than)|over the (?:model'?s? )?(?:token|context) limit",
    r"`?inputs?`? must have less than|range of input length|number of (?:input |prompt )?tokens[^\n]{0,60}(?:exceed|must|cannot|more than|greater|larger)",
    r"max(?:imum)? size:? \d[\d,]* tokens|expected maxlength: \d+, actual: \d+",
    r"(?:reduce|shorten|trim|decrease|truncate)[^\n.]{0,30}(?:length|size|number|amount)? ?(?:of )?(?:the |your )?\b(?:prompt|messages|input|context|conversation|history)\b",
    r"(?:use|try|with|provide) (?:a |using a )?shorter (?:prompt|input|message|context|conversation)",
    r"cannot truncate prompt|n_keep\b[^\n]{0,20}>=?\s?n_ctx|tokens to keep from the initial prompt|trying to keep the first \d+ tokens",
    r"prompt (?:length|tokens?|size)[^\n]{0,60}(?:exceed|greater|larger|longer|more than|over|>)|slot context|n_ctx_slot",
    r"would need more than|start \(\d+\) \+ length \(\d+\) exceeds|indices sequence length is longer|input_?length_?error|inputlengtherror",
    r"(?:prompt|inputs?|messages|tokens)\b[^\n]{0,40}\+[^\n]{0,60}(?:must be|exceed|cannot|[<>])|max tokens of \d+ exceeded",
    # other languages
    r"(?:上下文|输入|提示词|提示|prompt|请求|消息|内容|文本|对话|会话|tokens?|token数|长度|字数|messages)[^\n。]{0,30}(?:超过|超出|超限|过长|太长|超长|过大|大于|达到上限|超標|過長)",
    r"(?:超过|超出|超過)[^\n。]{0,20}(?:最大)?[^\n。]{0,6}(?:上下文|长度|token|字数|上限|长|長)|请?(?:压缩|缩短|精简|减少)[^\n。]{0,6}(?:上下文|输入|提示|对话|内容)",
    r"(?:コンテキスト|入力|プロンプト|トークン)[^\n。]{0,30}(?:超え|超過|長すぎ|上限|オーバー)",
    r"(?:컨텍스트|입력|프롬프트|토큰)[^\n]{0,30}(?:초과|깁니다|너무)",
    r"(?:контекст|запрос|промпт|токен|сообщени)\w{0,6}[^\n]{0,40}(?:превы|слишком|больше)|превы\w{0,8}[^\n]{0,40}(?:контекст|токен|длин)",
    r"(?:contexte?o?|prompt|eingabe|kontext\w{0,8}|entrada|anfrage|requête|mensaje|solicitud)\b[^\n]{0,40}(?:excede|supera|dépasse|überschr|zu lang|zu groß|trop long|demasiado larg|muito long)",
)

SIZE = _any(
    r"(?:request|payload|content|entity|body|message)(?: (?:entity|body|size|content|payload))?(?: is| was)?[\s_]too[\s_](?:large|big)",
    r"request_too_large|payloadtoolarge|(?:request|payload|body|message)(?: body| payload)? (?:size |length )?(?:exceed\w{0,3}|is (?:larger|greater|bigger) than)",
    r"exceeds? the maximum (?:allowed )?(?:request |payload |body )?size|maximum (?:request|payload|body) (?:body )?size|max(?:imum)? content[- ]?length|larger than max",
    r"request size (?:limit|is)|请求体(?:过大|超过)",
)
"""A body refused for its size: an overflow where our count does not speak against it."""

WEAK = _any(
    r"max_\w{0,12}tokens must be at least 1, got -\d+|default_max_tokens \(-\d+\)",
    r"^\W*(?:error:?\s*)?(?:token limit|input error|invalid input length)\W*$",
)
"""Says nothing alone; an overflow where the prompt by our count is near the window."""

BARE = re.compile(
    r"\A[\s\W]*(?:(?:litellm\.)?\w*(?:error|exception)\w*[\s:\-]{1,4}){0,3}(?:error code|client error|http error|http|request failed with"
    r" status code|status code|error)?[\s:'\"]{0,3}(?:400)?[\s:'\"\-]{0,4}(?:status code)?\s*(?:\(no body\)|bad request|none|null|\{\}|no body|error)?"
    r"(?:['\"]? for url.{0,300})?[\s\W]*\Z",
    re.I | re.S,
)
"""A refusal without a reason: «Bad Request», «400 status code (no body)», nothing at all."""


def denied(words: str) -> bool:
    """True where a text speaks of something that is no overflow, whatever numbers and words stand beside it."""
    if _DENIALS.search(words):
        return True
    lines = words.split("\n")
    if any(_MEDIA.search(line) and not _TOKENS.search(line) for line in lines):
        return True
    return bool(_OUTPUT.search(words)) and not any(_both(line) for line in lines)


def _both(line: str) -> bool:
    """True where a line speaks of input and output together, against what holds both."""
    return (
        not _OUTPUT.search(line)
        and bool(EXPLICIT.search(line))
        or bool(_INPUT_TOO.search(line) and _MEASURED.search(line))
    )
