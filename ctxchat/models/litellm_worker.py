"""The child process that holds litellm, the only file that imports it. Orders come on standard input, news go to what was
standard output; everything else that prints ends in the log on standard error. Run as `python -m ctxchat.models.litellm_worker`.

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
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # or the import asks the network
    "REPEATED_STREAMING_CHUNK_LIMIT": str(10**9),  # or a hundred equal chunks, such as a long rule, end a reply
}
_TOLD = dict(os.environ)
"""What the environment said before we wrote it so that all libraries can read it."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "huggingface_hub", "asyncio")
_FIXED: dict[str, Any] = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "num_retries": 0,
    "max_retries": 0,
    "_skip_mcp_handler": True,  # some versions import `mcp` for every call with tools
}


class MaskedLog(logging.Formatter):
    """What libraries log, without the secrets in it: they quote requests, headers and answers."""

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


class ModelWorker:
    """Serves orders until the input ends. One task a call; the loop sleeps when there is none."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._litellm: asyncio.Task[Any] | None = None
        self._thinking_first: set[tuple[str, str]] = set()
        """Models and their servers whose last reply began with thoughts that only their end marked."""

    async def serve(self, orders: asyncio.StreamReader) -> None:
        """Load litellm beside reading orders, so that a cancel is obeyed even before it is there."""
        self._litellm = asyncio.create_task(self._load())
        self._litellm.add_done_callback(_give_up_without)
        while (line := await orders.readline()).endswith(b"\n"):
            self._obey(protocol.read_request(line))

    def _obey(self, order: protocol.Request) -> None:
        match order:
            case protocol.Call(id=id):
                task = self._calls[id] = asyncio.create_task(self._stream_call(order))
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
        try:
            self._output.write(protocol.encode(news) + b"\n")
            self._output.flush()
        except OSError:
            os._exit(0)  # nobody listens any more

    async def _load(self) -> Any:
        litellm = await asyncio.to_thread(_import_litellm)
        await _warm(litellm)
        gc.collect()
        gc.freeze()
        self._send_news(protocol.Ready())
        return litellm

    async def _stream_call(self, call: protocol.Call) -> None:
        model = str(call.arguments["model"])
        signed = not is_gemini(model)  # litellm keeps its signatures in call ids
        server = (model, str(call.arguments.get("api_base", "")))
        reply = ReplyBuilder(
            model, offered_in(call.arguments), signed=signed, thinks_first=server in self._thinking_first
        )
        try:
            assert self._litellm is not None
            if (base := str(call.arguments.get("api_base", ""))) and not proxy_for(base, _TOLD):
                _ask_straight(urlsplit(base).hostname or "")
            await self._stream(await asyncio.shield(self._litellm), call, reply)
            if reply.thinks_first:
                self._thinking_first.add(server)
            else:
                self._thinking_first.discard(server)
        except Exception as error:
            self._pieces(call.id, reply.flush())
            self._send_news(protocol.failed(call.id, failures.failure(error, began=not reply.empty)))

    async def _stream(self, litellm: Any, call: protocol.Call, reply: ReplyBuilder) -> None:
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


def _ask_straight(*hosts: str) -> None:
    """Keep them out of the environment's proxy, beside those that are already; litellm reads that before it asks a host first."""
    straight = without_proxy({"no_proxy": ",".join((os.environ.get("no_proxy", ""), *hosts))})
    os.environ.update(no_proxy=straight, NO_PROXY=straight)


def _give_up_without(loading: asyncio.Task[Any]) -> None:
    """There is nothing to do without litellm: say why in the log, and let the other side see the end."""
    if not loading.cancelled() and (problem := loading.exception()):
        traceback.print_exception(problem)
        sys.stderr.flush()
        os._exit(3)


def _reply_end(litellm: Any, stream: Any, reply: ReplyBuilder, raw_usage: Any) -> ReplyEnd:
    told = [
        usage for chunk in stream.chunks if (usage := getattr(chunk, "usage", None))
    ]  # else litellm made the figures up
    if told and getattr(told[-1], "cached_tokens", None) and not getattr(raw_usage, "prompt_tokens_details", None):
        raw_usage = _with_cached(litellm, raw_usage, told[-1])
    context_usage = raw_usage.model_dump() if raw_usage else {}
    said = dollars(getattr(raw_usage, "cost", None))
    return reply.end(usage_from(context_usage, counted=bool(told), cost_usd=said or 0.0), priced=said is not None)


def _with_cached(litellm: Any, usage: Any, told: Any) -> Any:
    """Moonshot says beside the counts what was cached; litellm's sum leaves it out, and prices it in full."""
    details = {"cached_tokens": tokens(told.cached_tokens)}
    return litellm.Usage(
        **{**usage.model_dump(), "cost": getattr(told, "cost", None), "prompt_tokens_details": details}
    )


def _import_litellm() -> Any:
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
    _ask_ollama_nothing()
    _hear_why_replies_end()
    return litellm


def _ask_ollama_nothing() -> None:
    """After each reply litellm asks Ollama for the model's prices and waits for that without its event loop: a server that hangs
    then would hold up every other stream for ever. They are nothing; what else it says we ask ourselves."""
    try:
        from litellm.llms.ollama.common_utils import OllamaModelInfo
    except ImportError:  # not the litellm we know: a wait is better than no models
        return

    def known(self: object, model: str, api_base: str | None = None, api_key: str | None = None) -> dict[str, Any]:
        free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        limits = dict.fromkeys(("max_tokens", "max_input_tokens", "max_output_tokens"))
        return {"key": model, "litellm_provider": "ollama", "mode": "chat", **free, **limits}

    OllamaModelInfo.get_runtime_model_info = known


def _hear_why_replies_end() -> None:
    """litellm makes a good end of reasons that are none; those `reply` knows stay as the provider gave them."""
    try:
        from litellm.litellm_core_utils.core_helpers import _FINISH_REASON_MAP  # pyright: ignore[reportPrivateUsage]
    except ImportError:
        return
    _FINISH_REASON_MAP.update(REASONS)  # pyright: ignore[reportCallIssue, reportArgumentType]


async def _warm(litellm: Any) -> None:
    """A first call imports hundreds of modules: make it to a port where nobody can be listening."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        for model in ("openai/warm", "anthropic/warm"):
            try:
                message = {"role": "user", "content": "warm"}
                await litellm.acompletion(
                    model=model, messages=[message], api_base=base, api_key="none", timeout=5, max_tokens=1, **_FIXED
                )
            except Exception:  # refused, as meant
                continue


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Our own ends of the pipes; from now on whoever prints writes to the log, and nobody reads our orders."""
    orders = os.fdopen(os.dup(0), "rb", buffering=0)
    news = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return orders, news


def _certificates() -> dict[str, str]:
    """The certificates that the environment names, in the variables that litellm and those below it read, as one file. A call
    is not made where they cannot be read, so that they are left to it here."""
    try:
        files = named_files(_TOLD)
        if len(files) > 1:
            whole = tempfile.TemporaryFile()  # noqa: SIM115 - it goes with the process, however that ends
            whole.write(b"\n".join(file.read_bytes() for file in files))
            whole.flush()
            files = [Path(f"/dev/fd/{os.dup(whole.fileno())}")]
    except (UsageError, OSError):
        return {}
    return dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(files[0])) if files else {}


async def _main() -> None:
    orders, news = _take_standard_streams()
    reader = asyncio.StreamReader(limit=1 << 30)  # a request with images is one long line
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), orders)
    await ModelWorker(news).serve(reader)


if __name__ == "__main__":
    os.environ.update(_ENVIRONMENT, **known_to_clients(_TOLD), **_certificates(), no_proxy=without_proxy(_TOLD))
    _ask_straight("localhost", "127.0.0.1", "::1")
    asyncio.new_event_loop().run_until_complete(_main())
    os._exit(0)  # taking the interpreter down in order costs most of a second
