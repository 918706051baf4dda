"""An MCP server that speaks the protocol by hand, to be as wrong as its argument says: `deaf` to every plea to end, `silent`,
`babbling` without an end, `endless` (a line without one), `beside` the protocol, `twins` (tools of one name once cleaned),
`shapeless` (schemas no provider takes), `broken` (entries that are no tools), `crowd` (results of very many parts), `long`
(results of very many characters). As `harbour` it is right, and up at once; as `busy` as well, with a tool that never answers and
one that it dies of."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

OBJECT = {"type": "object", "properties": {}}
TOOLS = {
    "twins": [("a b", OBJECT), ("a_b", OBJECT), ("a.b", OBJECT), ("x" * 90, OBJECT), ("x" * 91, OBJECT)],
    "harbour": [("add", OBJECT), ("fail", OBJECT)],
    "busy": [("add", OBJECT), ("slow", OBJECT), ("die", OBJECT)],
    "shapeless": [
        ("text", {"type": "string"}),
        ("number", {"type": "object", "required": 5, "properties": None}),
        ("word", {"type": "object", "required": "name"}),
        ("list", {"type": "object", "properties": {"a": 1, "b": True, "c": {"type": "string"}}}),
    ],
}
BROKEN = [
    {"name": "good", "inputSchema": OBJECT},
    {"name": "no schema", "inputSchema": "string"},
    {"inputSchema": OBJECT},
    {"name": 7, "inputSchema": OBJECT},
    "nothing",
    {"name": "huge", "inputSchema": {"description": "x" * 300_000}},
    {"name": "plain", "description": 5, "annotations": "?", "icons": 1, "outputSchema": "none"},
]


def answer(mode: str, method: str, parameters: dict) -> dict:
    """The result of one request."""
    match method:
        case "initialize":
            told = {"name": "raw", "version": "1"}
            return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": told}
        case "tools/list" if mode == "broken":
            return {"tools": BROKEN}
        case "tools/list":
            tools = TOOLS.get(mode, [("echo", OBJECT)])
            return {"tools": [{"name": name, "inputSchema": schema} for name, schema in tools]}
        case _:
            many, text = {"crowd": (30_000, "part"), "long": (1, "long " * 2_500_000)}.get(
                mode, (1, parameters["name"])
            )
            return {"content": [{"type": "text", "text": text}] * many}


def main(mode: str) -> None:
    """Serve until standard input ends, and beyond that where the mode is to be deaf."""
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), file=sys.stderr, flush=True)
    while mode in {"deaf", "silent"}:
        time.sleep(1)
    while mode == "babbling":
        print("Listening \x1b[2J on port 7", flush=True)
    while mode == "endless":
        sys.stdout.write("x" * 1_000_000)
    if mode == "beside":
        print("\n".join(f"Listening \x1b[2J {n}" for n in range(50)), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        match mode, asked.get("params", {}).get("name"):
            case "busy", "slow":
                continue
            case "busy", "die":
                print("goodbye from the server", file=sys.stderr, flush=True)
                return
        if asked.get("method") in {"initialize", "tools/list", "tools/call"}:
            result = answer(mode, asked["method"], asked.get("params", {}))
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
        elif "id" in asked:
            refused = {"code": -32601, "message": "unknown"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": refused}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
