"""An MCP server over HTTP whose sessions can be taken from it, as by a restart, and which gives answers of any length."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ctxchat.tools.mcp.protocol import Address

_TOOL = {
    "name": "hi",
    "description": "",
    "inputSchema": {"type": "object", "properties": {"letters": {"type": "integer"}, "stream": {"type": "boolean"}}},
}


@contextmanager
def forgetful(status: int) -> Iterator[tuple[Address, set[str]]]:
    """Its address, and the sessions it knows; it answers one it does not know with this status. Its tool answers with as many
    `letters` as it is told, as a `stream` where that is wanted."""
    sessions: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            self._say(405, {})

        def do_DELETE(self) -> None:
            self._say(200, {})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method, answer = asked.get("method"), {"jsonrpc": "2.0", "id": asked.get("id")}
            if method == "initialize":
                session = uuid.uuid4().hex
                sessions.add(session)
                about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                about["serverInfo"] = {"name": "forgetful", "version": "1"}
                self._say(200, {**answer, "result": about}, session)
            elif self.headers.get("mcp-session-id") not in sessions:
                error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
                self._say(status, {"jsonrpc": "2.0", "id": None, "error": error})
            elif "id" not in asked:
                self._say(202, None)
            elif method == "tools/list":
                self._say(200, {**answer, "result": {"tools": [_TOOL]}})
            elif method == "tools/call":
                wanted = asked["params"].get("arguments") or {}
                text = "x" * wanted["letters"] if "letters" in wanted else "hi there"
                content = [{"type": "text", "text": text}]
                self._say(200, {**answer, "result": {"content": content}}, stream=wanted.get("stream", False))
            else:
                self._say(200, {**answer, "error": {"code": -32601, "message": "unknown"}})

        def _say(self, code: int, answer: object, session: str = "", *, stream: bool = False) -> None:
            body = b"" if answer is None else json.dumps(answer).encode()
            if stream:
                body = b"event: message\ndata: " + body + b"\n\n"
            self.send_response(code)
            self.send_header("content-type", "text/event-stream" if stream else "application/json")
            self.send_header("content-length", str(len(body)))
            if session:
                self.send_header("mcp-session-id", session)
            self.end_headers()
            with suppress(OSError):  # nobody reads on
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield Address(url=f"http://127.0.0.1:{server.server_port}/mcp"), sessions
    finally:
        server.shutdown()
        server.server_close()
