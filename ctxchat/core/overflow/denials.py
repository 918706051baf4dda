"""Recognises errors that mention limits but are no overflow of the context window: rates, quotas, keys, filters, models,
parameters, images, the output limit. Each pattern stands with a message it was met in. Knows nothing of errors or objects; every
gap in a pattern is bounded.
"""

from __future__ import annotations

import re

from ctxchat.core.expressions import expression
from ctxchat.core.overflow.wordings import Wordings, too_long

CODE = Wordings(
    (
        r"rate_?limit|too_?many_?requests|throttl|quota|usage_?limit|max_tokens_per|^tokens$|^requests$|overloaded",
        "ai.textGenerationTokensPerDay.count quota limit exceed: allowed 10000",
    ),
    (
        r"billing|insufficient_?(?:balance|funds|credit|user)|credit|payment|arrear|budget_?exceeded",
        "Your credit balance is too low. Maximum request token limit exceeded.",
    ),
    (
        r"api_?key|authenti|unauthori|^auth|permission|forbidden|access_?denied",
        "Your API key does not have permission to use the specified resource.",
    ),
    (
        r"content_?(?:filter|policy|management)|responsible|moderation|safety|sensitive|data_?inspection",
        '{"base_resp":{"status_code":1027,"status_msg":"output new_sensitive"}}',
    ),
    (
        r"not_?found|time_?out|deadline|unsupported|unknown_parameter|invalid_image|image_(?:too|parse|size)",
        "Unsupported value: 'temperature' does not support 0.3 with this model.",
    ),
)
"""What is found in a field for a code or a type of such errors."""

_RATE = (
    (
        r"(?<!\w-)rate[\s_-]{0,2}limit|too many (?:concurrent )?requests|throttl"
        r"|resource(?:[\s_-]has been)?[\s_-]?exhausted",
        "Request was rejected due to rate limiting. Details: TPM limit reached.",
    ),
    (
        r"(?:\btokens?|requests|inputs?|calls)[\s_-]{0,2}(?:per|/)[\s_-]{0,2}(?:min|hour|day|sec|month|week)",
        "You've exceeded the rate limit. Prompt tokens per minute limit: 60000",
    ),
    (
        r"per[ -](?:minute|hour|day)\b|\b(?:TPM|RPM|TPD|RPD|QPS|QPM|ITPM)\b|(?<!-)\b(?:daily|weekly|monthly|hourly)\b"
        r"|\busage\b.{0,20}limit|\brate of\b",
        "Daily limit reached — requests 5 of 5. Resets in 3h 2m (UTC midnight).",
    ),
    (
        r"too many tokens,? please wait|too many tokens in (?:the last|a)|in this interval|please (?:wait|slow down)",
        "ThrottlingException: Too many tokens, please wait before trying again",
    ),
    (
        r"\brequests (?:\w{1,8} )?(?:exceed|reach)|(?<!per-)(?<!per )(?:call|invocation|request)"
        r" (?:limit|count|volume|frequency)\b",
        '{"error_code":17,"error_msg":"Open api daily request limit reached"}',
    ),
    (
        r"before trying again|concurren(?:cy|t) (?:request )?limit|extra usage is required",
        "Throttling error: Too many tokens, please wait before trying again.",
    ),
    (
        r"(?:this|the last|the next|the current|one|per) (?:minute|hour|day|month)\b|per-(?:model|user|account|key|project|team"
        r"|organi[sz]ation) (?:rate |token )?(?:limit|quota)|tokens processed|enqueued|create a key with a higher"
        r"|to increase, visit"
        r"|(?:try again|retry) (?:later|in \d|after \d)",
        "Your account reached max request: 3, please try again after 1 seconds",
    ),
    (
        r"(?:for|this|in) (?:the |this |your )?(?:current |billing )?(?:period|daily|hourly|weekly|monthly)\b",
        "User token limit exceeded: 1,200 of 1,000 tokens used this period.",
    ),
    (
        r"\btemporarily (?:un|at|over|rate|disabled|blocked)|at (?:full |max\w{0,5} )?capacity|high demand",
        "Unable to submit request because the service is temporarily at capacity",
    ),
    (
        r"\bqueue|in flight|for today|(?:this|your) api key|token rate|tokens used|payment method",
        "trial token rate limit exceeded, limit is 100000 tokens per minute",
    ),
    (
        r"频率|频繁|限流|用量|今日|次数|请求(?:过多|太多)|每分钟|每秒|每天|并发|速率|限速"
        r"|レート制限|リクエスト(?:数|制限|が多)|요청 ?(?:한도|제한|수|이 너무 많)|일일|분당|하루|1日|1分",
        "일일 토큰 한도 초과 — 무료 등급 하루치를 다 써서 하루 지나야 복구됩니다",
    ),
    (
        r"лимит\w{0,3} запросов|слишком (?:много|частые) запрос|превышена частота|повторите (?:попытку )?позже|в минуту",
        "Превышен лимит запросов провайдера. Повторите позже.",
    ),
    (
        r"(?:límite|limite) de (?:solicitudes|peticiones|uso|requ[êe]tes|requisições|taxa|débit)"
        r"|demasiadas (?:solicitudes|peticiones)|trop de requêtes|muitas (?:requisições|solicitações)"
        r"|zu viele anfragen|(?:anfrage|raten|nutzungs)limit",
        "Limite de requêtes API atteinte. Patientez un instant, puis réessayez.",
    ),
)
_QUOTA = (
    (
        r"\bquota|insufficient[\s_-]?(?:funds|balance|credit|user)|credit balance|credit[- ]?limit|\bbilling\b",
        '{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}',
    ),
    (
        r"limit.{0,30}(?:your|the) (?:plan|account|organi[sz]ation|subscription|workspace|team)\b|(?:this"
        r"|each) (?:month|week)\b",
        "too many requests: Token limit for the account per minute was reached",
    ),
    (
        r"payment required|top up|your balance|(?:run|out) (?:out )?of tokens|(?:more|out of|add|purchase|available"
        r"|remaining) credits|can only afford|spend(?:ing)? limit",
        "402 Payment Required: request token limit exceeded for this billing plan",
    ),
    (
        r"budget ?(?:has been )?exceeded|free[ -](?:tier|plan|allocation)|current plan|余额|欠费|额度|配额|充值|套餐|餘額|額度"
        r"|квот|недостаточно средств|할당량|잔액|クォータ|残高|\bcuota\b|\bcota\b|\bkontingent",
        "Free plan is limited to 10,000 tokens per day. You have used 10,412.",
    ),
)
_KEY = (
    (
        r"(?:invalid|incorrect|missing|expired|wrong|no|your|bad)[\s_]{0,2}(?:\w{1,10} )?api[\s_-]?key|\bauthenticat"
        r"|unauthori[sz]ed",
        "Authentication failed: token length exceeds maximum of 4096",
    ),
    (
        r"permission[\s_-]?denied|access denied|forbidden|not authori[sz]ed|invalid (?:access )?token\b|access token",
        "Access denied due to invalid subscription key or wrong API endpoint.",
    ),
    (
        r"(?:refresh|bearer|secret|\bid|security|csrf|oauth\w{0,2})[ _-]token\b|\bscopes?\b",
        "Requested scopes exceed those authorized by the refresh token.",
    ),
    (
        r"token (?:is |has )?expired|\bjwt\b|鉴权|密钥|无权|未授权|令牌(?:无效|已过期)",
        "Token is too long or malformed: JWT has 5 segments, expected 3",
    ),
)
_FILTER = (
    (
        r"content[\s_-]{0,2}(?:filter|polic|management|moderation)|responsible ?ai|policy violation|usage policy",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    ),
    (
        r"safety (?:system|filter|setting|polic)|\bflagged\b|harmful|inappropriate|moderation|blocked (?:by|due|for)",
        "Your request was rejected as a result of our safety system.",
    ),
    (r"guardrail|risk level|blocked because|policy limit", "guardrail content exceeds the 25 text unit limit"),
    (
        r"敏感|违规|安全(?:策略|审核|检查)|不合规",
        "系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。",
    ),
)
_NAMES = (
    (
        r"model\b.{0,80}(?:not found|does(?: not|n't) exist|not exist|is not (?:a valid|available|supported)"
        r"|has been deprecated)",
        "The model returned the following errors: Model error, context not found",
    ),
    (
        r"\b(?:conversation|session|thread|response|file|tool|item|resource|endpoint)\b.{0,60}not found",
        "Previous response with id 'resp_context_window' not found.",
    ),
    (
        r"(?:no such|unknown|unsupported|invalid|not a valid) model|model[\s_]not[\s_]found|provider not provided|模型不存在"
        r"|deploymentnotfound",
        "400 deepseek-r1t-chimera:free is not a valid model ID",
    ),
    (
        r"(?:unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extraneous|missing required) (?:\w{1,12} )?"
        r"(?:parameter|argument|field|keyword|key|option|property|value)",
        "Missing required parameter: 'messages[1].content[0].type'.",
    ),
    (
        r"extra inputs are not permitted|additional propert|field required|is not supported (?:by|with|for|on) this",
        "Extra inputs are not permitted, field: 'messages[2].reasoning_content'",
    ),
    (
        r"does not support (?:the )?(?:parameter|context_)|(?:context_length|n_ctx|num_ctx) must"
        r"|(?:configured|requested|specified) context (?:window|length|size) (?:is (?:larger|greater)|exceeds?)",
        "configured context window exceeds model context limit",
    ),
)
_FORM = (
    (
        r"logit_bias|num_speculative|must (?:have|contain) at least"
        r"|invalid \\{0,8}['\"][^'\"\n]{1,90}['\"]: string too long|string_too_long"
        r"|\w_\w{1,30}: string too long|array[\s_]too[\s_]long|max_tokens_per_request"
        r"|max \d+ tokens per request|maxItems|/texts/\d|grammar compilation",
        "ERR_STRING_TOO_LONG: Cannot create a string longer than 0x1fffffe8 characters",
    ),
    (
        r"too many (?:inputs|tools|images|files|functions|stop|items|documents|texts|attachments|videos|choices|columns)",
        "WORKSPACE_CANVAS_EXPORT_MEMORY_LIMIT: Too many images for one export",
    ),
    (
        r"too long for (?:column|type|field)|commit message",
        "pymysql.err.DataError: (1406, \"Data too long for column 'prompt' at row 1\")",
    ),
    (
        r"(?:number|amount|count) of (?:tools|functions|images|files|stop|documents|texts|inputs)\b"
        r".{0,40}(?:exceed|limit|max|must|more)",
        "invalid request: total number of texts must be at most 96 - received 120",
    ),
    (
        r"(?:batch|array|list)[\s_]?(?:size|length|of)?\b.{0,40}"
        r"(?:exceed|too (?:large|long|big|many)|larger than|must be|greater than|maximum)",
        "invalid request: list of documents must not exceed 1000 items",
    ),
    (
        r"(?:header|cookie|ur[li]|file ?name|name|description|metadata|title|stop sequence|schema|enum|grammar)s?"
        r"(?: (?!prompt|input|message|context|token)\S{1,30}){0,2} (?:is |are )?(?:too (?:long|large|big|many|complex)"
        r"|exceeds?)",
        "Tool name 'abc' exceeds OpenAI's 64-character limit. Truncated to 'ab'",
    ),
    (
        r"context (?:window|length|size) (?:is )?too small(?! (?:to fit|for) (?:the|this|your) (?:prompt|input|request))"
        r"|minimum is \d|is too short(?! for)|\binput should (?:be|have"
        r"|match)",
        "`thinking.budget_tokens`: Input should be greater than or equal to 1024",
    ),
    (
        r"(?:\b|_|-)(?:id|type|key|name|role|parameter)s? (?:is )?too (?:long|large)"
        r"|(?<!input )(?<!prompt )\btoken (?:is )?too long|(?:took|taking|queued|waited|waiting) too long",
        "OSError: [Errno 36] File name too long: 'src/aaaa'",
    ),
    (
        r"per (?:submitted )?batch\b|(?:your|this|the) batch (?:has|contains|of)|(?:in|tokens_in)[ _]batch\b"
        r"|max_num_batched_tokens \(\d+\) is",
        "Too many tokens in batch. Max is 16384 got 20112",
    ),
    (
        r"(?:at most|exceed|than) \d+ items|prompt variables|websocket message|closed: 1009|\bVRAM\b"
        r"|create (?:llama_)?context",
        "tools: List should have at most 128 items after validation, not 150",
    ),
    (
        r"(?:longer than|exceed\w{0,3}|took)[^\n]{0,30}\b\d+ ?(?:seconds?|minutes?|hours?|ms|s)\b|context ?(?:server"
        r"|manager|7)",
        "The audio is longer than 1400 seconds, which exceeds the limit of this model",
    ),
    (
        r"(?<!out of )\b(?:prompt|context) cach(?:e|ing)|cache[_ ](?:write|control|breakpoint|key|point)",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        r"cached tokens|limit parameter|nesting depth",
        "Usage: 401 input tokens, 403 cached tokens, and 429 output tokens.",
    ),
    (
        r"too many system|sequence (?:id|number)|stop sequence|text[- ]to[- ]speech|\bTTS\b|(?:query|search) (?:string|query)",
        "Input validation error: `stop` supports up to 4 stop sequences. Given: 6",
    ),
    (
        r"\b(?!(?:system|user|input|full|total|max)_)[a-z]{2,20}_prompt (?:is too|must|exceed)|skills? context budget|附加提示",
        "Exceeded skills context budget of 2%. All skill descriptions were removed.",
    ),
    (
        r"exceeds? the number of (?!(?:\w+ ){0,3}(?:tokens|characters))",
        "The number of toolResult blocks at messages.4.content exceeds the number of toolUse blocks of previous turn.",
    ),
    (
        r"(?:number of|max(?:imum)?) (?:\w{1,14} )?(?:turns|steps|iterations|rounds)\b|(?:input|total|request)_tokens_limit",
        "Maximum iterations reached without a final answer",
    ),
    (
        r"parameters exceed|(?:idle|time) limit|\bduration\b|more than \d+ (?:images|files|items)",
        "No more than 20 files can be attached to a conversation",
    ),
    (
        r"n_ctx_train|fine-?tuning|training (?:context|file|data|example)",
        "The maximum number of tokens for the fine-tuning job has been exceeded",
    ),
    (
        r"available memory|too many (?:tool|entries|calls)|safety threshold"
        r"|(?:max )?retries exceeded",
        "Too many tools: 200 exceeds limit of 128",
    ),
)
_FAULT = (
    (
        r"context (?:deadline|cancel)|deadline[\s_]exceeded|timed? ?out|timeout(?!=)",
        "Model has timed out in processing the request. Try your request again.",
    ),
    (
        r"out of memory|insufficient memory|not enough memory|requires more (?:system )?memory|cuda error",
        "model requires more system memory (9.2 GiB) than is available (6.1 GiB)",
    ),
    (
        r"declared content-length|failed to (?:load|allocate)|when initializing the engine|\bpreempted\b",
        "failed to load the model: the maximum context length is not available",
    ),
)
_NEVER = Wordings(*_RATE, *_QUOTA, *_KEY, *_FILTER, *_NAMES, *_FORM, *_FAULT)
_METER = Wordings(
    (
        r"(?<!\w-)rate[\s_-]{0,2}limit|tokens? per (?:min|hour|day|sec)|per[ -](?:minute|day)\b|\b(?:TPM|RPM|TPD)\b",
        "You have been rate limited. Your rate limit is 60 queries per minute.",
    ),
    (
        r"too many requests|throttl|\bquota|\bbilling\b|credit balance|payment required",
        "token quota is not enough, token remain quota: $0.01, need quota: $0.05",
    ),
)
_LONG_CONTENT = expression(
    r"invalid \\{0,8}['\"](?:messages|input|prompt)(?:\[\d{1,5}\])?(?:\.(?:content|output|text)[^'\"\n]{0,40})?\\{0,8}['\"]"
    r": string too long",
    re.I,
)
"""Matches the refusal of a single message that is too long. Making it smaller helps, as with an overflow, in contrast to a name
or a description that is too long."""

_MEDIUM = (
    r"(?:images?|photos?|pictures?|files?|audio|videos?|pdfs?|documents?|attachments?|uploads?|base64"
    r"|data-?uri|pixels?|dimensions?(?! size))"
)
_MEDIA = Wordings(
    (
        rf"\b{_MEDIUM}\b.{{0,90}}(?:too (?:large|long|big|many)|exceed|larger than|maximum|limit|at most|up to|\bover\b)",
        "The file size is too large: parsing of documents is limited to 150 MB",
    ),
    (
        r"(?:图片|图像|文件|视频|音频).{0,30}(?:超过|超出|过大|大于|太大)|max bytes|megapixel",
        "Exceeded limit on max bytes per data-uri item : 10485760'.",
    ),
    (
        rf"(?:too (?:large|big)|exceed\w{{0,3}}|larger than|limit|only)\b[^\n]{{0,40}}\b{_MEDIUM}\b",
        "Request payload size exceeds the limit: 20971520 bytes for inline images",
    ),
)
_TOKENS = expression(r"\btokens?\b|context(?!window\w)|prompt (?:is|too)|上下文", re.I)

_MAX_TOKENS = r"max(?:imum)?[_ ]?(?:\w{1,12}[_ ])?tokens"
_OUTPUT = Wordings(
    (
        r"(?!max tokens (?:of \d+ exceeded|allowed))max[\s_]?(?:completion|new|output|gen|response)?[\s_]?tokens",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]",
    ),
    (
        r"maximum (?:number of )?(?:output |completion |new )?tokens you requested|budget_tokens|reasoning[\s_]tokens"
        r"|thinking[._ ]budget|num_predict",
        "The maximum tokens you requested exceeds the model limit of 32768",
    ),
    (
        r"(?:requested|max(?:imum)?) (?:completion|output)\b|\b(?:output|response|completion) (?:is |was )?too (?:long|large)\b",
        "max_tokens (100000) is larger than the maximum output length 16384",
    ),
    (
        r"(?:output|completion|response|generated|reply)[\s_](?:tokens?|length|limit|text|content|sequence)|最大输出|输出长度"
        r"|输出token",
        "The model stopped because it reached the maximum number of output tokens.",
    ),
)
_MORE_OUTPUT = Wordings(
    (
        r"(?:increas\w{1,3}|rais\w{1,3}|higher|larger|bigger) (?:the |your )?(?:value (?:of|for) )?[`'\"]?"
        r"max(?:imum)?[_ ]?(?:new[_ ]|output[_ ]|completion[_ ])?tokens",
        "The reply hit the 16384-token output cap and was cut off. Raise `max_tokens`.",
    ),
)
"""A remedy that helps where a reply was cut off, and never where a prompt is too long."""

_SENT = r"(?<![a-z])(?:prompt(?:_len)?|messages|history|inputs?(?! validation)|question)\b"
_BESIDE_INPUT = Wordings(
    (
        rf"{_SENT}.{{0,160}}(?:{_MAX_TOKENS}|completion|output|prediction)",
        "Length of input text: 9000 token(s) is longer than max_input_tokens: 4096",
    ),
    (
        rf"(?:{_MAX_TOKENS}|completion|output|prediction|answering).{{0,200}}{_SENT}",
        "Too many input tokens. Max input tokens: 8192, request input token count: 8423",
    ),
    (
        rf"too many (?:input |prompt )?tokens.{{0,60}}{_MAX_TOKENS}",
        "This request has too many tokens. Max tokens: 200000",
    ),
    (
        rf"{_MAX_TOKENS}.{{0,30}}(?:would )?exceeds?.{{0,30}}context",
        "prompt_tokens(40000) + max_tokens(1000) exceeds context size 32768",
    ),
)
_MEASURED = expression(
    r"context|max_model_len|max_seq_len|max(?:imum)? (?:model|sequence|total|input|prompt)|total|sum|must be <=|exceed"
    r"|too (?:long|many)|more than|reached|> ?\d",
    re.I,
)


def metered(codes: list[str], words: str) -> bool:
    """True where codes or text name a rate or a quota: then it is no overflow, even with a code for one."""
    return bool(_METER.search(words) or any(_METER.search(code) for code in codes))


def denied(words: str) -> bool:
    """True for a text about something else than an overflow."""
    if _NEVER.search(_LONG_CONTENT.sub("", words)) or _MORE_OUTPUT.search(words):
        return True
    lines = words.split("\n")
    if any(_MEDIA.search(line) and not _TOKENS.search(line) for line in lines):
        return True
    return bool(_OUTPUT.search(words)) and not any(_of_both(line) for line in lines)


def _of_both(line: str) -> bool:
    """True for a line about the input alone, or about input and output together against the window."""
    if not _OUTPUT.search(line):
        return too_long(line)
    return bool(_BESIDE_INPUT.search(line) and _MEASURED.search(line))
