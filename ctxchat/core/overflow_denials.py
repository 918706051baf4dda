"""What a refusal speaks of when it is no overflow, whatever numbers and words stand beside it: rates, quotas, keys, filters,
models, parameters, pictures, the output's limit. Knows nothing of errors or objects; every gap in a pattern is bounded.
"""

from __future__ import annotations

import re

from ctxchat.core.overflow_words import either, too_long

CODE = either(
    r"rate_?limit|too_?many_?requests|throttl|quota|usage_?limit|max_tokens_per|^tokens$|^requests$|overloaded",
    r"billing|insufficient_?(?:balance|funds|credit|user)|credit|payment|arrear|budget_?exceeded",
    r"api_?key|authenti|unauthori|^auth|permission|forbidden|access_?denied",
    r"content_?(?:filter|policy|management)|responsible|moderation|safety|sensitive|data_?inspection",
    r"not_?found|time_?out|deadline|unsupported|unknown_parameter|invalid_image|image_(?:too|parse|size)",
)
"""In a code or type field."""

_RATE = (
    r"(?<!\w-)rate[\s_-]{0,2}limit|too many (?:concurrent )?requests|throttl"
    r"|resource(?:[\s_-]has been)?[\s_-]?exhausted",
    r"(?:\btokens?|requests|inputs?|calls)[\s_-]{0,2}(?:per|/)[\s_-]{0,2}(?:min|hour|day|sec|month|week)",
    r"per[ -](?:minute|hour|day)\b|\b(?:TPM|RPM|TPD|RPD|QPS|QPM|ITPM)\b|(?<!-)\b(?:daily|weekly|monthly|hourly)\b"
    r"|\busage\b.{0,20}limit|\brate of\b",
    r"too many tokens,? please wait|too many tokens in (?:the last|a)|in this interval|please (?:wait|slow down)",
    r"\brequests (?:\w{1,8} )?(?:exceed|reach)|(?<!per-)(?<!per )(?:call|invocation|request)"
    r" (?:limit|count|volume|frequency)\b",
    r"before trying again|concurren(?:cy|t) (?:request )?limit|extra usage is required",
    r"(?:this|the last|the next|the current|one|per) (?:minute|hour|day|month)\b|per-(?:model|user|account|key|project|team"
    r"|organi[sz]ation) (?:rate |token )?(?:limit|quota)|tokens processed|enqueued|create a key with a higher|to increase, visit"
    r"|(?:try again|retry) (?:later|in \d|after \d)",
    r"(?:for|this|in) (?:the |this |your )?(?:current |billing )?(?:period|daily|hourly|weekly|monthly)\b",
    r"\btemporarily (?:un|at|over|rate|disabled|blocked)|at (?:full |max\w{0,5} )?capacity|high demand",
    r"\bqueue|in flight|for today|(?:this|your) api key|token rate|tokens used|payment method",
    r"频率|频繁|限流|用量|今日|次数|请求(?:过多|太多)|每分钟|每秒|每天|并发|速率|限速"
    r"|レート制限|リクエスト(?:数|制限|が多)|요청 ?(?:한도|제한|수|이 너무 많)|일일|분당|하루|1日|1分",
    r"лимит\w{0,3} запросов|слишком (?:много|частые) запрос|превышена частота|повторите (?:попытку )?позже|в минуту",
    r"(?:límite|limite) de (?:solicitudes|peticiones|uso|requ[êe]tes|requisições|taxa|débit)"
    r"|demasiadas (?:solicitudes|peticiones)|trop de requêtes|muitas (?:requisições|solicitações)"
    r"|zu viele anfragen|(?:anfrage|raten|nutzungs)limit",
)
_QUOTA = (
    r"\bquota|insufficient[\s_-]?(?:funds|balance|credit|user)|credit balance|credit[- ]?limit|\bbilling\b",
    r"limit.{0,30}(?:your|the) (?:plan|account|organi[sz]ation|subscription|workspace|team)\b|(?:this"
    r"|each) (?:month|week)\b",
    r"payment required|top up|your balance|(?:run|out) (?:out )?of tokens|(?:more|out of|add|purchase|available"
    r"|remaining) credits|can only afford|spend(?:ing)? limit",
    r"budget ?(?:has been )?exceeded|free[ -](?:tier|plan|allocation)|current plan|余额|欠费|额度|配额|充值|套餐|餘額|額度"
    r"|квот|недостаточно средств|할당량|잔액|クォータ|残高|\bcuota\b|\bcota\b|\bkontingent",
)
_KEY = (
    r"(?:invalid|incorrect|missing|expired|wrong|no|your|bad)[\s_]{0,2}(?:\w{1,10} )?api[\s_-]?key|\bauthenticat"
    r"|unauthori[sz]ed",
    r"permission[\s_-]?denied|access denied|forbidden|not authori[sz]ed|invalid (?:access )?token\b|access token",
    r"(?:refresh|bearer|secret|\bid|security|csrf|oauth\w{0,2})[ _-]token\b|\bscopes?\b",
    r"token (?:is |has )?expired|\bjwt\b|鉴权|密钥|无权|未授权|令牌(?:无效|已过期)",
)
_FILTER = (
    r"content[\s_-]{0,2}(?:filter|polic|management|moderation)|responsible ?ai|policy violation|usage policy",
    r"safety (?:system|filter|setting|polic)|\bflagged\b|harmful|inappropriate|moderation|blocked (?:by|due|for)",
    r"guardrail|risk level|blocked because|policy limit",
    r"敏感|违规|安全(?:策略|审核|检查)|不合规",
)
_NAMES = (
    r"model\b.{0,80}(?:not found|does(?: not|n't) exist|not exist|is not (?:a valid|available|supported)"
    r"|has been deprecated)",
    r"\b(?:conversation|session|thread|response|file|tool|item|resource|endpoint)\b.{0,60}not found",
    r"(?:no such|unknown|unsupported|invalid|not a valid) model|model[\s_]not[\s_]found|provider not provided|模型不存在"
    r"|deploymentnotfound",
    r"(?:unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extraneous|missing required) (?:\w{1,12} )?"
    r"(?:parameter|argument|field|keyword|key|option|property|value)",
    r"extra inputs are not permitted|additional propert|field required|is not supported (?:by|with|for|on) this",
    r"does not support (?:the )?(?:parameter|context_)|(?:context_length|n_ctx|num_ctx) must"
    r"|(?:configured|requested|specified) context (?:window|length|size) (?:is (?:larger|greater)|exceeds?)",
)
_FORM = (
    r"logit_bias|num_speculative|must (?:have|contain) at least"
    r"|invalid \\{0,8}['\"][^'\"\n]{1,90}['\"]: string too long|string_too_long"
    r"|\w_\w{1,30}: string too long|array[\s_]too[\s_]long|max_tokens_per_request"
    r"|max \d+ tokens per request|maxItems|/texts/\d|grammar compilation",
    r"too many (?:inputs|tools|images|files|functions|stop|items|documents|texts|attachments|videos|choices|columns)",
    r"too long for (?:column|type|field)|commit message",
    r"(?:number|amount|count) of (?:tools|functions|images|files|stop|documents|texts|inputs)\b"
    r".{0,40}(?:exceed|limit|max|must|more)",
    r"(?:batch|array|list)[\s_]?(?:size|length|of)?\b.{0,40}"
    r"(?:exceed|too (?:large|long|big|many)|larger than|must be|greater than|maximum)",
    r"(?:header|cookie|ur[li]|file ?name|name|description|metadata|title|stop sequence|schema|enum|grammar)s?"
    r"(?: (?!prompt|input|message|context|token)\S{1,30}){0,2} (?:is |are )?(?:too (?:long|large|big|many|complex)"
    r"|exceeds?)",
    r"context (?:window|length|size) (?:is )?too small(?! (?:to fit|for) (?:the|this|your) (?:prompt|input|request))"
    r"|minimum is \d|is too short(?! for)|\binput should (?:be|have"
    r"|match)",
    r"(?:\b|_|-)(?:id|type|key|name|role|parameter)s? (?:is )?too (?:long|large)"
    r"|(?<!input )(?<!prompt )\btoken (?:is )?too long|(?:took|taking|queued|waited|waiting) too long",
    r"per (?:submitted )?batch\b|(?:your|this|the) batch (?:has|contains|of)|(?:in|tokens_in)[ _]batch\b"
    r"|max_num_batched_tokens \(\d+\) is",
    r"(?:at most|exceed|than) \d+ items|prompt variables|websocket message|closed: 1009|\bVRAM\b"
    r"|create (?:llama_)?context",
    r"(?:longer than|exceed\w{0,3}|took)[^\n]{0,30}\b\d+ ?(?:seconds?|minutes?|hours?|ms|s)\b|context ?(?:server"
    r"|manager|7)",
    r"(?<!out of )\b(?:prompt|context) cach(?:e|ing)|cache[_ ](?:write|control|breakpoint|key|point)",
    r"cached tokens|limit parameter|nesting depth",
    r"too many system|sequence (?:id|number)|stop sequence|text[- ]to[- ]speech|\bTTS\b|(?:query|search) (?:string|query)",
    r"\b(?!(?:system|user|input|full|total|max)_)[a-z]{2,20}_prompt (?:is too|must|exceed)|skills? context budget|附加提示",
    r"exceeds? the number of (?!(?:\w+ ){0,3}(?:tokens|characters))",
    r"(?:number of|max(?:imum)?) (?:\w{1,14} )?(?:turns|steps|iterations|rounds)\b|(?:input|total|request)_tokens_limit",
    r"parameters exceed|(?:idle|time) limit|\bduration\b|more than \d+ (?:images|files|items)",
    r"n_ctx_train|fine-?tuning|training (?:context|file|data|example)",
    r"available memory|too many (?:tool|entries|calls)|safety threshold"
    r"|(?:max )?retries exceeded",
)
_FAULT = (
    r"context (?:deadline|cancel)|deadline[\s_]exceeded|timed? ?out|timeout(?!=)",
    r"out of memory|insufficient memory|not enough memory|requires more (?:system )?memory|cuda error",
    r"declared content-length|failed to (?:load|allocate)|when initializing the engine|\bpreempted\b",
)
_NEVER = either(*_RATE, *_QUOTA, *_KEY, *_FILTER, *_NAMES, *_FORM, *_FAULT)
_METER = either(
    r"(?<!\w-)rate[\s_-]{0,2}limit|tokens? per (?:min|hour|day|sec)|per[ -](?:minute|day)\b|\b(?:TPM|RPM|TPD)\b",
    r"too many requests|throttl|\bquota|\bbilling\b|credit balance|payment required",
)
_LONG_CONTENT = re.compile(
    r"invalid \\{0,8}['\"](?:messages|input|prompt)(?:\[\d{1,5}\])?(?:\.(?:content|output|text)[^'\"\n]{0,40})?\\{0,8}['\"]"
    r": string too long",
    re.I,
)
"""One message longer than a message may be: to be made smaller like an overflow, unlike a long name or description."""

_MEDIUM = (
    r"(?:images?|photos?|pictures?|files?|audio|videos?|pdfs?|documents?|attachments?|uploads?|base64"
    r"|data-?uri|pixels?|dimensions?(?! size))"
)
_MEDIA = either(
    rf"\b{_MEDIUM}\b.{{0,90}}(?:too (?:large|long|big|many)|exceed|larger than|maximum|limit|at most|up to|\bover\b)",
    r"(?:图片|图像|文件|视频|音频).{0,30}(?:超过|超出|过大|大于|太大)|max bytes|megapixel",
    rf"(?:too (?:large|big)|exceed\w{{0,3}}|larger than|limit|only)\b[^\n]{{0,40}}\b{_MEDIUM}\b",
)
_TOKENS = re.compile(r"\btokens?\b|context(?!window\w)|prompt (?:is|too)|上下文", re.I)

_MAX_TOKENS = r"max(?:imum)?[_ ]?(?:\w{1,12}[_ ])?tokens"
_OUTPUT = either(
    r"(?!max tokens (?:of \d+ exceeded|allowed))max[\s_]?(?:completion|new|output|gen|response)?[\s_]?tokens",
    r"maximum (?:number of )?(?:output |completion |new )?tokens you requested|budget_tokens|reasoning[\s_]tokens"
    r"|thinking[._ ]budget|num_predict",
    r"(?:requested|max(?:imum)?) (?:completion|output)\b|\b(?:output|response|completion) (?:is |was )?too (?:long|large)\b",
    r"(?:output|completion|response|generated|reply)[\s_](?:tokens?|length|limit|text|content|sequence)|最大输出|输出长度"
    r"|输出token",
)
_MORE_OUTPUT = either(
    r"(?:increas\w{1,3}|rais\w{1,3}|higher|larger|bigger) (?:the |your )?(?:value (?:of|for) )?[`'\"]?"
    r"max(?:imum)?[_ ]?(?:new[_ ]|output[_ ]|completion[_ ])?tokens",
)
"""A remedy that helps where an answer was cut off, and never where a prompt is too long."""
_SENT = r"(?<![a-z])(?:prompt(?:_len)?|messages|history|inputs?(?! validation)|question)\b"
_BESIDE_INPUT = either(
    rf"{_SENT}.{{0,160}}(?:{_MAX_TOKENS}|completion|output|prediction)",
    rf"(?:{_MAX_TOKENS}|completion|output|prediction|answering).{{0,200}}{_SENT}",
    rf"too many (?:input |prompt )?tokens.{{0,60}}{_MAX_TOKENS}",
    rf"{_MAX_TOKENS}.{{0,30}}(?:would )?exceeds?.{{0,30}}context",
)
_MEASURED = re.compile(
    r"context|max_model_len|max_seq_len|max(?:imum)? (?:model|sequence|total|input|prompt)|total|sum|must be <=|exceed"
    r"|too (?:long|many)|more than|reached|> ?\d",
    re.I,
)


def metered(codes: list[str], words: str) -> bool:
    """True where a rate or a quota is named outright: then not even a code makes it an overflow."""
    return bool(_METER.search(words) or any(_METER.search(code) for code in codes))


def denied(words: str) -> bool:
    """True where a text speaks of something that is no overflow."""
    if _NEVER.search(_LONG_CONTENT.sub("", words)) or _MORE_OUTPUT.search(words):
        return True
    lines = words.split("\n")
    if any(_MEDIA.search(line) and not _TOKENS.search(line) for line in lines):
        return True
    return bool(_OUTPUT.search(words)) and not any(_of_both(line) for line in lines)


def _of_both(line: str) -> bool:
    """True where a line is of the input alone, or of input and output against what holds both."""
    if not _OUTPUT.search(line):
        return too_long(line)
    return bool(_BESIDE_INPUT.search(line) and _MEASURED.search(line))
