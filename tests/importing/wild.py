"""Session files as the agents write them, made up here: each with tools, thoughts, a compaction, a branch and a sub-agent where
its form knows them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import count
from typing import Any

Line = dict[str, Any]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def claude(session: str = "5e55") -> list[Line]:
    """A turn with parallel calls, one taken back and said anew, a compaction, and a turn after it."""
    clock = count()

    def line(kind: str, uuid: str, parent: str | None, **more: Any) -> Line:
        at = f"2026-03-01T10:00:{next(clock):02d}.000Z"
        about = {"sessionId": session, "cwd": "/w/tides", "version": "2.1.0", "isSidechain": False, "timestamp": at}
        return {"type": kind, "uuid": uuid, "parentUuid": parent, **about, **more}

    def person(uuid: str, parent: str | None, content: Any, **more: Any) -> Line:
        return line("user", uuid, parent, message={"role": "user", "content": content}, **more)

    def reply(uuid: str, parent: str, id: str, block: Line, read: int = 900) -> Line:
        usage = {"input_tokens": 100, "cache_read_input_tokens": read, "output_tokens": 40}
        message = {"id": id, "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": usage}
        return line("assistant", uuid, parent, message=message)

    def called(call: str) -> Line:
        return {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": f"{call}.py"}}

    def result(uuid: str, parent: str, call: str, content: Any) -> Line:
        return person(uuid, parent, [{"type": "tool_result", "tool_use_id": call, "content": content}])

    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    return [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        person("u1", None, [{"type": "text", "text": "what is in here?"}, picture]),
        reply("a1", "u1", "m1", {"type": "thinking", "thinking": "look first", "signature": "s"}),
        reply("a2", "a1", "m1", called("t1")),
        reply("a3", "a2", "m1", called("t2")),
        result("r1", "a2", "t1", "first file"),
        result("r2", "a3", "t2", [{"type": "text", "text": "second file"}]),
        reply("a4", "r2", "m2", {"type": "text", "text": "two files"}, 1_000),
        person("u2", "a4", "a question taken back"),
        reply("a5", "u2", "m3", {"type": "text", "text": "an answer nobody wanted"}, 1_100),
        person("u3", "a4", "the question meant"),
        reply("a6", "u3", "m4", {"type": "text", "text": "the answer"}, 1_200),
        line(
            "system",
            "b1",
            None,
            subtype="compact_boundary",
            logicalParentUuid="a6",
            compactMetadata={"trigger": "manual", "preTokens": 9_000},
        ),
        person("s1", "b1", "This session is being continued from a previous one: files.", isCompactSummary=True),
        person("u4", "s1", "and now?"),
        reply("a7", "u4", "m5", {"type": "text", "text": "now we go on"}, 300),
        {"type": "custom-title", "customTitle": "Tides", "sessionId": session},
    ]


def claude_agent(session: str = "5e55", agent: str = "a1b2") -> list[Line]:
    """A sub-agent's own file."""
    about = {"isSidechain": True, "agentId": agent, "sessionId": session, "cwd": "/w/tides"}
    ask = {"role": "user", "content": "count the files"}
    told = {"id": "x1", "role": "assistant", "model": "claude-haiku-4-5", "content": [{"type": "text", "text": "two"}]}
    return [
        {"type": "user", "uuid": "g1", "parentUuid": None, "message": ask, **about},
        {"type": "assistant", "uuid": "g2", "parentUuid": "g1", "message": told, **about},
    ]


def codex(session: str = "0199-c0de", parent: str = "") -> list[Line]:
    """A turn with a call, a compaction, a turn that is rolled back, and one in its place."""
    clock = count()

    def line(kind: str, **payload: Any) -> Line:
        return {"timestamp": f"2026-03-01T11:00:{next(clock):02d}.000Z", "type": kind, "payload": payload}

    def said(role: str, words: str) -> Line:
        kind = "output_text" if role == "assistant" else "input_text"
        return line("response_item", type="message", role=role, content=[{"type": kind, "text": words}])

    def counted(prompt: int, whole: int) -> Line:
        last = {"input_tokens": prompt, "cached_input_tokens": 10, "output_tokens": 20, "reasoning_output_tokens": 5}
        info = {"last_token_usage": last, "total_token_usage": {"input_tokens": whole}}
        return line("event_msg", type="token_count", info=info)

    source = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}} if parent else {}
    return [
        line("session_meta", id=session, cwd="/w/tides", cli_version="0.90.0", **source),
        line("turn_context", model="gpt-5-codex", cwd="/w/tides"),
        said("developer", "<permissions instructions>"),
        said("user", "<environment_context>here</environment_context>"),
        said("user", "list the files"),
        line("event_msg", type="user_message", message="list the files"),
        line(
            "response_item",
            type="reasoning",
            summary=[{"type": "summary_text", "text": "ls it"}],
            encrypted_content="x",
        ),
        line("response_item", type="function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
        line("response_item", type="function_call_output", call_id="c1", output="a.py"),
        counted(1_000, 1_000),
        said("assistant", "one file"),
        counted(1_100, 2_100),
        line("compacted", message="We listed files.", replacement_history=None),
        said("user", "delete it"),
        said("assistant", "deleted"),
        line("event_msg", type="thread_rolled_back", num_turns=1),
        said("user", "keep it"),
        said("assistant", "kept"),
        counted(500, 2_600),
    ]


def codex_bare() -> list[Line]:
    """The form before envelopes: a header, states and bare items."""
    return [
        {"id": "0197-01d", "timestamp": "2025-07-01T10:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1", "id": None},
        {"record_type": "state"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "one file"}]},
    ]


def pi() -> list[Line]:
    """The tree of the later versions: a call, a branch that was left, and a compaction that keeps the last turn."""
    clock = count()

    def entry(kind: str, id: str, parent: str | None, **more: Any) -> Line:
        return {
            "type": kind,
            "id": id,
            "parentId": parent,
            "timestamp": f"2026-03-01T12:00:{next(clock):02d}.000Z",
            **more,
        }

    def said(id: str, parent: str | None, role: str, content: Any, **more: Any) -> Line:
        return entry("message", id, parent, message={"role": role, "content": content, **more})

    def reply(id: str, parent: str, *blocks: Line) -> Line:
        usage = {"input": 500, "output": 20, "cacheRead": 400, "cacheWrite": 0, "cost": {"total": 0.25}}
        return said(id, parent, "assistant", list(blocks), provider="anthropic", model="claude-opus-4-5", usage=usage)

    def words(text: str) -> Line:
        return {"type": "text", "text": text}

    picture = {"type": "image", "mimeType": "image/png", "data": PNG}
    return [
        {"type": "session", "version": 3, "id": "019c-p1", "timestamp": "2026-03-01T12:00:00.000Z", "cwd": "/w/tides"},
        said("e1", None, "user", [words("look at the gauge"), picture]),
        reply(
            "e2",
            "e1",
            {"type": "thinking", "thinking": "hm"},
            {"type": "toolCall", "id": "k", "name": "read", "arguments": {}},
        ),
        said("e3", "e2", "toolResult", [words("42 cm")], toolCallId="k", toolName="read"),
        reply("e4", "e3", words("it says 42")),
        said("e5", "e4", "user", [words("a way not taken")]),
        reply("e6", "e5", words("a dead end")),
        said("e7", "e4", "user", [words("the way taken")]),
        reply("e8", "e7", words("good")),
        said("e9", "e8", "user", [words("and then?")]),
        reply("e10", "e9", words("home")),
        entry("compaction", "e11", "e10", summary="The gauge said 42.", firstKeptEntryId="e9", tokensBefore=920),
        entry("session_info", "e12", "e11", name="The gauge"),
        said("e13", "e12", "user", [words("thanks")]),
    ]


def gemini() -> Line:
    """One document a session."""
    answer = [{"functionResponse": {"id": "g1", "name": "list", "response": {"output": "a.py"}}}]
    call = {"id": "g1", "name": "list", "args": {"path": "."}, "result": answer, "status": "success"}
    tokens = {"input": 900, "output": 20, "cached": 0, "thoughts": 10, "tool": 0, "total": 930}
    said = {"thoughts": [{"subject": "Look", "description": "first"}], "tokens": tokens, "model": "gemini-3-pro"}
    at = "2026-03-01T13:00:00.000Z"
    return {
        "sessionId": "9e31",
        "projectHash": "ab" * 32,
        "startTime": at,
        "lastUpdated": at,
        "summary": "Files listed",
        "messages": [
            {"id": "1", "timestamp": at, "type": "user", "content": [{"text": "list the files"}]},
            {"id": "2", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [call], **said},
            {"id": "3", "timestamp": at, "type": "info", "content": "something about the program"},
            {
                "id": "4",
                "timestamp": at,
                "type": "gemini",
                "content": "one file",
                "tokens": tokens,
                "model": "gemini-3-pro",
            },
        ],
    }


def gemini_lines() -> list[Line]:
    """The same in lines: a message told again with its calls, one taken back, and a history that was compressed."""
    document = gemini()
    head = {name: value for name, value in document.items() if name not in {"messages", "summary"}}
    messages = document["messages"]
    at = head["startTime"]
    wrong = {"id": "5", "timestamp": at, "type": "user", "content": "the wrong question"}
    right = {"id": "6", "timestamp": at, "type": "user", "content": "the right question"}
    summary = {
        "id": "7",
        "timestamp": at,
        "type": "user",
        "content": [{"text": "<state_snapshot>files</state_snapshot>"}],
    }
    bare = {name: value for name, value in messages[1].items() if name != "toolCalls"}
    changes = [{"$rewindTo": "5"}, right, {"$set": {"messages": [summary, right]}}, {"$set": {"summary": "Files"}}]
    return [head, messages[0], bare, messages[1], *messages[2:], wrong, *changes]


def opencode() -> tuple[Line, list[tuple[Line, list[Line]]]]:
    """A session and its messages, each with its parts: a call, a compaction, a turn after it."""
    model = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
    tokens = {"input": 700, "output": 30, "reasoning": 0, "cache": {"read": 200, "write": 0}}
    clock = count(1_772_370_000_000, 1000)

    def message(id: str, role: str, *parts: Line, **more: Any) -> tuple[Line, list[Line]]:
        made = next(clock)
        about = {"tokens": tokens, "cost": 0.5, **model} if role == "assistant" else {"model": model}
        its = [{"id": f"prt_{id}_{n}", "sessionID": "ses_1", "messageID": id, **part} for n, part in enumerate(parts)]
        return {"id": id, "sessionID": "ses_1", "role": role, "time": {"created": made}, **about, **more}, its

    def words(text: str) -> Line:
        return {"type": "text", "text": text}

    state = {
        "status": "completed",
        "input": {"path": "a.py"},
        "output": "x = 1",
        "time": {"start": 1, "end": 1_772_370_001_500},
    }
    session = {
        "id": "ses_1",
        "projectID": "p",
        "directory": "/w/tides",
        "title": "Reading",
        "version": "1.0.0",
        "time": {"created": 1_772_370_000_000, "updated": 1_772_370_009_000},
    }
    tool = {"type": "tool", "tool": "read", "callID": "o1", "state": state}
    picture = {"type": "file", "mime": "image/png", "filename": "shot.png", "url": f"data:image/png;base64,{PNG}"}
    return session, [
        message("msg_1", "user", words("read it"), picture),
        message("msg_2", "assistant", {"type": "step-start"}, {"type": "reasoning", "text": "easy"}, tool),
        message("msg_3", "assistant", words("x is 1")),
        message("msg_4", "user", {"type": "compaction", "auto": True}),
        message("msg_5", "assistant", words("We read a.py."), summary=True),
        message("msg_6", "user", words("and y?")),
        message("msg_7", "assistant", words("there is none")),
    ]


AIDER = """
# aider chat started at 2026-03-01 14:00:00

> Aider v0.80.0
> Model: gpt-5 with diff edit format

#### add a test
#### for the gauge

Here is one:

> is not a quotation of mine
```python
def test(): ...
```

> Applied edit to test_gauge.py

#### /exit

# aider chat started at 2026-03-02 09:00:00

> Aider v0.80.0

#### again

Done.
"""


def first_opencode(file: Any) -> None:
    """The database that the first opencode kept in a project's folder, with a turn, a summary, and a turn after it."""
    rows = [
        ("m1", "user", [("text", {"text": "list the files"})], None),
        (
            "m2",
            "assistant",
            [
                ("reasoning", {"thinking": "ls it"}),
                ("text", {"text": "Let me look."}),
                ("tool_call", {"id": "c1", "name": "bash", "input": '{"command": "ls"}', "finished": True}),
                ("finish", {"reason": "tool_use"}),
            ],
            "claude-4-sonnet",
        ),
        ("m3", "tool", [("tool_result", {"tool_call_id": "c1", "name": "", "content": "a.py"})], None),
        ("m4", "assistant", [("text", {"text": "one file"})], "claude-4-sonnet"),
        ("m5", "assistant", [("text", {"text": "We listed files."})], "claude-4-sonnet"),
        ("m6", "user", [("text", {"text": "delete it"})], None),
        ("m7", "assistant", [("text", {"text": "deleted"})], "claude-4-sonnet"),
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE sessions (id, parent_session_id, title, summary_message_id, created_at)")
        database.execute("CREATE TABLE messages (id, session_id, role, parts, model, created_at)")
        database.execute("CREATE TABLE files (id)")
        database.execute("INSERT INTO sessions VALUES ('s1', NULL, 'Tidy up', 'm5', 1748430000)")
        for number, (id, role, parts, model) in enumerate(rows):
            body = json.dumps([{"type": kind, "data": data} for kind, data in parts])
            database.execute(
                "INSERT INTO messages VALUES (?, 's1', ?, ?, ?, ?)", (id, role, body, model, 1748430000 + number)
            )
        database.execute("INSERT INTO messages VALUES ('m8', 's1', 'user', '[{', NULL, 1748430100)")
        database.commit()


def gemini_resumed() -> list[Line]:
    """As newer versions write: a result told with its call and as a message, both told again when the session is resumed."""
    at = "2026-11-20T13:00:00.000Z"
    response = {"functionResponse": {"id": "g1", "name": "read_file", "response": {"output": "x = 1"}}}
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    call = {"id": "g1", "name": "read_file", "args": {"path": "a.py"}, "result": [response], "status": "success"}
    opening = {"id": "0", "timestamp": at, "type": "user", "content": [{"text": "<session_context>\nhere"}]}
    asked = {"id": "1", "timestamp": at, "type": "user", "content": [{"text": "read it"}]}
    thought = {"thoughts": [{"subject": "Look", "description": "first"}], "model": "gemini-3-pro"}
    reply = {"id": "2", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [call], **thought}
    result = {"id": "3", "timestamp": at, "type": "user", "content": [response, picture]}
    done = {"id": "4", "timestamp": at, "type": "gemini", "content": "it is one", "model": "gemini-3-pro"}
    in_parts = [{"text": "**Look** first", "thought": True}, {"functionCall": {"id": "g1", "name": "read_file"}}]
    copied = {"id": "2_response", "timestamp": at, "type": "user", "content": [response, picture]}
    again = [opening, asked, reply | {"content": in_parts}, copied, result, done]
    head = {"sessionId": "9e31", "projectHash": "ab" * 32, "startTime": at, "lastUpdated": at, "kind": "main"}
    return [head, {"$set": {"messages": [opening]}}, asked, reply, result, done, {"$set": {"messages": again}}]


def qwen() -> list[Line]:
    """A call, a compaction that keeps the last turn, and a turn that was said anew."""
    number = count(1)
    before = ""

    def line(kind: str, parts: list[Line] | None = None, parent: str | None = None, **more: Any) -> Line:
        nonlocal before
        uuid, above = f"u{next(number)}", before if parent is None else parent
        before = uuid
        role = {"role": "model" if kind == "assistant" else "user", "parts": parts}
        about = {"sessionId": "77aa", "timestamp": "2026-11-20T14:00:00.000Z", "cwd": "/w/tides", "version": "0.15.10"}
        message = {"message": role} if parts is not None else {}
        return {"uuid": uuid, "parentUuid": above or None, "type": kind, **about, **message, **more}

    usage = {"promptTokenCount": 900, "candidatesTokenCount": 20, "cachedContentTokenCount": 10}
    call = {"functionCall": {"id": "q1", "name": "read_file", "args": {"path": "a.py"}}}
    answer = {"functionResponse": {"id": "q1", "name": "read_file", "response": {"output": "x = 1"}}}
    kept = [{"role": "user", "parts": [{"text": "and b"}]}, {"role": "model", "parts": [{"text": "b is two"}]}]
    history = [
        {"role": "user", "parts": [{"text": "<state_snapshot>a was read</state_snapshot>"}]},
        {"role": "model", "parts": [{"text": "Got it."}]},
        *kept,
    ]
    packed = {"info": {"originalTokenCount": 900, "newTokenCount": 90}, "compressedHistory": history}
    lines = [
        line("user", [{"text": "read a"}]),
        line("system", subtype="ui_telemetry", systemPayload={"uiEvent": {}}),
        line("assistant", [{"text": "look", "thought": True}, {"text": "Let me see."}, call], usageMetadata=usage),
        line("tool_result", [answer]),
        line("assistant", [{"text": "a is one"}], model="qwen3-coder", usageMetadata=usage),
        line("user", [{"text": "and b"}]),
        line("assistant", [{"text": "b is two"}]),
        line("system", subtype="chat_compression", systemPayload=packed),
    ]
    fork = lines[-1]["uuid"]
    return [
        *lines,
        line("user", [{"text": "the wrong question"}]),
        line("assistant", [{"text": "the wrong answer"}]),
        line("user", [{"text": "the right question"}], parent=fork),
        line("assistant", [{"text": "the right answer"}]),
    ]
