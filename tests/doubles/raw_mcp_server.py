"""An MCP server that speaks the protocol by hand, to be as wrong as its argument says: `deaf` to every plea to end, `silent`,
`beside` the protocol, `twins` (tools of one name once cleaned), `shapeless` (schemas no provider takes)."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

OBJECT = {"type": "object", "properties": {}}
TOOLS = {
    "twins": [("a b", OBJECT), ("a_b", OBJECT), ("a.b", OBJECT), ("x" * 90, OBJECT), ("x" * 91, OBJECT)],
    "shapeless": [
        ("text", {"type": "string"}),
        ("number", {"type": "object", "required": 5, "properties": None}),
        ("word", {"type": "object", "required": "name"}),
    ],
}


def answer(mode: str, method: str, parameters: dict) -> dict:
    """The result of one request."""
    match method:
        case "initialize":
            told = {"name": "raw", "version": "1"}
            return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": told}
        case "tools/list":
            tools = TOOLS.get(mode, [("echo", OBJECT)])
            return {"tools": [{"name": name, "inputSchema": schema} for name, schema in tools]}
        case _:
            return {"content": [{"type": "text", "text": parameters["name"]}]}


def main(mode: str) -> None:
    """Serve until standard input ends, and beyond that where the mode is to be deaf."""
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), file=sys.stderr, flush=True)
    while mode in {"deaf", "silent"}:
        time.sleep(1)
    if mode == "beside":
        print("\n".join(f"Listening \x1b[2J {n}" for n in range(50)), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") in {"initialize", "tools/list", "tools/call"}:
            result = answer(mode, asked["method"], asked.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
        elif "id" in asked:
            refused = {"code": -32601, "message": "unknown"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": refused}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
