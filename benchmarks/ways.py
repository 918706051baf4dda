"""Through how many functions something travels: a piece of a reply to the screen, Enter to the request, F8 to the record.

`uv run python benchmarks/ways.py [--names]` runs the chat over a scripted model. A way is followed back from its end: the
functions of ctxchat on the stack there, then those that stood on the stack when that task was begun or that message sent, and so
on to the key that was pressed. What is done beside it, and leads nowhere, is none of the way. Of options it counts in how many
modules a name stands.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

from textual.dom import DOMNode
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen

sys.path.insert(0, str(Path(__file__).parents[1]))

from ctxchat.core.events import Stamped
from ctxchat.core.journal import Changed
from ctxchat.core.options import Options
from ctxchat.tui.transcript.blocks import ReplyBlock
from tests.doubles.scripted import ScriptedModel, says
from tests.tui import real
from tests.tui.chatting import idle, until
from tests.tui.real import LONG, say, talking

PIECE = "a piece of a reply, to its widget"

Way = dict[str, None]
"""Functions in their order."""


class Step(NamedTuple):
    """The functions on the stack when something was handed on, and the step before."""

    functions: list[str]
    before: Step | None


came_from: ContextVar[Step | None] = ContextVar("came_from", default=None)
"""By which step this task was begun, or the message sent that is being handled."""


class Watch:
    """Follows what is handed on, from `begin` to `end`."""

    def __init__(self) -> None:
        self.ways: dict[str, Way] = {}
        self.name = ""
        self._passed: list[str] = []
        self._sent: dict[int, tuple[Message, Step]] = {}

    def begin(self, name: str, passed: list[str] | None = None) -> None:
        """`passed`: functions through which it went before anybody else was called."""
        self.name, self._passed = name, passed or []

    def end(self, functions: list[str] | None = None) -> None:
        """Here, or in these functions, the way ends, if one was begun."""
        if self.name:
            self.ways[self.name] = dict.fromkeys([*self._passed, *(functions or self.way_here())])
            self.name = ""

    def pass_through(self, functions: list[str]) -> None:
        self._passed = [*dict.fromkeys([*self._passed, *functions])]

    def way_here(self) -> list[str]:
        """From the first step to here."""
        step, found = Step(on_stack(), came_from.get()), list[str]()
        while step is not None:
            found[:0] = step.functions
            step = step.before
        return found

    @contextmanager
    def wrapped(self, owner: Any, name: str, around: Callable[..., Any]) -> Iterator[None]:
        """Have `around` called in place of a method, with the method before what was given to it."""
        plain = getattr(owner, name)
        setattr(owner, name, lambda *given, **more: around(plain, *given, **more))
        try:
            yield
        finally:
            setattr(owner, name, plain)

    def begins_task(self, plain: Callable[..., Any], *given: Any, **more: Any) -> Any:
        token = came_from.set(Step(on_stack(), came_from.get()))
        try:
            return plain(*given, **more)
        finally:
            came_from.reset(token)

    def sends(self, plain: Callable[..., Any], pump: MessagePump, message: Message) -> Any:
        self._sent[id(message)] = message, Step(on_stack(), came_from.get())
        return plain(pump, message)

    async def handles(self, plain: Callable[..., Any], pump: MessagePump, message: Message) -> None:
        before = self._sent[id(message)][1] if id(message) in self._sent else None
        token = came_from.set(before)
        try:
            await plain(pump, message)
        finally:
            came_from.reset(token)


def on_stack(passed: Callable[[FrameType], bool] = lambda frame: True) -> list[str]:
    """The functions of ctxchat on the stack which have `passed`, the outermost first."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module, function = str(frame.f_globals.get("__name__", "")), frame.f_code.co_qualname
        if module.startswith("ctxchat.") and not function.endswith(">") and passed(frame):
            found.insert(0, f"{module.removeprefix('ctxchat.')}:{function}")
        frame = frame.f_back
    return found


def gives_on(frame: FrameType) -> bool:
    """A generator, through which what is inside it gives comes out; others only wait for it."""
    return bool(frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR)


async def measure(folder: Path) -> dict[str, Way]:
    watch = Watch()
    readers: list[str] = []  # who waits for events, and gives them on

    class Watched(ScriptedModel):
        """What it is asked ends the way of Enter; its first piece begins one."""

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            watch.end()
            pieces = aiter(super().stream(request))
            first = await anext(pieces)
            watch.begin(PIECE, on_stack(gives_on))
            yield first
            async for piece in pieces:
                yield piece

    def emits(plain: Callable[..., Any], queue: Any, item: object) -> Any:
        if isinstance(item, Stamped) and watch.name == PIECE:
            watch.pass_through([*on_stack()[-2:], *readers])
        return plain(queue, item)

    def waits(plain: Callable[..., Any], *given: Any) -> Any:
        readers[:] = on_stack(gives_on) or readers
        return plain(*given)

    def shows(plain: Callable[..., Any], *given: Any) -> Any:
        watch.end(on_stack())
        return plain(*given)

    def agrees(plain: Callable[..., Any], *given: Any) -> Any:
        watch.pass_through(watch.way_here())
        return plain(*given)

    def writes(plain: Callable[..., Any], journal: Any, *records: object) -> Any:
        if any(isinstance(record, Changed) for record in records):
            watch.end()
        return plain(journal, *records)

    real.ScriptedModel = Watched  # type: ignore[attr-defined,misc]
    with (
        watch.wrapped(MessagePump, "post_message", watch.sends),
        watch.wrapped(MessagePump, "_dispatch_message", watch.handles),
        watch.wrapped(DOMNode, "run_worker", watch.begins_task),
        watch.wrapped(asyncio, "ensure_future", watch.begins_task),
        watch.wrapped(asyncio, "create_task", watch.begins_task),
        watch.wrapped(asyncio.Queue, "put_nowait", emits),
        watch.wrapped(asyncio.Queue, "get", waits),
        watch.wrapped(ReplyBlock, "append_text", shows),
        watch.wrapped(Screen, "dismiss", agrees),
    ):
        async with talking(folder, [says(f"answer {n} {LONG}") for n in range(6)], window=8_000) as (app, pilot, desk):
            for _ in range(2):
                await say(app, pilot, f"question {LONG}")
            await pilot.press(*"more")
            watch.begin("Enter, to the request")
            await pilot.press("enter")
            await idle(app, pilot)
            with watch.wrapped(type(desk.journal), "write", writes):
                watch.begin("F8 and Enter, to the record")
                await pilot.press("f8")
                await pilot.pause()
                await pilot.press("enter")
                await until(pilot, lambda: bool(desk.state.ledger.changes))
            await idle(app, pilot)
    return watch.ways


def named() -> dict[str, int]:
    """In how many modules, but the settings' own, the name of each option stands."""
    root = Path(__file__).parents[1] / "ctxchat"
    texts = [path.read_text("utf-8") for path in root.rglob("*.py") if "schema" not in path.parts]
    words = [
        {getattr(node, "attr", "") or getattr(node, "arg", "") or "" for node in ast.walk(ast.parse(text))}
        for text in texts
    ]
    return {name: sum(name in some for some in words) for name in Options.__struct_fields__}


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ways = asyncio.run(measure(Path(folder)))
    for name, way in ways.items():
        modules = {function.partition(":")[0] for function in way}
        print(f"{name:38}{len(way):>4} functions in {len(modules)} modules")
        if "--names" in arguments:
            print("\n".join(f"    {function}" for function in way))
    found = named()
    print(
        f"{'an option, to its effect':38}{median(found.values()):>4g} modules that name it, at most {max(found.values())}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
