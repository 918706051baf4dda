"""A long history of agent work, made by a seeded generator: files read and changed, commands run, numbers, errors, decisions."""

from __future__ import annotations

import random

import msgspec

from ctxchat.core.messages import Message, ToolCall

AREAS = ("billing", "auth", "search", "export", "sync", "render", "queue", "cache", "report", "upload")
PARTS = ("models", "views", "client", "store", "parser", "worker", "schema", "routes", "retry", "limits")
VERBS = ("checks", "loads", "merges", "writes", "validates", "splits", "orders", "caches")


class Planted(msgspec.Struct, frozen=True):
    """Facts that were put into a history, by kind, as exact strings."""

    paths: tuple[str, ...]
    numbers: tuple[str, ...]
    commands: tuple[str, ...]
    errors: tuple[str, ...]
    decisions: tuple[str, ...]


class SyntheticWork:
    """Agent work turn by turn. The same seed gives the same history."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self.messages: list[Message] = []
        self.planted: dict[str, list[str]] = {name: [] for name in Planted.__struct_fields__}

    def turns(self, count: int, rounds: int = 4, lines: int = 30) -> None:
        """Append `count` turns of `rounds` tool calls each, whose results have about `lines` lines."""
        for _ in range(count):
            area, part = self._pick(AREAS), self._pick(PARTS)
            path = f"src/{area}/{part}_{self._random.randrange(1000)}.py"
            self._say("user", f"Please look at why {area} is slow in {path}; it {self._pick(VERBS)} too much.")
            for _ in range(rounds):
                self._round(area, part, path, lines)
            self._close(area, part)

    def facts(self) -> Planted:
        """What was planted so far."""
        return Planted(**{name: tuple(dict.fromkeys(found)) for name, found in self.planted.items()})

    def _round(self, area: str, part: str, path: str, lines: int) -> None:
        match self._random.randrange(4):
            case 0:
                self._call("read_file", {"path": path}, self._code(lines))
                self._plant("paths", path)
            case 1:
                other = f"tests/{area}/test_{part}_{self._random.randrange(1000)}.py"
                self._call("edit_file", {"path": other, "old": "x = 1", "new": "x = 2"}, f"edited {other}")
                self._plant("paths", other)
            case 2:
                command = f"python tools/{part}_{self._random.randrange(1000)}.py tests/{area}"
                passed, code = self._random.randrange(10, 900), self._random.randrange(2)
                error = f"{self._pick(('ValueError', 'KeyError'))}: {part} {self._random.randrange(10_000)} is bad"
                text = "\n".join(["." * 60] * (lines // 3) + ([f"E   {error}"] if code else []))
                self._call("shell", {"command": command}, f"{text}\n{passed} passed\n[exit code: {code}]")
                self._plant("errors", error) if code else self._plant("commands", command)  # a failure is of a moment
            case _:
                self._call("grep", {"pattern": f"def {part}", "path": "src"}, self._code(lines))

    def _close(self, area: str, part: str) -> None:
        number = f"{self._random.randrange(20, 9000)} ms"
        self._plant("numbers", number)
        text = f"The {area} {part} now takes {number} at the median."
        if self._random.random() < 0.5:
            chosen = f"We decided to keep {part} {self._random.randrange(1000)} in {area}"
            self._plant("decisions", chosen)
            text += f" {chosen}."
        self._say("assistant", text)

    def _code(self, lines: int) -> str:
        made = (f"    {self._pick(PARTS)} = {self._pick(AREAS)}.{self._pick(VERBS)}(self, other)" for _ in range(lines))
        return "\n".join(made)

    def _call(self, name: str, arguments: dict[str, object], result: str) -> None:
        call = ToolCall(f"call_{len(self.messages)}", name, msgspec.json.encode(arguments).decode())
        self.messages.append(Message(len(self.messages) + 1, "assistant", "Looking.", calls=(call,)))
        self.messages.append(Message(len(self.messages) + 1, "tool", result, call_id=call.id, name=name))

    def _say(self, role: str, text: str) -> None:
        self.messages.append(msgspec.convert({"seq": len(self.messages) + 1, "role": role, "content": text}, Message))

    def _plant(self, kind: str, fact: str) -> None:
        self.planted[kind].append(fact)

    def _pick(self, words: tuple[str, ...]) -> str:
        return self._random.choice(words)
