"""Turns the exceptions of both transports (litellm's and the direct one's) into a ModelError: its kind, a text for people, when
to try again, and a remedy that fits the provider.

Goes through the chain of causes and recognises classes by their names, because litellm wraps some and drops others; does not
import litellm. A refusal that only its text makes look like an overflow of the window keeps its kind: `core.overflow` judges
those.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ctxchat.core.errors import REFUSED, ModelError
from ctxchat.core.expressions import expression
from ctxchat.core.overflow import is_context_overflow, output_excess, overflow_code
from ctxchat.core.refused import refuses_grammar
from ctxchat.core.secrets import masked
from ctxchat.models import said
from ctxchat.models.reply import ReplyBuilder, ReplyTooLarge
from ctxchat.models.settings import ModelSettings

_AGAIN = expression(
    r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)|\"retryDelay\": ?\"(\d+(?:\.\d+)?s)\"",
    re.I,
)
_SPAN = expression(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)", re.I)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(chain: Sequence[BaseException], body: str) -> float | None:
    """After how many seconds to try again, by a header of an error in the chain, else by the text of the body; None where neither
    says."""
    for error in chain:
        headers = [getattr(getattr(error, "response", None), "headers", None)]
        headers += [getattr(error, "litellm_response_headers", None), getattr(error, "headers", None)]
        for each in headers:
            seconds = _from_headers(each) if isinstance(each, Mapping) else None
            if seconds is not None:
                return seconds
    match = _AGAIN.search(body)
    if match is None:
        return None
    return sum(float(n) * _SECONDS[unit.lower()] for n, unit in _SPAN.findall(match[1] or match[2]))


def _from_headers(headers: Mapping[Any, Any]) -> float | None:
    """The seconds that a response's headers state, as a number or a date; None where they state none."""
    values = {str(name).lower(): str(value) for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = values.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) * scale
        if value and name == "retry-after" and (date := email.utils.parsedate_tz(value)):
            return max(0.0, email.utils.mktime_tz(date) - time.time())
    return None


_QUOTA = expression(
    r"insufficient.{0,3}(quota|balance|funds|credit)|credit balance|billing|payment|out of credits", re.I
)
_OUTPUT = expression(r"max_(?:completion_|new_|output_)?tokens|in the completion", re.I)
_KEY = expression(
    r"api.?key (?:not|is) (?:valid|found|expired|invalid)|api_key_invalid"
    r"|(?:incorrect|invalid|expired) (?:api|proxy)\b.{0,20}(?:key|token)|no_db_connection",
    re.I,
)
"""Matches refusals of a key that come with a status 400: Gemini's, xAI's, and those of litellm's proxy without a database of
keys."""

_NO_KEY = expression(
    r"missing credentials|api_?key\b.{0,20}must be set|credentials were not found|unable to locate credentials", re.I
)
"""Matches the errors of clients that find no key and send nothing."""

_NO_ADDRESS = expression(r"must provide one of the `base_url`", re.I)
_NO_PACKAGE = expression(r"no module named|cloud sdk not found|must be installed", re.I)
_FILTER = expression(r"content.?(filter|policy|management)|safety system|flagged", re.I)
_PREFIX_CHANGED = expression(
    r"bound to a different (?:conversation|account|end.user)|blocks? (?:in the latest assistant message )?cannot be modified"
    r"|invalid .?signature.? in .?(?:redacted_)?thinking|(?:thinking|reasoning).{0,40}signature.{0,40}(?:invalid|not valid)"
    r"|was provided without its required (?:following item|.?reasoning.? item)"
    r"|encrypted content .{0,80}could not be (?:verified|decrypted)|thought.?signature.{0,20}(?:invalid|not valid|missing)",
    re.I | re.S,
)
"""Matches refusals of reasoning that was sent back, because it, its order or what came before it has changed (Anthropic's "Fix a
thinking block bound to a different conversation", OpenAI's reasoning items, Gemini's signatures)."""

_TOO_LONG = expression(r"prompt is too long: \d+ tokens? > \d+ max")
"""Matches Anthropic's error for a prompt that is too long, for which litellm has a class."""

_ENDED = expression(r"raised a streaming error - finish_reason: error")
"""Matches litellm's error for a stream that the provider ended with an error of its own."""

_NO_EVENTS = expression(r"body decoded to no events|closed the responses stream before any terminal event")
"""Matches litellm's errors for streams of Bedrock's and of OpenAI's Responses API that end without a last event."""

_MISWRITTEN = {"tool_use_failed", "output_parse_failed"}
"""Groq's error codes for output of the model that it could not parse; the request was fine."""

_NO_CONNECTION = {"ConnectError", "ClientConnectorError", "ConnectTimeout"}
_BY_STATUS = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    413: "bad_request",
    422: "bad_request",
    429: "rate_limit",
    504: "timeout",
}

_HINTS = {
    "auth": "Check the key and what it may use.",
    "quota": "Check the account's plan and balance, or choose another model.",
    "not_found": "Check the model's name and the server's address; those of OpenAI's style mostly end in /v1.",
    "connection": "Check that the server runs and that the address is right.",
    "timeout": "The server took too long; raise `timeout`, or send less.",
    "prefix_changed": "What was sent before has changed; without earlier reasoning the conversation goes on.",
    "empty": "Local servers do this when the prompt does not fit: check the context size the server was started with.",
    "interrupted": "What had arrived is kept.",
}


def failure(error: BaseException, *, began: bool) -> ModelError:
    """The ModelError for an exception of a transport. `began`: parts of the reply had arrived."""
    if isinstance(error, ReplyTooLarge):
        return ModelError(
            str(error), "What came before stays. Nothing of the reply was carried out.", kind="interrupted"
        )
    chain = list(said.chain(error))
    if _says(_ENDED, chain):
        return ended_badly("ERROR", began=began)
    if _says(_NO_EVENTS, chain):
        return cut_off() if began else nothing_came("")
    status, code, body = said.status(chain), said.code(chain), said.body(chain)
    kind = _kind(chain, status, code, body, began)
    text = said.unreached(chain) if kind == "connection" else said.failure_words(kind, error, body)
    if kind == "connection" and said.NOBODY in text:
        code = REFUSED
    return ModelError(
        masked(text),
        _HINTS.get(kind, ""),
        kind=kind,
        status=0 if kind == "connection" else status,
        code=code,
        body=body,
        retry_after=retry_after(chain, body),
    )


def of_end(reply: ReplyBuilder, *, ended: bool) -> ModelError | None:
    """The error for a reply whose stream is over and that is not whole; None for a whole one. `ended`: the provider said that it
    is the end."""
    if reply.failed:
        return ended_badly(reply.failed, began=not reply.empty)
    if reply.window_full:
        words = "The window was full before the reply was complete."
        return ModelError(words, kind="overflow", code="model_context_window_exceeded")
    if reply.announced and not reply.spoken:
        text = "The server said that the model calls a tool, and sent no call."
        return ModelError(text, "", kind="server" if reply.empty else "interrupted")
    if reply.empty:
        return nothing_came(reply.finish)
    return None if ended else cut_off()


def allowed_output(problem: ModelError, asked: int) -> int:
    """The longest reply in tokens that the model can write, by a server's refusal of a reply of `asked` tokens; 0 where the error
    says nothing about that."""
    if problem.kind != "bad_request" or not asked or not _OUTPUT_LIMIT.search(problem.body):
        return 0
    if output_excess(problem) or is_context_overflow(problem):  # not the reply is too long, but the prompt
        return 0
    named = (int(number.replace(",", "")) for number in _NUMBER.findall(problem.body))
    return max((n for n in named if MIN_OUTPUT_TOKENS <= n < asked), default=0)


MIN_OUTPUT_TOKENS = 256
"""The lowest number that is taken for a limit of replies, in tokens; no model has a lower one."""

_OUTPUT_LIMIT = expression(
    r"max_(?:completion_|new_|output_)?tokens|max(?:imum)?.{0,24}(?:completion|output) tokens|maximum tokens you requested",
    re.I,
)
_NUMBER = expression(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w])|(?<![\w.])\d{3,7}(?!\w)")


def cut_off() -> ModelError:
    """The error for a stream that ended normally, but before the reply was complete."""
    return ModelError("The stream ended before the reply was complete.", _HINTS["interrupted"], kind="interrupted")


def ended_badly(reason: str, *, began: bool) -> ModelError:
    """The error for a reply that the provider ended with an unknown `reason`. `began`: parts of it had arrived."""
    kind = "interrupted" if began else "server"
    return ModelError(f"The provider ended the reply with {reason}.", _HINTS.get(kind, ""), kind=kind)


def nothing_came(finish: str) -> ModelError:
    """The error for a stream that ended without text, call or reasoning, by the reason it gave (`finish`)."""
    if finish == "content_filter":
        return ModelError("The provider's content filter stopped the reply.", kind="content_filter")
    if finish == "refusal":
        return ModelError("The model refused to answer, and gave no reason.", kind="content_filter")
    if finish == "length":
        text = "The output limit was reached before the model said anything."
        return ModelError(text, "Raise `max_output`, or let the model think less.", kind="empty")
    return ModelError("The model sent an empty reply.", _HINTS["empty"], kind="empty")


def _kind(chain: list[BaseException], status: int, code: str, body: str, began: bool) -> str:
    """The kind of a failure. The order of the checks matters: what the text or code says for certain comes before the status,
    which gateways and litellm often change, and the names of classes come last."""
    names = {base.__name__ for error in chain for base in type(error).__mro__}
    classed = "ContextWindowExceededError" in names or _TOO_LONG.search(body)
    classed = classed and is_context_overflow(chain[0])
    if classed or overflow_code(code, body):  # an error about the output's limit has such a code as well
        return "bad_request" if _OUTPUT.search(body) else "overflow"
    if status in {0, 400, 422} and not began and _PREFIX_CHANGED.search(body):
        return "prefix_changed"
    if "ContentPolicyViolationError" in names or (status in {0, 400, 403} and _FILTER.search(code)):
        return "content_filter"
    if (status == 400 and _KEY.search(f"{code} {body}")) or (
        status in {0, 400, 500} and not began and _says(_NO_KEY, chain)
    ):
        return "auth"
    if status in {400, 402, 403, 429} and _QUOTA.search(f"{code} {body}"):
        return "quota"
    if code in _MISWRITTEN:
        return "interrupted" if began else "server"
    if not began and refuses_grammar(body):
        return "bad_request"  # llama.cpp answers with status 500
    if "ModuleNotFoundError" in names or _says(_NO_ADDRESS, chain) or (not status and _says(_NO_PACKAGE, chain)):
        return "not_found"  # some providers need an address, or a package that is not installed with litellm
    if names & _NO_CONNECTION and not began:
        return "connection"  # litellm turns it into a status 500 for some providers
    if status in _BY_STATUS and not (began and status in {408, 409, 429}):
        return _BY_STATUS[status]
    if began:
        return "interrupted"
    if names & {"TimeoutException", "APITimeoutError", "Timeout", "TimeoutError"}:
        return "timeout"
    if said.garbled(chain) or said.spoken(chain):
        return "server" if status == 0 or status >= 500 else "bad_request"
    if status == 0 and names & {
        "NetworkError",
        "ProtocolError",
        "APIConnectionError",
        "ConnectionError",
        "ClientError",
    }:
        return "connection"
    return "server" if status == 0 or status >= 500 else "bad_request"


def _says(words: re.Pattern[str], chain: list[BaseException]) -> bool:
    """True where a pattern matches the text of an error in the chain."""
    return any(words.search(str(error)) for error in chain)


_START = {
    "Ollama": "Start it with `ollama serve`",
    "LM Studio": "Start its server with `lms server start`, or in its Developer tab",
    "llama.cpp": "Start it with `llama-server -m MODEL.gguf --port 8080`",
    "vLLM": "Start it with `vllm serve {model}`",
}
_FETCH = {
    "Ollama": "`ollama pull {model}` fetches it; `ollama list` shows what is there.",
    "LM Studio": "`lms load {model}` loads it; `lms ls` shows what is there.",
}

_ACCOUNT = {
    "bedrock": "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION_NAME, or AWS_PROFILE, or AWS_BEARER_TOKEN_BEDROCK.",
    "sagemaker": "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION_NAME, or AWS_PROFILE.",
    "azure": "Set AZURE_API_KEY, and api_base to the address of your resource (https://NAME.openai.azure.com).",
    "vertex_ai": "Set VERTEXAI_PROJECT and VERTEXAI_LOCATION, and sign in with `gcloud auth application-default login`.",
}
"""The remedies for providers at which litellm authenticates by itself, by prefix."""

_PACKAGES = {
    "vertex_ai": " (google-auth, and google-cloud-aiplatform for Claude; gemini/… and anthropic/… need neither)"
}
_MISSING = expression(r"credentials|must provide one of the `base_url`", re.I)
_OPENAI_STYLE = {"openai", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy"}


def remedy(settings: ModelSettings, problem: ModelError) -> str:
    """What the person can do about `problem` with this model; empty where that does not depend on the provider."""
    match problem.kind:
        case "connection":
            return _unreachable(settings)
        case "timeout":
            return f"The server took longer than {settings.timeout:g} s; raise `timeout` for this model, or send less."
        case "auth" | "not_found" if _MISSING.search(problem.text) and settings.provider.prefix in _ACCOUNT:
            return _ACCOUNT[settings.provider.prefix]
        case "auth" if problem.status:
            return _refused(settings)
        case "auth":
            return "Set the provider's own variables, or name the one that holds the key with api_key_env (or --api-key-env)."
        case "not_found" if _NO_PACKAGE.search(problem.text):
            named = _PACKAGES.get(settings.provider.prefix, "")
            return f"litellm needs that Python package for this provider{named}: install it beside ctxchat."
        case "not_found":
            return _not_there(settings)
        case _:
            return ""


def _unreachable(settings: ModelSettings) -> str:
    """The remedy where the model's server cannot be reached."""
    provider = settings.provider
    if start := _START.get(provider.title):
        return f"{start.format(model=settings.model)}, or set where it listens (api_base, now {settings.shown_base})."
    if settings.api_base:
        return f"Check that a server runs at {settings.shown_base}, and that the address is right."
    return f"{provider.title} could not be reached: check the network, a proxy, a firewall."


def _refused(settings: ModelSettings) -> str:
    """The remedy where the server refused the key."""
    if settings.api_key_env:
        return f"The key in {settings.api_key_env} was not accepted. Put the right one there, then start ctxchat again."
    if settings.api_base or settings.provider.local:
        return "This server wants a key: name the variable that holds it with api_key_env (or --api-key-env)."
    if names := settings.provider.keys:
        return f"The key in {' or '.join(names)} was not accepted. Put the right one there, then start ctxchat again."
    return ""


def _not_there(settings: ModelSettings) -> str:
    """The remedy where the server does not know the model."""
    provider = settings.provider
    if fetch := _FETCH.get(provider.title):
        return fetch.format(model=settings.model)
    if settings.api_base and provider.prefix in _OPENAI_STYLE and not settings.base.endswith("/v1"):
        return "Check the name and the address: those of OpenAI's style mostly end in /v1."
    return "Check the name: /model, or `ctxchat models`, shows what can be had."
