"""Recognises the texts by which servers refuse a prompt as too long (`too_long`).

The patterns are ordered by meaning, not by provider: a sentence must name what was too much (a prompt, a conversation, tokens),
and either that it was too much or a limit that applies. So texts of unknown servers are recognised, too. Each pattern stands with
a real message that it matches. Knows nothing of errors or objects. Gaps in patterns are limited, so that the time is proportional
to the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ctxchat.core.expressions import expression


class Wordings:
    """Patterns for one meaning, searched for as one, regardless of case. `met` are the patterns, each with a real message that it
    matches."""

    def __init__(self, *met: tuple[str, str]) -> None:
        self.met = met
        self._either = expression("|".join(pattern for pattern, _ in met), re.I)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match of any of the patterns."""
        return self._either.search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches."""
        return self._either.finditer(text)


CODE = expression(
    r"(?!.*(?:\s|deadline|timeout|rate|quota|image|file|output|completion|param|not_?found|budget|usage|batch))"
    r"(?!.*(?:per_?(?:min|hour|day|sec|month)|tpm|rpm|concurren|throttl|credit|balance))"
    r"(?:.*(?:context|prompt|input|content_?length|max_?model_?len).*"
    r"(?:exceed|too_?(?:long|large|many|big)|overflow|out_?of|limit(?:_?(?:reached|error|exceeded)|$)|length_?error|exhausted)"
    r"|.*(?:exceed|out_?of|too_?long).*context|tokens?_?limit_?reached)",
    re.I,
)
"""Matches an error code or type for a prompt that is too long: `context_length_exceeded`, `PromptTooLong`,
`OutofContextError`."""

NUMBERS = {"1261", "336007", "336103", "10907"}
"""Numeric error codes of the same meaning: Zhipu's, Baidu's two, iFlytek's."""

SIZE_CODE = expression(
    r"(?:request|payload|body|content|entity)_?(?:entity_?)?too_?large(?:_?error)?|payloadtoolarge\w*", re.I
)

# ── what was too much ──

_PROMPT = Wordings(
    (
        r"(?<![a-z])(?:prompts?(?!_(?:cache|logprobs))|(?<!unmarshal )inputs?(?! validation|_(?:schema|text|audio|image"
        r"|json))|context|conversations?|histor(?:y|ies)"
        r"|messages|sequence|tokens|token[\s_-]?(?:count|limit|length|size|number|overflow|capacity)|tokenized"
        r"|input_ids|n_prompt|n_ctx|"
        r"kv[\s_-]?cache|slot|context\w{0,20}|prompt_(?!cache|logprobs|id\b)\w{1,12}|input_(?:tokens?|length))(?![a-z])",
        "Prompt has 9012 tokens, longer than the maximum of 8191 tokens allowed",
    ),
    (
        r"(?:prompt|input|context)_?(?:tokens?|len|length|size)\w{0,10}|\bprefill\b|position_ids",
        "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
    ),
    (
        r"(?:内容|文本)(?=过长|太长|超长|长度)|token限制|最大token|上下文|输入|提示词?|对话|会话|字数|消息|輸入|訊息|對話|內容長度|请求内容|文本长度|\btokens?(?=\s{0,2}(?:数|超|过))|token数",
        "由于开启了连续对话选项，导致本次对话过长，超过了模型最大输入限制，请删除部分旧消息后重试，或者关闭连续对话选项。",
    ),
    (
        r"入力|プロンプト|コンテキスト|トークン|会話|チャット|컨텍스트|입력|프롬프트|토큰|대화|메시지|контекст|промпт|токен|запрос|сообщени",
        "Контекст диалога переполнен: превышено максимальное количество токенов",
    ),
    (
        r"\b(?:contexto|contexte|kontext\w{0,8}|eingabe|entrada|mensajes?|nachricht(?:en)?|jetons?|entrée|requête|contesto"
        r"|conversación|conversa(?:ção)?|conversazione|gespräch|unterhaltung|conversation)\b",
        "Conversation history too large to compact - exceeds model context limit",
    ),
)
_WORDING = Wordings(
    (
        r"(?<![a-z_])(?:requests?|requested|message|text|query|contents?|payload|thread|instructions?|question)(?![a-z_])",
        "request (130000 tokens) exceeds available context size (131072 tokens)",
    )
)
_TOKENS = Wordings(
    (
        r"tokens?\b|context|\blength|\blong(?:er)?\b|window|\bmodel|max_?(?:model|seq|position)|n_ctx|n_positions"
        r"|prompt|input|messages",
        "Prompt length of 8200 is longer than the maximum model length of 8192.",
    ),
)
"""Words that must stand beside one of `_WORDING` (a request, a text), so that it is about a length in tokens."""

# ── that it was too much ──

_EXCESS = Wordings(
    (
        r"(?<![a-z])(?:exceed(?:s|ed|ing)?|surpass(?:es|ed)?|overr[ua]n|overflow(?:s|ed|ing)?(?! (?:bug|issue|message"
        r"|error)s?\b))(?![a-z])|_exceeded|_overflow",
        "Input length (265330) exceeds model's maximum context length (262144).",
    ),
    (
        r"(?<![a-z])too[\s_-](?:long|large|big|many|much|high)\b",
        "the prompt (~9000 tokens) is too big for the 8192-token context window",
    ),
    (
        r"(?<!must be )(?<!should be )\b(?:longer|larger|greater|bigger|higher|more) than "
        r"(?!or equal|0\b|1\b|zero|on[ce]{1,2}\b)",
        "Prompt is longer than the model's maximum context (40960): 51234 tokens",
    ),
    (
        r"\b(?:above|beyond|over|past) (?:the |its |your |this |a )?(?:\w{1,12}['’]?s? )?(?:max\w*|limit|model|capacity"
        r"|context|window|\d{3})",
        '{"error":"Request too long: 121692 input tokens over the limit of 46112"}',
    ),
    (
        r"\b(?:does|do|did|will|can|could)(?: not|n't|not) fit|\bwon't fit|not less than|is insufficient|too short for the",
        "prompt (9000 tokens) does not fit in the context window (8192)",
    ),
    (
        r"\b(?:insufficient|not enough|out of) (?:space|room|context|length)|no(?: more)? (?:space|room)",
        "ERROR: session 12 is out of length: input 9021 tokens, session_len 8192",
    ),
    (
        r"\b(?:reached|hit|at) (?:its |the |their |a )?(?:max\w*|limit)|(?:limit|length|max|context|size"
        r"|window)(?: has been| was| is)? (?:reached|hit)",
        "Context limit reached · /compact or /clear to continue",
    ),
    (
        r"\b(?:is|are|was|been|context|window|limit|length) (?:now )?(?:full|exhausted|maxed out)\b|cache exhausted",
        "Our conversation memory is full. Please start a new chat to continue.",
    ),
    (
        r"\d\)?(?: tokens?)?\)? ?>=? ?(?:the )?(?:\w{1,20} ){0,2}\(?\d{2}",
        "estimated input tokens exceed configured context limit (9000 > 8192)",
    ),
    (
        r"超过|超出|超限|过长|太长|超长|过大|大于|过多|太多|达到?上限|已满|超標|過長|超え|超過"
        r"|(?:長|多|大き)すぎ|オーバー|上限に達|초과|넘었|넘습|넘어|깁니다|너무",
        "【用户输入错误】请求内容超过大模型内部限制，即用户输入大模型内容过长，可以尝试以下方法解决：适当缩短输入",
    ),
    (
        r"\b(?:reached|hit) (?:its |the |their |a |your )?(?:context|token|prompt|input|conversation"
        r"|length)[\s_](?:limit|window|length)",
        "It's time to start a new chat. This one's reached its length limit.",
    ),
    (
        r"(?:not enough|no free|insufficient) kv|\bno longer fits?\b|\d\)? ?< ?(?:the )?(?:prompt|input)|troppo lung",
        "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end",
    ),
    (
        r"\b(?:smaller|less|shorter) than (?:the |this |your )?(?:prompt|input)"
        r"|too small (?:to fit|for) (?:the|this|your) (?:prompt|input|request)",
        "The context size (4096) is too small to fit the prompt",
    ),
    (
        r"\bover-?(?:length|limit|sized?)\b|\bexcessive (?:length|size|tokens?|input|prompt|context)\b|\btoo lengthy\b"
        r"|\bmore \w{1,12} than (?:is |are )?(?:allowed|supported|permitted)|溢出",
        "Prompt is oversized (9000 tokens)",
    ),
    (r"превы\w{1,8}|слишком|(?:больше|более) чем", "Провайдер отклонил запрос (возможно, превышен контекст модели)."),
    (
        r"\b(?:excede|excedido|supera|dépasse|überschreitet|überschritten|zu (?:lang|groß)|trop long|demasiado larg"
        r"|muito long|muitos)",
        "Nachricht zu lang: Das Kontextfenster des Modells ist überschritten",
    ),
)

# ── what it may be at most ──

_LIMIT = Wordings(
    (
        r"\b(?:max|maximum|limit|limited to|at most|up to|only|no more than|less than|fewer than|shorter than"
        r"|longer than|(?<!not )supports?|allows?"
        r"|allowed|permitted|capacity|cannot be more than|cannot exceed)\b|must be <|<= ?\d|max_?(?:model|seq|input"
        r"|prompt|position|num)_?\w{0,12}",
        '{"detail":"Input length 9021 exceeds maximum allowed token size 8192"}',
    ),
)
_FIGURE = expression(r"(?<![\d.])\d{1,3}(?:[,_]?\d{3}){1,3}(?![.\d])|\b(?:512|(?![45])\d{3})\b|\b\d{1,4}[km]\b", re.I)
_MEASURED = Wordings(
    (
        r"(?<![a-z])(?:prompts?(?!_(?:cache|logprobs))|inputs?(?! validation|_(?:schema|text|image))|context\b|messages"
        r"|tokens?|conversation|sequence"
        r"|prompt_\w{1,12}|input_(?:tokens?|length))(?![a-z])",
        "400 status code: Requested tokens (9301) exceed context window of 8192",
    )
)

_OTHER = Wordings(
    (
        r"\b(?:outputs?|responses?|completions?|repl(?:y|ies)|answers?|generated|results?|budget|usage|batch(?:es)?"
        r"|files?|documents?|images?|audio|videos?|pages?|attachments?|uploads?|names?|ids?|descriptions?|headers?|url|schema"
        r"|request rate|rates?|accounts?|balance|keys?|number of (?!(?:\w{1,12} ){0,3}tokens?\b)\w{1,12})\b",
        "Image size 2097153 bytes exceeds maximum allowed size of 1048576 bytes",
    )
)
_OWN = Wordings(
    (
        r"(?<![a-z])(?:prompts?|inputs?(?! (?:files?|documents?|images?|audio|videos?)\b)|context|conversations?|chat"
        r"|histor(?:y|ies)"
        r"|messages?|sequence|(?<!number of )requests?(?! rate)"
        r"|prompt_\w{1,12}|input_\w{1,12}|n_prompt)(?![a-z])"
        r"|tokenized|(?:token|tokens|total|combined|requested) (?:count|length|tokens?)|上下文|输入|提示|对话|消息",
        "model context length exceeded: prompt has 9021 tokens, num_ctx is 8192",
    )
)
"""What is sent, as the subject of a sentence, in contrast to `_OTHER`, things with limits of their own."""

_NORM = Wordings(
    (
        r"\b(?:must|should|shall|needs? to|has to|have to|ha(?:s|ve) got to|can|may|could)(?: ?n[o']t)? "
        r"(?:be |have |contain |exceed )?(?:strictly )?(?:less|smaller|shorter|lower|fewer|below|under|within|at most"
        r"|no (?:more|longer|larger|greater)|<)",
        "Input length (70012) must be smaller than the model context length (65536).",
    ),
    (
        r"\b(?:reached|hits?|reaches|at|outside(?: of)?) (?:its |the |their |a |your |this )?(?:\w{1,12}['’]?s? ){0,3}"
        r"(?:context|window|capacity|limit|maximum|max\w{0,12})\b",
        "The current model has reached its conversation limit",
    ),
    (
        r"(?<=[\w)] )> ?(?:the )?(?:model|context|max|limit|n_ctx)",
        "prompt tokens(32990) + max_tokens(4096) > model max context(32768)",
    ),
)
_WINDOW = Wordings(
    (
        r"\b(?:context|prompt|input)(?: |_)?(?:window|length|limit|size|tokens?)\b|\b(?:prompt|input|context)\b",
        "Your prompt plus the attached files exceed the model's context window.",
    )
)
_CAP = Wordings(
    (
        r"\b(?:max\w{0,20}|limit|context|window|model(?:'s)?|tokens?|capacity|n_ctx)\b|(?<![\d.])(?:\d{1,3}[,_]\d{3}|\d{4,8})(?![\d.])",
        "RuntimeError: start (0) + length (2049) exceeds dimension size (2048).",
    )
)
"""Limits in sentences such as «The prompt must be shorter than the model's window»: in an error, a named limit is one that was
passed."""

_PHRASES = Wordings(
    (
        r"range of input length|`?inputs?`? must have less than|current length is \d[^\n]{0,40}limit"
        r"|maximum context length|token limit is",
        "Prompt exceeds maximum context length: 20112 requested, 16384 available",
    ),
    (
        r"context shift is disabled|slot context|n_ctx_slot|cannot truncate prompt|n_keep\b[^\n]{0,20}>=?\s?n_ctx",
        "cannot truncate prompt with n_keep (13575) >= n_ctx (4096)",
    ),
    (
        r"tokens to keep from the initial prompt|trying to keep the first \d+|configured context size|model context limit",
        "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
    ),
    (
        r"(?:find|found) (?:a |no )?(?:free space in the )?kv (?:cache )?slot|free space in the kv cache"
        r"|context[\s_]?overflow_?error",
        "failed to decode batch: could not find a kv cache slot (length: 6656)",
    ),
    (
        r"(?<!unable to )(?<!failed to )(?<!cannot )(?<!not )\b(?:reduc(?:e|ing)|shorten(?:ing)?|trim|decrease|truncate)\b"
        r"[^\n.]{0,30}"
        r"(?:length|size|number|amount)? ?(?:of )?(?:the |your )?"
        r"\b(?:prompt|messages|input|context|conversation|history)\b",
        "the input is too long for the requested model; please reduce the prompt",
    ),
    (
        r"(?:use|try|with|provide) (?:a |using a )?shorter (?:prompt|input|message|context|conversation)|(?:prompt"
        r"|input|context)too(?:long|large)",
        "Input is too long: prompt length 5000 exceeds context window 4096. E1002 PromptTooLong",
    ),
    (
        r"(?:max tokens of \d+|max_total_tokens) exceeded|max(?:imum)? size:? \d[\d,]* tokens"
        r"|expected maxlength: \d+, actual: \d+",
        "Request body too large for gpt-4.1-mini model. Max size: 8000 tokens.",
    ),
    (
        r"start \(\d+\) \+ length \(\d+\) exceeds|length \(\d+\) exceeds max_position"
        r"|string too long\. expected a string with maximum length",
        "RuntimeError: start (958) + length (1624) exceeds dimension size (2048).",
    ),
    (
        r"context[\s_-](?:window|length|size)[^\n]{0,30}\d[\d,]*k?(?: tokens)?[^\n]{0,40}(?:requested|however|but got"
        r"|given|received)",
        "maximum context length is 262144 tokens, however you requested 270000",
    ),
    (
        r"token_?limit_?exceeded|context[\s_](?:length|window)[\s_]error|err\w{0,3}_context_(?:length|window)"
        r"|increase the context (?:length|size|window)",
        "context length error: 9000 tokens",
    ),
    (
        r"context_?(?:length|window|size|limit)?_?(?:exceeded|overflow)(?:error|exception)?\b(?! (?:bug|issue|message"
        r"|error)s?\b)|exceed_context_size",
        '{"error":{"message":"failed","codexErrorInfo":"contextWindowExceeded"}}',
    ),
    (
        r"(?:压缩|缩短|精简|减少|縮短|壓縮)[^\n。]{0,6}(?:上下文|输入|提示|对话|内容|輸入|對話)",
        "token数量超过上限。对话历史+问题的字数太多，需要精简输入",
    ),
    (
        r"tokens in (?:the |your )?(?:request|prompt|input) (?:is |are )?more than|available context size -\d"
        r"|too many total text bytes|session(?: is)? too long"
        r"|text (?:fields?|parts?|blocks?) (?:that are |is |are )?too (?:large|long)",
        "ValueError: Calculated available context size -1210 was not non-negative.",
    ),
    (
        r"find a memory slot|max_seq_len \(\d+\) - \w{0,10}prompt_len \(\d+\)",
        "decode: failed to find a memory slot for batch of size 512",
    ),
    (
        r"input_?length_?error|content_length_exceeds|need \d{3,}[^\n]{0,20}have \d{3,}|max(?:imum)? length exceeded"
        r"|too much text",
        "Input is too long. CONTENT_LENGTH_EXCEEDS_THRESHOLD",
    ),
    (
        r"(?:reached|hit) (?:its |the )?(?:max\w{0,5} )?(?:length|conversation|chat) limit",
        "The current model has reached its conversation limit. Please switch to another model to continue.",
    ),
    (
        r"(?:exceed\w{0,3}|reached) (?:the |its )?maximum (?:input |prompt |context |conversation )"
        r"(?:tokens?|length|size)",
        "The input token count exceeds the maximum context length for this model.",
    ),
)
"""Whole phrases, for messages that do not have that form."""

SIZE = Wordings(
    (
        r"(?<!response )(?:(?:request|payload|entity|body|message)(?: (?:entity|body|size|content|payload))?(?: is| was)?"
        r"|(?<!\w )content)[\s_]too[\s_](?:large|big)",
        "Request body too large for gpt-4o-mini model. Max size: 8000 tokens.",
    ),
    (
        r"request_too_large|payloadtoolarge|larger than max|request size (?:limit|is)|请求体(?:过大|超过)",
        "The prompt length 9000 is larger than max_seq_len 8192",
    ),
    (
        r"(?:request|payload|(?<!response )body|message)(?: body| payload)? (?:size |length )?(?:exceed\w{0,3}"
        r"|is (?:larger|greater|bigger) than)",
        "Failed to generate: your message exceeds the allowed number of tokens",
    ),
    (
        r"exceeds? the maximum (?:allowed )?(?:request |payload |body )size|maximum (?:request|payload"
        r"|body) (?:body )?size",
        "Request exceeds the maximum allowed number of bytes. The maximum request size is 32 MB.",
    ),
)
"""Refusals because of the size of a body: an overflow, unless our count of the prompt speaks against it."""

WEAK = Wordings(
    (
        r"max_\w{0,12}tokens must be at least 1, got -\d+|default_max_tokens \(-\d+\)",
        "default_max_tokens (-5178) must be greater than 0, default_max_tokens (-5178) = max_seq_len",
    ),
)
"""Messages that tell nothing by themselves; an overflow where the prompt by our count is large."""

BARE = expression(
    r"\A[\s\W]*(?:(?:litellm\.)?\w{0,60}(?:error|exception)\w{0,20}[\s:\-]{1,4}){0,3}"
    r"(?:error code|client error|http error|http|request failed with status code|status code"
    r"|error)?[\s:'\"]{0,3}(?:400)?"
    r"[\s:'\"\-]{0,4}(?:status code)?\s{0,2}(?:\(no body\)|bad request|none|null|no body|error)?"
    r"(?:['\"]? for url.{0,300})?[\s\W]*\Z",
    re.I | re.S,
)
"""Matches a refusal without a reason: «Bad Request», «400 status code (no body)», an empty text."""

_END = expression(r"\n|(?<!\d)[.!?] |[。；!?](?=\s|$)")
"""Matches the end of a sentence."""

_BEFORE, _AFTER, _MOST = 110, 90, 200
"""Characters before and behind a match that are taken for its sentence, and the most matches that are checked."""


def too_long(words: str) -> bool:
    """True where a text says that a prompt, or prompt and output together, was longer than it may be."""
    if _PHRASES.search(words):
        return True
    for before, verb, after in _with_context(_EXCESS, words):
        clause = before + verb + after
        about_prompt = _PROMPT.search(clause) or (_WORDING.search(clause) and _TOKENS.search(clause))
        if about_prompt and not _of_another(before, after):
            return True
    for before, verb, after in _with_context(_NORM, words):
        if _OWN.search(before) and _CAP.search(verb + after) and not _of_another(before, after):
            return True
    for before, verb, after in _with_context(_LIMIT, words):
        clause = before + verb + after
        if _MEASURED.search(clause) and _FIGURE.search(clause) and not _of_another(before, after):
            return True
    return False


def _of_another(before: str, after: str) -> bool:
    """True where a sentence is about something else than what is sent (an image, say), and does not mention the window."""
    return bool(_OTHER.search(before) and not _OWN.search(before) and not _WINDOW.search(after))


def _with_context(pattern: Wordings, words: str) -> Iterator[tuple[str, str, str]]:
    """For each match: what stands before it in its sentence, the match, and what stands behind it."""
    for match in islice(pattern.finditer(words), _MOST):
        before = words[max(0, match.start() - _BEFORE) : match.start()]
        after = words[match.end() : match.end() + _AFTER]
        start = max((end.end() for end in _END.finditer(before)), default=0)
        stop = _END.search(after)
        yield before[start:], match[0], (after[: stop.start()] if stop else after)
