"""An MCP server that speaks the protocol by hand, to be as wrong as its argument says: `deaf` to every plea to end, `silent`,
`babbling` without an end, `endless` (a line without one), `beside` the protocol, `twins` (tools of one name once cleaned),
`shapeless` (schemas no provider takes), `broken` (entries that are no tools), `crowd` (results of very many parts), `long`
(results of very many characters), `nested` (a schema without an end beside a good one), `others` (other tools after each call),
`resources` (of which it has some, and no tools). A `shelf` has resources of every kind, a `pager` a list of them that never
ends, as `prompts` it has prompts. As `rich` its results are data and images; as `odd` few providers take its
arguments' names. An `asker` asks a person: `endless` questions, `two` at once, `many` things, `several` of some, or what is
`odd`. `crossed` has two calls under way: the `late` one asks, and meanwhile the `early` one ends. As
`harbour` it is right, and up at once; as `busy` as well, with a tool that never answers and one that it dies of."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

OBJECT = {"type": "object", "properties": {}}
CHOICE = {"anyOf": [{"properties": {"$filter": {"type": "string"}}, "required": ["$filter"]}, {"required": ["ids"]}]}
TOOLS = {
    "odd": [("query", {**OBJECT, "properties": {"ids": {"type": "array"}}, **CHOICE})],
    "rich": [(name, OBJECT) for name in ("rows", "same", "wrapped", "picture", "torn")],
    "twins": [("a b", OBJECT), ("a_b", OBJECT), ("a.b", OBJECT), ("x" * 90, OBJECT), ("x" * 91, OBJECT)],
    "harbour": [("add", OBJECT), ("fail", OBJECT)],
    "asker": [(name, OBJECT) for name in ("endless", "two", "many", "odd", "several")],
    "crossed": [("early", OBJECT), ("late", OBJECT)],
    "busy": [("add", OBJECT), ("slow", OBJECT), ("die", OBJECT)],
    "shapeless": [
        ("text", {"type": "string"}),
        ("number", {"type": "object", "required": 5, "properties": None}),
        ("word", {"type": "object", "required": "name"}),
        ("list", {"type": "object", "properties": {"a": 1, "b": True, "c": {"type": "string"}}}),
    ],
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RICH = {
    "rows": {"content": [{"type": "text", "text": "2 rows"}], "structuredContent": {"rows": [1, 2]}},
    "same": {"content": [{"type": "text", "text": '{"rows": [1,  2]}'}], "structuredContent": {"rows": [1, 2]}},
    "wrapped": {"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}},
    "picture": {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    "torn": {"content": [{"type": "image", "data": PIXEL[:80], "mimeType": "image/png"}]},
}
BROKEN = [
    {"name": "good", "inputSchema": OBJECT},
    {"name": "no schema", "inputSchema": "string"},
    {"inputSchema": OBJECT},
    {"name": 7, "inputSchema": OBJECT},
    "nothing",
    {"name": "huge", "inputSchema": {"properties": {"a": {"description": "x" * 300_000}}}},
    {"name": "plain", "description": 5, "annotations": "?", "icons": 1, "outputSchema": "none"},
]

NESTED = '{"properties": {"a": ' * 20_000 + "{}" + "}}" * 20_000
CALLS: list[int] = []


SHELF = {
    "book://tides": {"text": "high water at six\r\n"},
    "book://\x1b[2Jred [b] x": {"text": "odd"},
    "book://cover": {"blob": PIXEL, "mimeType": "image/png"},
    "book://plate": {"blob": PIXEL, "mimeType": "text/plain"},
    "book://scan": {"blob": "AAAA", "mimeType": "application/pdf"},
    "book://long": {"text": "long " * 20_000},
    "book://huge": {"text": "x" * 50_000_000},
    "book://death": {},
    "book://next": {"text": "read, and gone"},
}


def resources(mode: str, method: str, parameters: dict) -> dict | None:
    """The result of a request for resources; None for one that is not there."""
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        uri = parameters["uri"]
        if uri == "book://death":
            sys.exit(3)
        held = {"contents": [{"uri": uri, **SHELF[uri]}]} if uri in SHELF else None
        if uri == "book://next":
            SHELF["book://after"] = SHELF.pop(uri)
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}), flush=True)
        return held
    if mode == "pager":
        page = int(parameters.get("cursor", 0))
        return {"resources": [{"uri": f"book://{page}", "name": ""}], "nextCursor": str(page + 1)}
    return {"resources": [{"uri": uri, "name": f"name \x1b]0;x\x07 of {uri[7:]}"} for uri in SHELF]}


PROMPTS = {
    "review": [("topic", "what to look at", True), ("tone", "", False)],
    "note \x1b[2J [b]": [],
    "潮": [("all", "", False)],
    "cover": [],
    "nothing": [],
    "huge": [],
    "death": [],
    "next": [],
}


def prompts(method: str, parameters: dict) -> dict | None:
    """The result of a request for prompts; None for one that is not there."""
    name, given = parameters.get("name", ""), parameters.get("arguments") or {}
    if method == "prompts/list":
        fields = ("name", "description", "required")
        return {
            "prompts": [
                {
                    "name": n,
                    "description": f"About \x1b]0;x\x07 {n[:6]}",
                    "arguments": [dict(zip(fields, a, strict=True)) for a in wanted],
                }
                for n, wanted in PROMPTS.items()
            ]
        }
    if name == "death":
        sys.exit(3)
    if name == "next":
        PROMPTS.pop("next")
        PROMPTS["after"] = []
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}), flush=True)
    said = {
        "review": [("user", f"Review {given.get('topic')}, {given.get('tone', 'plainly')}. @notes.txt")],
        "cover": [("user", {"type": "image", "data": PIXEL, "mimeType": "image/png"}), ("assistant", "I see a cover.")],
        "huge": [("user", "x" * 300_000)],
        "nothing": [],
    }.get(name, [("user", f"{name}: {json.dumps(given)} key sk-ant-api03-{'a' * 93}AA")])
    messages = [
        {"role": role, "content": c if isinstance(c, dict) else {"type": "text", "text": c}} for role, c in said
    ]
    return {"messages": messages} if name in {*PROMPTS, "next"} else None


ASKED = {
    "two": [{"a": {"type": "string"}}, {"b": {"type": "string"}}],
    "several": [{"a": {"type": "array", "items": {"anyOf": [{"const": "x"}, {"const": "y"}, {"const": "z"}]}}}],
    "many": [{f"f{n}": {"type": "string"} for n in range(5_000)}],
    "odd": [
        {"a": 3},
        {"a": {"enum": 5}},
        {"a": {"oneOf": [3]}},
        {"a": {"type": ["string"]}},
        {"a": {"enum": ["x"] * 999}},
    ],
}


def asked_back(tool: str) -> dict:
    """What a person says to what the tool asks, by the name of what was asked."""
    questions = ASKED.get(tool, [{"a": {"type": "string"}}] * 200)
    said: dict[str, object] = {}
    for number, fields in enumerate(questions):
        schema = {"type": "object", "properties": fields}
        asked = {"mode": "form", "message": f"question {number}", "requestedSchema": schema}
        print(
            json.dumps({"jsonrpc": "2.0", "id": f"q{number}", "method": "elicitation/create", "params": asked}),
            flush=True,
        )
        while len(said) < (number + 1 if tool != "two" else number):  # one after the other, but where two come at once
            came = json.loads(sys.stdin.readline())
            said[came["id"]] = came.get("result", "refused")
    while len(said) < len(questions):
        came = json.loads(sys.stdin.readline())
        said[came["id"]] = came.get("result", "refused")
    return {"content": [{"type": "text", "text": json.dumps(said)}]}


def crossed(late: int) -> None:
    """The question of a call, then the answer to the one before it, then what was said, as the answer to the first."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    asked = {"mode": "form", "message": "who?", "requestedSchema": schema}
    early = {"content": [{"type": "text", "text": "early"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": asked}), flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": CALLS.pop(), "result": early}), flush=True)
    while (came := json.loads(sys.stdin.readline())).get("id") != "q":
        pass
    said = {"content": [{"type": "text", "text": json.dumps(came["result"])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": late, "result": said}), flush=True)


def answer(mode: str, method: str, parameters: dict) -> dict:
    """The result of one request."""
    match method:
        case "initialize":
            told = {"name": "raw", "version": "1"}
            able = {"tools": {}, **({"resources": {"listChanged": True}} if mode in {"shelf", "pager"} else {})}
            able |= {"prompts": {"listChanged": True}} if mode == "prompts" else {}
            return {"protocolVersion": parameters["protocolVersion"], "capabilities": able, "serverInfo": told}
        case "tools/list" if mode == "broken":
            return {"tools": BROKEN}
        case "tools/list" if mode == "nested":
            good, deep = {"name": "good", "inputSchema": OBJECT}, {"name": "deep", "inputSchema": "HERE"}
            return {"tools": [good, deep]}
        case "tools/list" if mode == "others":
            return {"tools": [{"name": f"tool{len(CALLS)}", "inputSchema": OBJECT}]}
        case "tools/call" if mode == "rich":
            return RICH[parameters["name"]]
        case "tools/call" if mode == "asker":
            return asked_back(parameters["name"])
        case "tools/call" if mode == "odd":
            return {"content": [{"type": "text", "text": json.dumps(parameters["arguments"])}]}
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
            case "crossed", "early":
                CALLS.append(asked["id"])
                continue
            case "crossed", "late":
                crossed(asked["id"])
                continue
            case "busy", "die":
                print("goodbye from the server", file=sys.stderr, flush=True)
                return
        known = {"initialize", "tools/list", "tools/call"} if mode != "resources" else {"initialize"}
        held = None
        if mode in {"shelf", "pager"} and asked.get("method", "").startswith("resources/"):
            held = resources(mode, asked["method"], asked.get("params", {}))
        if mode == "prompts" and asked.get("method", "").startswith("prompts/"):
            held = prompts(asked["method"], asked.get("params", {}))
        if held is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": held}), flush=True)
        elif asked.get("method") in known:
            CALLS.extend([1] * (asked["method"] == "tools/call"))
            result = answer(mode, asked["method"], asked.get("params", {}))
            text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
            print(text.replace('"HERE"', NESTED), flush=True)
            if mode == "others" and asked["method"] == "tools/call":
                print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
        elif "id" in asked:
            refused = {"code": -32601, "message": "unknown"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": refused}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
