"""Reports turns, model calls, tool calls and compactions as OpenTelemetry spans and metrics, by the conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/): names, figures and times, and not a word of what was said.

Off unless the settings name an address. Needs the extra `otel`, and is imported only then.
"""

from __future__ import annotations

import asyncio
import logging
from time import time_ns

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from ctxchat import __version__
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import (
    CompactionStarted,
    Delegated,
    Failed,
    Retry,
    Stamped,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from ctxchat.core.record import CompactionRecord

SENDING_TIMEOUT_S = 2.0
"""Seconds that one sending may take, and so what the end of the program may have to wait for."""

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""As the conventions call those that litellm calls otherwise."""


class Telemetry:
    """Sends to the collector at `endpoint`, by OTLP over HTTP, from threads of its own. `OTEL_…` variables count as usual."""

    def __init__(self, endpoint: str) -> None:
        logging.getLogger("opentelemetry").propagate = False  # a collector that is away is no news for the screen
        resource = Resource.create({"service.name": "ctxchat", "service.version": __version__})
        base = endpoint.rstrip("/")
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._traces.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces", timeout=SENDING_TIMEOUT_S))
        )
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/v1/metrics", timeout=SENDING_TIMEOUT_S))
        self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)

    def of_session(self, agent: str, above: SpanWriter | None = None) -> SpanWriter:
        """The listener for a session's events; a sub-agent's events become a part of the turn that is open in `above`, its
        caller's listener."""
        return SpanWriter(
            self._traces.get_tracer("ctxchat", __version__),
            self._metrics.get_meter("ctxchat", __version__),
            agent,
            above,
        )

    async def close(self) -> None:
        """Send what is left, within a few seconds."""
        ends = (asyncio.to_thread(provider.shutdown) for provider in (self._traces, self._metrics))
        await asyncio.gather(*ends, return_exceptions=True)


class SpanWriter:
    """The events of one session as spans: a turn, in it model calls, tool calls and compactions. Never raises."""

    def __init__(self, tracer: Tracer, meter: Meter, agent: str = "", above: SpanWriter | None = None) -> None:
        self._tracer, self._agent, self._above = tracer, agent, above
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of a request, by kind")
        self._seconds = meter.create_histogram("gen_ai.client.operation.duration", "s", "Time of a model call")
        self._model = ""
        self._turn: Span | None = None
        self._calls: dict[str, Span] = {}
        self._compaction: Span | None = None
        self._since = 0  # when the model call under way can have begun, in nanoseconds

    def __call__(self, stamped: Stamped) -> None:
        """Take one event."""
        match event := stamped.event:
            case TurnStarted():
                self._end_turn()
                name = f"invoke_agent {self._agent}".strip()
                self._turn = self._begin(
                    name,
                    {
                        "gen_ai.operation.name": "invoke_agent",
                        "gen_ai.agent.name": self._agent or "ctxchat",
                        "gen_ai.conversation.id": stamped.session,
                    },
                )
            case ContextUsage(model=model):
                self._model = model
            case Usage():
                self._model_call(event)
            case ToolStarted():
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": event.name,
                    "gen_ai.tool.call.id": event.call_id,
                }
                self._calls[event.call_id] = self._begin(f"execute_tool {event.name}", attributes)
            case Delegated() if span := self._calls.get(event.call_id):
                span.set_attribute("ctxchat.sub_agent.conversation.id", event.sub_session)
            case ToolFinished():
                self._end_call(event)
            case CompactionStarted():
                self._end_compaction("cancelled")
                self._compaction = self._begin("compact_context", {"ctxchat.compaction.strategy": event.strategy})
            case CompactionRecord():
                self._end_compaction(event.outcome, event.freed)
            case Retry() if self._turn:
                self._turn.add_event("retry", {"ctxchat.retry.attempt": event.attempt})
                self._since = time_ns()
            case Failed() if self._turn:
                self._turn.set_attribute("error.type", event.kind)
                self._turn.set_status(StatusCode.ERROR)
            case TurnFinished():
                self._end_turn()
            case _:
                pass

    def _begin(self, name: str, attributes: dict[str, str]) -> Span:
        self._since = time_ns()
        around = self._turn or (self._above and self._above._turn)
        context = trace.set_span_in_context(around) if around else None
        return self._tracer.start_span(name, context, SpanKind.INTERNAL, attributes)

    def _model_call(self, usage: Usage) -> None:
        ended = time_ns()
        prefix, named, _ = self._model.partition("/")
        provider = _PROVIDERS.get(prefix, prefix) if named else "unknown"
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": self._model,
        }
        span = self._tracer.start_span(
            f"chat {self._model}".strip(),
            trace.set_span_in_context(self._turn) if self._turn else None,
            SpanKind.CLIENT,
            about
            | {
                "gen_ai.usage.input_tokens": usage.prompt,
                "gen_ai.usage.output_tokens": usage.completion,
                "gen_ai.usage.cache_read.input_tokens": usage.cached,
                "gen_ai.usage.cache_creation.input_tokens": usage.written,
                "ctxchat.usage.cost_usd": usage.cost_usd,
            },
            start_time=self._since or ended,
        )
        span.end(ended)
        self._tokens.record(usage.prompt, about | {"gen_ai.token.type": "input"})
        self._tokens.record(usage.completion, about | {"gen_ai.token.type": "output"})
        if self._since:
            self._seconds.record((ended - self._since) / 1e9, about)
        self._since = ended

    def _end_call(self, finished: ToolFinished) -> None:
        span = self._calls.pop(finished.call_id, None)
        if span is None:
            return
        if finished.status != "ok":
            span.set_attribute("error.type", finished.status)
            span.set_status(StatusCode.ERROR)
        span.end()
        self._since = time_ns()

    def _end_compaction(self, outcome: str, freed: int = 0) -> None:
        if self._compaction is not None:
            self._compaction.set_attributes(
                {"ctxchat.compaction.outcome": outcome, "ctxchat.compaction.freed_tokens": freed}
            )
            self._compaction.end()
            self._compaction, self._since = None, time_ns()

    def _end_turn(self) -> None:
        self._end_compaction("cancelled")
        for span in (*self._calls.values(), *((self._turn,) if self._turn else ())):
            span.end()
        self._calls.clear()
        self._turn = None
