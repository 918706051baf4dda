"""Through how many functions something travels: a piece of a reply to the screen, Enter to the request, F8 to the record.

`uv run python benchmarks/ways.py [--names]` runs the chat over a scripted model. A way is made of the functions of ctxchat that
stand on the stack when something is handed on: to the model, to the journal, to the widget that shows the reply, to another task,
or as a message of ctxchat's own between widgets. Those that only wait while a generator gives a piece away are none of its way.
Of options it counts in how many modules a name stands.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from textual.dom import DOMNode
from textual.message_pump import MessagePump

sys.path.insert(0, str(Path(__file__).parents[1]))

from ctxchat.core.journal import Changed
from ctxchat.core.options import Options
from ctxchat.tui.transcript.blocks import ReplyBlock
from tests.doubles.scripted import ScriptedModel, says
from tests.tui import real
from tests.tui.chatting import idle, until
from tests.tui.real import LONG, say, talking

Way = dict[str, None]
"""Functions in the order in which they were first met."""


def always(*given: object, **more: object) -> bool:
    return True


class Watch:
    """Takes down who is on the stack, whenever something is handed on."""

    def __init__(self) -> None:
        self.ways: dict[str, Way] = {}
        self._way: Way | None = None
        self._outside: list[str] = []

    def begin(self, name: str) -> None:
        self._way = self.ways[name] = {}

    def look(self, passed: Callable[[FrameType], bool] = always, most: int | None = None) -> None:
        """`passed`: whoever on the stack is on the way; `most` of them, the innermost."""
        if self._way is not None:
            found = [name(frame) for frame in stack() if passed(frame)][:most]
            self._way.update(dict.fromkeys(reversed(found)))

    def waited(self) -> None:
        """Somebody waits for what is emitted; what comes is given on by these."""
        self._outside = [name(frame) for frame in stack() if gives_on(frame)] or self._outside

    def emitted(self) -> None:
        """Whoever emits, and whoever waits for it."""
        self.look(most=2)
        if self._way is not None:
            self._way.update(dict.fromkeys(self._outside))

    def end(self) -> None:
        """Look for the last time."""
        self.look()
        self._way = None

    @contextmanager
    def at(self, owner: Any, name: str, act: Callable[[], None], when: Callable[..., bool] = always) -> Iterator[None]:
        """Look, or end, whenever this method is called."""
        plain = getattr(owner, name)

        def watched(*given: Any, **more: Any) -> Any:
            if when(*given, **more):
                act()
            return plain(*given, **more)

        setattr(owner, name, watched)
        try:
            yield
        finally:
            setattr(owner, name, plain)


def stack() -> Iterator[FrameType]:
    """The frames of ctxchat, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("ctxchat.") and not frame.f_code.co_qualname.endswith(
            ">"
        ):
            yield frame
        frame = frame.f_back


def name(frame: FrameType) -> str:
    return f"{frame.f_globals['__name__'].removeprefix('ctxchat.')}:{frame.f_code.co_qualname}"


def gives_on(frame: FrameType) -> bool:
    """A generator, through which what is inside it gives comes out; others only wait for it."""
    return bool(frame.f_code.co_flags & inspect.CO_ASYNC_GENERATOR)


def own(pump: MessagePump, message: object) -> bool:
    return type(message).__module__.startswith("ctxchat.")


def changes(*records: object) -> bool:
    return any(isinstance(record, Changed) for record in records)


async def measure(folder: Path) -> dict[str, Way]:
    watch = Watch()

    class Watched(ScriptedModel):
        """What it is asked ends the way of Enter; its first piece begins one."""

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            watch.end()
            pieces = aiter(super().stream(request))
            first = await anext(pieces)
            watch.begin("a piece of a reply, to its widget")
            watch.look(gives_on)
            yield first
            async for piece in pieces:
                yield piece

    real.ScriptedModel = Watched  # type: ignore[attr-defined,misc]
    with (
        watch.at(MessagePump, "post_message", watch.look, own),
        watch.at(DOMNode, "run_worker", watch.look),
        watch.at(asyncio, "ensure_future", watch.look),
        watch.at(asyncio.Queue, "put_nowait", watch.emitted),
        watch.at(asyncio.Queue, "get", watch.waited),
        watch.at(ReplyBlock, "append_text", watch.end),
    ):
        async with talking(folder, [says(f"answer {n} {LONG}") for n in range(6)], window=8_000) as (app, pilot, desk):
            for _ in range(2):
                await say(app, pilot, f"question {LONG}")
            await pilot.press(*"more")
            watch.begin("Enter, to the request")
            await pilot.press("enter")
            await idle(app, pilot)
            watch.begin("F8 and Enter, to the record")
            with watch.at(desk.journal, "write", watch.end, changes):
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
