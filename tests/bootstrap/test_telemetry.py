"""What is reported to an OpenTelemetry collector: figures, names and times, and nothing that was said."""

from __future__ import annotations

import gzip
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ctxchat.core.errors import ModelError
from ctxchat.core.events import Usage
from tests.bootstrap.scripted_program import Scripted, program, say
from tests.doubles.scripted import Reply, calls, fails, says


class Collector:
    """A collector on loopback: what came, by path."""

    def __init__(self) -> None:
        self.came: list[tuple[str, bytes]] = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                packed = self.headers.get("content-encoding") == "gzip"
                collector.came.append((self.path, gzip.decompress(body) if packed else body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def spans(self) -> dict[str, Span]:
        found: dict[str, Span] = {}
        for path, body in self.came:
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
        return found

    @property
    def metrics(self) -> set[str]:
        every = [ExportMetricsServiceRequest.FromString(body) for path, body in self.came if path == "/v1/metrics"]
        return {m.name for one in every for r in one.resource_metrics for s in r.scope_metrics for m in s.metrics}


def values(span: Span) -> dict[str, object]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def reporting(folder: Path, address: str, *script: Reply) -> Scripted:
    made = program(folder, folder / "config", *script)
    made.loaded = msgspec.structs.replace(
        made.loaded, settings=msgspec.structs.replace(made.loaded.settings, telemetry=address)
    )
    return made


async def test_a_turn_its_calls_and_its_tools_are_spans_without_a_word(tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "notes.md").write_text("SECRET-WORD\n")
    script = (
        calls(("read_file", {"path": "notes.md"}), usage=Usage(1_200, 30, cached=900, cost_usd=0.25)),
        says("SECRET-ANSWER", usage=Usage(1_300, 20)),
        fails(ModelError("SECRET-FAULT", kind="auth")),
    )
    made = reporting(tmp_path, collector.address, *script)
    session = await made.open(interactive=False)
    await say(session, "SECRET-QUESTION")
    await say(session, "SECRET-QUESTION again")
    await session.close()
    await made.close()

    spans = collector.spans
    assert set(spans) == {"invoke_agent", "execute_tool read_file", "chat scripted/model"}
    assert collector.metrics == {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}
    chat, tool, turn = spans["chat scripted/model"], spans["execute_tool read_file"], spans["invoke_agent"]
    assert chat.kind == Span.SPAN_KIND_CLIENT and values(chat)["gen_ai.operation.name"] == "chat"
    assert values(chat)["gen_ai.usage.input_tokens"] == 1_300 and values(chat)["gen_ai.provider.name"] == "scripted"
    assert values(tool)["gen_ai.tool.name"] == "read_file" and tool.start_time_unix_nano <= tool.end_time_unix_nano
    assert values(turn)["gen_ai.conversation.id"] == session.id and values(turn)["error.type"] == "auth"
    assert chat.trace_id == tool.trace_id and chat.parent_span_id == tool.parent_span_id != b""
    assert not [path for path, body in collector.came if b"SECRET" in body]


async def test_a_sub_agents_turn_is_a_part_of_its_callers(tmp_path: Path, collector: Collector) -> None:
    delegates = calls(("delegate", {"agent": "explore", "task": "SECRET-TASK"}))
    made = reporting(tmp_path, collector.address, delegates, says("SECRET-PORT"), says("done"))
    session = await made.open(interactive=False)
    await say(session, "ask")
    await session.close()
    await made.close()

    above, below, tool = (collector.spans[n] for n in ("invoke_agent", "invoke_agent explore", "execute_tool delegate"))
    assert below.trace_id == above.trace_id and below.parent_span_id == above.span_id == tool.parent_span_id
    assert values(tool)["ctxchat.sub_agent.conversation.id"] == values(below)["gen_ai.conversation.id"] != session.id
    assert not [path for path, body in collector.came if b"SECRET" in body]


async def test_a_collector_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    made = reporting(tmp_path, "http://127.0.0.1:9", says("fine"))
    session = await made.open(interactive=False)
    began = time.monotonic()
    await say(session, "hello")
    assert time.monotonic() - began < 2
    await session.close()
    await made.close()
    assert time.monotonic() - began < 8


async def test_without_an_address_nothing_is_loaded(tmp_path: Path) -> None:
    made = program(tmp_path, tmp_path / "config", says("fine"))
    session = await made.open(interactive=False)
    assert made.telemetry is None and not session.notices
    await session.close()
    await made.close()
