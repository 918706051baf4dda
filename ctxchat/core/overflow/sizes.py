"""Reads the sizes that a server names when it refuses a prompt: the window, the prompt as the server counted it, and the room
left for the reply.

Only reads texts; `verdict` decides what an error means. In the patterns `#` stands for a number of tokens, which is none of
characters or bytes, and not about the output.
"""

from __future__ import annotations

import re

from ctxchat.core.expressions import expression

_N = r"(?<![-\d])(\d[\d,_]{0,14}\d|\d)(k|m)?\b"
_UNIT = r"(?![\d,.]{0,20}\d)(?!\s*(?:characters|chars|bytes|kb|mb|output|completion|items|images|messages))"


def _numbered(*met: tuple[str, str], after: str = "") -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns with `#` filled in, each with a real message that it matches; `after` is a pattern that must follow the number."""
    return tuple((expression(pattern.replace("#", _N + _UNIT + after), re.I), message) for pattern, message in met)


WINDOWS = _numbered(
    (
        r"n(?:um)?_ctx\\{0,8}[\"']?(?: is)?[\s:=(>]{1,4}#",
        "model context length exceeded: prompt has 9021 tokens, num_ctx is 8192",
    ),
    (
        r"\d\s{0,3}[+ ]\s{0,3}[\d,]{1,15}\s{0,9}>\s{0,9}#",
        "input length and max_tokens exceed context limit (i.e 156321 + 48384 > 200000)",
    ),
    (
        r"\(?\d[\d,]{1,14}(?: tokens)? ?>=? ?#\)?",
        "estimated input tokens exceed configured context limit (9000 > 8192)",
    ),
    (
        r"max_(?:model|seq|input|prompt|num|req|context|trajectory)_(?:(?:input|total)_)?(?:len|tokens)[\s:=(]{1,4}#",
        "400 length of prompt_tokens (163280) must be less than max_seq_len (32768).",
    ),
    (
        r"maximum context length of \S{1,60} is #",
        "The maximum context length of DeepSeek-V3-0324 is 32768. However, answering your request will take",
    ),
    (r"maximum (?:limit of|allowed length)[\s(]{1,3}#", "total tokens exceeds the model's maximum limit of 4096"),
    (
        r"maximum (?:allowed )?(?:is|of|context size of) #",
        "googleapi: Error 400: input token count 200000 exceeds the maximum of 128000",
    ),
    (
        r"longer than the (?:model'?s? )?(?:context|maximum)[^\n]{0,20}? length[^\n\d]{0,8}#",
        "Prompt length of 8200 is longer than the maximum model length of 8192.",
    ),
    (
        r"(?:maximum|max|model'?s?|available|configured"
        r"|allowed)[\s_-](?:\w{1,12}[\s_-]){0,2}?context[\s_-](?:length|window|size|limit)(?: limit)?"
        r"(?:[^\n\d\w]{0,3}| is| of| is only| of only|[^\n\d.]{1,30} is)[\s:(=]{0,3}#",
        "Input length (70012) must be smaller than the model context length (65536).",
    ),
    (
        r"(?<!remaining )context[\s_-](?:length|window|size|limit|capacity)(?: limit| size)?"
        r"(?:\s?(?:is|of|to|:|=|>=?|\())?(?: only)?[\s:(=]{0,3}#",
        "Prompt length 9000 + max_tokens 1000 exceeds the model's context length 8192",
    ),
    (
        r"#(?: tokens)? (?:maximum )?context (?:length|window)",
        "Prompt contains 66385 tokens, too large for model with 32768 maximum context length",
    ),
    (
        r"max(?:imum)?[\s_-](?:allowed )?(?:prompt|model|input|sequence|seq|total|num|prompt_)[\s_-]?(?:token "
        r"|input )?(?:tokens?|length|len|limit|size)?"
        r"(?:\s?(?:is|of|:|=|\())?(?: only)?[\s:(=]{0,3}#",
        "number of input tokens (83121) have exceeded max_prompt_tokens (65536) limit.",
    ),
    (
        r"maximum number of (?:input )?tokens(?: allowed)?[\s:(]{0,4}#",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
    ),
    (
        r"range of input length should be \[\d+, ?#",
        "InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]",
    ),
    (
        r"(?:token|input|model|configured|length|tokens|internal)[\s_-](?:token )?limit(?: of| is|:|\s\()?[\s:(]{0,3}#",
        "The input token count exceeds the maximum length limit of 300000 for the model",
    ),
    (
        r"(?:while|total|(?<!remaining context )window) limit(?: is)? ?\(?#",
        "Please reduce the length of the messages or completion. Current length is 12034 while limit is 8192",
    ),
    (
        r"(?:exceeds?|exceeded|over) the (?:\w{1,12} ){0,4}(?:limit|maximum|max|maximum length|context)(?: of)?[\s:(]{0,3}#",
        "AI_APICallError: prompt token count of 146270 exceeds the limit of 128000",
    ),
    (
        r"(?:must have less than|cannot exceed|no more than|must be <=?|only supports? up to|supports? up to|up to"
        r"|exceed model maximum|cannot be more than|must be less than|model window|prompt limit of)[\s(]{1,3}#",
        "Invalid argument: number of input tokens must be no more than 8192, got 10012",
    ),
    (r"session_len[\s:=(]{1,3}#", "The input token length 33012 exceeds session_len 32768"),
    (r"max(?:imum)? size: # tokens", "Request body too large for gpt-4o-mini model. Max size: 8000 tokens."),
    (r"maximum of # (?:input )?tokens", "Prompt has 9012 tokens, longer than the maximum of 8191 tokens allowed"),
    (r"max tokens(?: of|:|) # ?(?:exceeded|\.|$)", "Input text too long. Max tokens: 4000. Your tokens: 5120"),
    (r"max(?:imum)? is #", "requested 200000 tokens but the maximum is 128000 tokens for this model"),
    (
        r"limit(?: of| is| for this model is|:)? #(?: tokens)?",
        "CAPIError: 400 prompt token count of 135355 exceeds the limit of 128000",
    ),
    (
        r"max(?:imum)? context(?: is| of|:)? ?\(?#",
        "Prompt is longer than the model's maximum context (40960): 51234 tokens",
    ),
    (
        r"[,(;] ?(?:the )?max(?:imum)?:? #|(?:greater|longer|larger) than #|length exceeded: #",
        "Prompt sequence length is greater than 4096, perhaps consider using `truncate_sequence`?",
    ),
    (r"(?:allowed|maximum) number of (?:\w{1,8} )?tokens is #", "maximum allowed number of input tokens is 128000"),
    (
        r"max(?:imum)?[\s_](?:token|context|prompt|input)[\s_](?:count|len|length|size)(?: of| is|:|) ?#",
        "Requested 128001 tokens, but the model's maximum context length is 128000 tokens.",
    ),
    (
        r"the # (?:token|context|per-request) limit|#-token (?:budget|window|limit|context)",
        "The conversation is too long. Your messages exceed the 1,000,000 token limit.",
    ),
    (
        r"limit for the (?:input|prompt) is #|maximum allowed for model \S{1,60} \(?#|allocation \(#",
        "Warning: Prompt (9000 tokens) exceeds input allocation (8192 tokens)",
    ),
    (
        r"too long > #|(?:larger|greater|longer) than [^\n\d]{1,40} #|\d{3} ?(?:tokens )?(?:of|/) ?#(?: tokens| context|\W|$)",
        "Length of input text: 9000 token(s) is longer than max_input_tokens: 4096",
    ),
    (
        r"must be (?:smaller|less|shorter|lower)[^\n\d]{3,60}\(?#",
        "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
    ),
    (
        r"exceeds? (?:[\w']{1,12} ){0,3}(?:maximum|limit|max|context (?:window|length|size))[^\n\d]{0,4}#",
        "Prompt (2100 tokens) and maximum_tokens (64) exceed the context size of 2048",
    ),
    (
        r"(?:greater|longer|larger) than (?:the )?(?:[\w']{1,12} ){0,4}(?:max\w{0,10}|limit|length|window)[^\n\d]{0,12}#",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
    ),
    (
        r"allowed(?: is|:|) #|allowed (?:token|input|prompt) (?:size|length|count)(?: is| of|:|) #",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
    ),
    (r"model maximum \(#\)", "prompt tokens (400007) exceed model maximum (278528) for openai.gpt-5.5"),
    (r"exceed(?:s|ed)? #(?= tokens|\W*$)", "exceed max tokens: prompt token count exceeds 8192"),
    (
        r"\b(?:kontext\w{0,10}|contexto|contexte)\b\D{0,12}#|максимум[^\n\d]{0,12}#",
        "Превышен лимит контекста модели: запрос содержит 40000 токенов, максимум 32768",
    ),
    (r"最大[^\n\d]{0,12}#|上限[^\n\d]{0,6}#|限制[^\n\d]{0,4}#", "输入序列长度 5000 超出模型最大上下文长度 4096"),
    (
        r"(?:maximum allowed length of|only supports|maxTokens\() ?#|# available",
        "Prompt exceeds maximum context length: 20112 requested, 16384 available",
    ),
    (
        r"exceeds? (?:[\w']{1,12} ){0,3}max(?:imum)? length[^\n\d]{0,4}#",
        "Input length 33012 exceeds the maximum length 32768",
    ),
    after=r"(?!\s*(?:>|\+|requested))",
)
PROMPTS = _numbered(
    (
        r"n_prompt_tokens\\{0,8}[\"']?[\s:=(]{1,4}#",
        'try increasing it\\",\\"type\\":\\"exceed_context_size_error\\",\\"n_prompt_tokens\\":7538,\\"n_ctx\\":4096}}"}}',
    ),
    (r"#\s{0,3}[+ ]\s{0,3}[\d,]{1,15}\s{0,9}>\s{0,9}\d", "AI21 error: Request too many tokens: 1999 + 50 > 2048"),
    (
        r"(?:prompt|input|request|context)(?: is)? too (?:long|large|big)[:,(\s]{1,3}#",
        "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens",
    ),
    (
        r"(?:messages|prompt|input|request|conversation) (?:resulted in|contain(?:s|ed)?|has|have|is|uses?|had|needs?)"
        r"(?: about| already)? # (?:input |prompt )?tokens",
        "Prompt contains 40000 tokens, too large for model with maximum context length",
    ),
    (
        r"(?:passed|your request has|received|recieved|counted|provided|supplied|contains|given|got)"
        r" #(?: input| prompt)? ?(?:tokens|`inputs`|$|[.)])",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ),
    (
        r"(?:given|current length is|your tokens|request input token count|prompt_len|received|got)[\s:=]{1,3}#",
        "Input validation error: `inputs` must have less than 2048 tokens. Given: 2222",
    ),
    (
        r"(?<!maximum )(?<!max )(?<!allowed )(?<!total )"
        r"(?:prompt|input)[\s_](?:token )?(?:tokens?|length|len|size|count)(?:[\s_](?:count|length))?"
        r"(?: [a-z]{1,8})?(?: is| of|:|=)?[\s(]{0,2}#",
        "Input text is too long, length of prompt token(33000) >= max_model_len(32768)",
    ),
    (
        r"(?:number|count|total) of (?:input |prompt )?tokens(?: in the (?:prompt|input))?(?: is|:|)[\s(]{1,3}#",
        "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.",
    ),
    (
        r"(?:request|prompt|input|sequence|context|message)s? \((?:total )?(?:length )?#(?: tokens)?\)",
        "request (130000 tokens) exceeds available context size (131072 tokens)",
    ),
    (
        r"(?:prompt|context|sequence|input)(?: of)?(?: length)?(?: of)?[\s(~]{1,3}#(?: tokens)?\)? (?:tokens )?(?:is|exceeds?|>)",
        "AssertionError: input length 40000 is larger than chunk/cache_lens 32768",
    ),
    (
        r"(?:requested|input|prompt|total) tokens? \(?#\)?",
        "prompt tokens (330095) exceed model maximum (278528) for base model abc",
    ),
    (
        r"contains (?:approximately|about|roughly|over) # tokens|than allowed: # tokens|# requested",
        "Your code contains approximately 90,112 tokens, but the model's limit is 8,192 tokens.",
    ),
    (
        r"n_keep[\s:=(]{1,3}#|length of input text: #|text \(~?# tokens?\)",
        "cannot truncate prompt with n_keep (13575) >= n_ctx (4096)",
    ),
    (
        r"keep the first # tokens",
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with",
    ),
    (
        r"(?:estimated|token|requested|tokens?)(?: token)? (?:count|number)(?: of| is|:|)[\s(]{1,3}#",
        "Too many input tokens. Max input tokens: 8192, request input token count: 8423",
    ),
    (r"\(requested:? #", "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"),
    (
        r"#(?: input| prompt)? tokens (?:exceeds?|in (?:the|your) (?:prompt|request|input|messages))",
        "Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)",
    ),
    (r"#,? (?:tokens )?model maximum context", "The prompt is too long: 40177, model maximum context length: 32767"),
    (r"(?:^|[^\d,.])# tokens > ", "AI_APICallError: prompt is too long: 210000 tokens > 200000 maximum"),
    (
        r"(?<![+\d,.] )(?<![+\d,.])# ?(?:tokens ?)?>=? ?\d",
        "token ids are too long. Exceeding the maximum number of tokens allowed: 4241 >= 4096",
    ),
    (
        r"共?\s?# ?(?:个)?\s?tokens?[^\n]{0,6}超|(?:输入|提示|上下文|序列)[^\n\d]{0,8}#",
        "输入序列长度 5000 超出模型最大上下文长度 4096",
    ),
    (
        r"# ?(?:tokens ?)?(?:of|/) ?~?\d|(?<![a-z])n_tokens[\s=:(]{1,2}#|input_ids\w{0,12}\)?[\s=]{0,2}\(?#",
        ":warning: The previous message is too long (5012/4096 prompt tokens).",
    ),
    (r"too many tokens: #|содержит #", "Prompt has too many tokens: 300000; the max is 256000"),
)
INPUTS = _numbered(
    (
        r"(?<!/)# (?:tokens )?(?:in|from|of) (?:the |your |)(?:input )?(?:messages|prompt|input|functions|tools?"
        r"|text input|tool input|image input)\b",
        "context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
    ),
    (
        r"(?:prompt|request|input) (?:contains|has) # (?:input )?tokens",
        "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
    ),
    (
        r"(?:given:|you passed) # (?:`?inputs`?|input) tokens",
        "error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 603 `inputs tokens and 1024 `max_new_tokens",
    ),
)
_SUM = expression(r"(\d[\d,]{0,15})\s{0,3}[+ ]\s{0,3}(\d[\d,]{0,15})\s{0,9}>\s{0,9}(\d[\d,]{0,15})")
_LABELLED = expression(
    r"(?:prompt|input|messages)\D{0,20}(\d[\d,]{0,15})(?:\.0\), query length \(0)?\D{0,10}(?:\+|\bplus\b|\band\b)\D{0,40}\d",
    re.I,
)
_OUTPUT = expression(r"completion|output|max(?:imum)?_\w{0,12}tokens|max (?:new )?tokens", re.I)
_BOUND = expression(r"(?:contains|has) at least (\d[\d,]{0,15}) input tokens", re.I)
_SANE = range(64, 1 << 28)
_CODES = {1039, 1261, 2013}
"""Error codes of providers that stand in brackets where a size could be."""


def named_window(words: str) -> int:
    """The window in tokens that a text names; 0 where it names none."""
    return next((tokens for pattern, _ in WINDOWS for tokens in _find_sizes(pattern, words)), 0)


def named_prompt(words: str) -> int:
    """The prompt in tokens as the server counted it; 0 where the text names no number, only a lower bound, or only the sum of
    prompt and reply."""
    if _BOUND.search(words):
        return 0
    parts = _input_parts(words)
    if parts:
        return parts
    window = named_window(words)
    return next((t for pattern, _ in PROMPTS for t in _find_sizes(pattern, words) if t != window), 0)


def room_for_output(words: str, estimated_tokens: int | None) -> int:
    """The tokens that a reply may have beside this prompt, where the text says that prompt and reply together are too long; 0
    where it does not say that, or where the prompt alone is.

    Where the server names only a lower bound of the prompt, our own count plus a tenth is used.
    """
    if not _OUTPUT.search(words):
        return 0
    if total := _SUM.search(words):
        return max(0, _number(total[3]) - _number(total[1]))
    window = named_window(words)
    if _BOUND.search(words):
        counted = int(estimated_tokens * 1.1) if estimated_tokens else window
        return max(0, window - counted)
    prompt = _input_parts(words)
    if not prompt:
        labelled = _LABELLED.search(words)
        prompt = _number(labelled[1]) if labelled else 0
    return max(0, window - prompt) if window and prompt else 0


def _input_parts(words: str) -> int:
    """The sum of the numbers that a text gives for messages, functions and prompt; 0 where it gives none."""
    return sum(_number(text) for pattern, _ in INPUTS for text in dict.fromkeys(m[1] for m in pattern.finditer(words)))


def _find_sizes(pattern: re.Pattern[str], words: str) -> list[int]:
    """The numbers that a pattern finds and that can be the tokens of a prompt or a window."""
    numbers: list[int] = []
    for match in pattern.finditer(words):
        digits, *unit = [group for group in match.groups() if group]
        tokens = _number(digits) * ({"k": 1000, "m": 1_000_000}[unit[0].lower()] if unit else 1)
        if tokens in _SANE and tokens not in _CODES:
            numbers.append(tokens)
    return numbers


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
