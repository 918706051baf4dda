"""The child process that holds litellm. Reads requests from standard input and writes news to the original standard output;
whatever libraries print goes to the log on standard error. Run as `python -m ctxchat.models.litellm_worker`.

Knows nothing of sessions, budgets or retries.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from ctxchat.certificates import named_files
from ctxchat.core.errors import UsageError
from ctxchat.core.network import known_to_clients, proxy_for, without_proxy
from ctxchat.core.ports import ReplyEnd
from ctxchat.core.secrets import masked
from ctxchat.core.usage import dollars, tokens
from ctxchat.models import failures, protocol
from ctxchat.models.litellm_arguments import litellm_arguments
from ctxchat.models.loose_calls import offered_in
from ctxchat.models.reply import REASONS, ReplyBuilder, usage_from
from ctxchat.models.streams import is_gemini, listen

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise the import makes a network request
    "REPEATED_STREAMING_CHUNK_LIMIT": str(10**9),  # otherwise a hundred equal chunks, such as a long rule, end a reply
}
_ORIGINAL_ENVIRONMENT = dict(os.environ)
"""The environment before it was changed for the libraries here."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "huggingface_hub", "asyncio")
_FIXED: dict[str, Any] = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "num_retries": 0,
    "max_retries": 0,
    "_skip_mcp_handler": True,  # otherwise some versions import `mcp` for every call with tools
}


class MaskedLog(logging.Formatter):
    """Formats log records with secrets masked: libraries quote requests, headers and answers."""

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


class ModelWorker:
    """Serves requests until the input ends, with one task for each call."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._litellm: asyncio.Task[Any] | None = None
        self._thinking_first: set[tuple[str, str]] = set()
        """Pairs of model and address whose last reply began with thinking that had only a closing tag."""

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Load litellm while reading requests, so that a cancel is obeyed even before it is loaded."""
        self._litellm = asyncio.create_task(self._load())
        self._litellm.add_done_callback(_exit_on_failure)
        while (line := await requests.readline()).endswith(b"\n"):
            self._handle(protocol.read_request(line))

    def _handle(self, request: protocol.Request) -> None:
        """Start or cancel a call."""
        match request:
            case protocol.Call(id=id):
                task = self._calls[id] = asyncio.create_task(self._stream_call(request))
                task.add_done_callback(lambda _: self._finish(id))
            case protocol.Cancel(id=id):
                if id in self._calls:
                    self._calls[id].cancel()
                else:
                    self._send_news(protocol.StreamEnded(id))

    def _finish(self, id: int) -> None:
        del self._calls[id]
        self._send_news(protocol.StreamEnded(id))

    def _send_news(self, news: protocol.News) -> None:
        """Write one line of news; ends this process where nobody reads it any more."""
        try:
            self._output.write(protocol.encode(news) + b"\n")
            self._output.flush()
        except OSError:
            os._exit(0)  # the parent process is gone

    async def _load(self) -> Any:
        """Import litellm and make a first use of it, so that the first call is fast; then tell that it is ready."""
        litellm = await asyncio.to_thread(_import_litellm)
        await _warm(litellm)
        gc.collect()
        gc.freeze()
        self._send_news(protocol.Ready())
        return litellm

    async def _stream_call(self, call: protocol.Call) -> None:
        """Stream one reply, and send an error as news where it fails."""
        model = str(call.arguments["model"])
        signed = not is_gemini(model)  # litellm keeps Gemini's signatures in call ids
        server = (model, str(call.arguments.get("api_base", "")))
        reply = ReplyBuilder(
            model, offered_in(call.arguments), signed=signed, thinks_first=server in self._thinking_first
        )
        try:
            assert self._litellm is not None
            if (base := str(call.arguments.get("api_base", ""))) and not proxy_for(base, _ORIGINAL_ENVIRONMENT):
                _bypass_proxy(urlsplit(base).hostname or "")
            await self._stream(await asyncio.shield(self._litellm), call, reply)
            if reply.thinks_first:
                self._thinking_first.add(server)
            else:
                self._thinking_first.discard(server)
        except Exception as error:
            self._pieces(call.id, reply.flush())
            self._send_news(protocol.failed(call.id, failures.failure(error, began=not reply.empty)))

    async def _stream(self, litellm: Any, call: protocol.Call, reply: ReplyBuilder) -> None:
        """Have litellm stream a reply, and send its pieces and its end as news."""
        import httpx

        timeout = httpx.Timeout(call.timeout, connect=min(15.0, call.timeout))
        asked = litellm.acompletion(**litellm_arguments(call.arguments), **_FIXED, timeout=timeout)
        listener = await listen(asked, str(call.arguments["model"]), call.timeout)
        raw_usage = None
        try:
            async for chunk in listener.chunks():
                self._pieces(call.id, reply.feed(chunk.model_dump()))
                raw_usage = getattr(chunk, "usage", None) or raw_usage
        finally:
            await listener.stream.aclose()
        self._pieces(call.id, reply.flush())
        if failed := failures.of_end(reply, ended=listener.ended):
            self._send_news(protocol.failed(call.id, failed))
        else:
            self._send_news(protocol.Piece(call.id, _reply_end(litellm, listener.stream, reply, raw_usage)))

    def _pieces(self, id: int, pieces: list[Any]) -> None:
        for piece in pieces:
            self._send_news(protocol.Piece(id, piece))


def _bypass_proxy(*hosts: str) -> None:
    """Exclude hosts from the environment's proxy, in addition to those already excluded; litellm reads that before its first
    request to a host."""
    excluded = without_proxy({"no_proxy": ",".join((os.environ.get("no_proxy", ""), *hosts))})
    os.environ.update(no_proxy=excluded, NO_PROXY=excluded)


def _exit_on_failure(loading: asyncio.Task[Any]) -> None:
    """Exit where litellm could not be loaded, with the reason in the log; the parent process sees the exit."""
    if not loading.cancelled() and (problem := loading.exception()):
        traceback.print_exception(problem)
        sys.stderr.flush()
        os._exit(3)


def _reply_end(litellm: Any, stream: Any, reply: ReplyBuilder, raw_usage: Any) -> ReplyEnd:
    """The end of a reply, with the usage that the server reported, or litellm's estimate."""
    # where the server reported none, litellm estimated the figures in `raw_usage`
    reported = [usage for chunk in stream.chunks if (usage := getattr(chunk, "usage", None))]
    if (
        reported
        and getattr(reported[-1], "cached_tokens", None)
        and not getattr(raw_usage, "prompt_tokens_details", None)
    ):
        raw_usage = _with_cached(litellm, raw_usage, reported[-1])
    figures = raw_usage.model_dump() if raw_usage else {}
    cost = dollars(getattr(raw_usage, "cost", None))
    return reply.end(usage_from(figures, counted=bool(reported), cost_usd=cost or 0.0), priced=cost is not None)


def _with_cached(litellm: Any, usage: Any, reported: Any) -> Any:
    """The usage with Moonshot's count of cached tokens, which is in a field of its own: litellm drops it and prices them in
    full."""
    details = {"cached_tokens": tokens(reported.cached_tokens)}
    return litellm.Usage(
        **{**usage.model_dump(), "cost": getattr(reported, "cost", None), "prompt_tokens_details": details}
    )


def _import_litellm() -> Any:
    """Import litellm and set it up: its log goes to standard error, masked, and its faults that matter here are patched. Takes
    seconds."""
    gc.disable()
    try:
        import litellm
    finally:
        gc.enable()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MaskedLog())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True
    litellm.drop_params = True
    _patch_ollama_prices()
    _keep_finish_reasons()
    return litellm


def _patch_ollama_prices() -> None:
    """Keep litellm from asking Ollama for a model's prices after each reply: that blocks the event loop, so a server that hangs
    would block every other stream for ever. Ollama has no prices, and `windows` asks for the model's limits."""
    try:
        from litellm.llms.ollama.common_utils import OllamaModelInfo
    except ImportError:  # another version of litellm: a wait is better than no models
        return

    def model_info(self: object, model: str, api_base: str | None = None, api_key: str | None = None) -> dict[str, Any]:
        free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        limits = dict.fromkeys(("max_tokens", "max_input_tokens", "max_output_tokens"))
        return {"key": model, "litellm_provider": "ollama", "mode": "chat", **free, **limits}

    OllamaModelInfo.get_runtime_model_info = model_info


def _keep_finish_reasons() -> None:
    """Make litellm pass on the finish reasons that `reply` distinguishes: it reports those of failed replies as a normal end."""
    try:
        from litellm.litellm_core_utils.core_helpers import _FINISH_REASON_MAP  # pyright: ignore[reportPrivateUsage]
    except ImportError:
        return
    _FINISH_REASON_MAP.update(REASONS)  # pyright: ignore[reportCallIssue, reportArgumentType]


async def _warm(litellm: Any) -> None:
    """Make a first call, which imports hundreds of modules, to a port where no server can be listening."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        for model in ("openai/warm", "anthropic/warm"):
            try:
                message = {"role": "user", "content": "warm"}
                await litellm.acompletion(
                    model=model, messages=[message], api_base=base, api_key="none", timeout=5, max_tokens=1, **_FIXED
                )
            except Exception:  # the connection is refused, as intended
                continue


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private copies of the pipes for requests and news. From now on libraries print to the log and read nothing."""
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    news = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, news


def _certificates() -> dict[str, str]:
    """The environment variables that make litellm and its libraries read the certificates the environment names, joined to one
    file. Empty where they cannot be read: every call reports that."""
    try:
        files = named_files(_ORIGINAL_ENVIRONMENT)
        if len(files) > 1:
            joined = tempfile.TemporaryFile()  # noqa: SIM115 - it goes with the process, however that ends
            joined.write(b"\n".join(file.read_bytes() for file in files))
            joined.flush()
            files = [Path(f"/dev/fd/{os.dup(joined.fileno())}")]
    except (UsageError, OSError):
        return {}
    return dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(files[0])) if files else {}


async def _main() -> None:
    """Serve requests from standard input until it ends."""
    requests, news = _take_standard_streams()
    reader = asyncio.StreamReader(limit=1 << 30)  # a request with images is one long line
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), requests)
    await ModelWorker(news).serve(reader)


if __name__ == "__main__":
    os.environ.update(
        _ENVIRONMENT,
        **known_to_clients(_ORIGINAL_ENVIRONMENT),
        **_certificates(),
        no_proxy=without_proxy(_ORIGINAL_ENVIRONMENT),
    )
    _bypass_proxy("localhost", "127.0.0.1", "::1")
    asyncio.new_event_loop().run_until_complete(_main())
    os._exit(0)  # a regular exit of the interpreter takes most of a second
