"""What the transcript costs: a reply that streams, one that comes at once, a long session opened, a place far away gone to.

`python -m benchmarks.transcript`: the whole interface at 120×36 on a scripted session, without a terminal and without a model.
Processor time in milliseconds unless it says otherwise; `layouts` counts how often the screen was laid out meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, process_time

from textual.screen import Screen

from ctxchat.config.schema import Settings
from ctxchat.config.themes import load_themes
from ctxchat.core.events import TextDelta
from ctxchat.core.messages import Message
from ctxchat.tui.app import CtxchatApp
from tests.tui.fakes import AT, FakeServices, FakeSession, ScriptStep, reply

SIZE = (120, 36)

ANSWER = """## What the gauge at Pier {n} does

It reports **every 90 s** to `Cormorant` ([README](https://example.org)), over a line that is older than the harbour master, and
retries *three times* before it gives up.

- it speaks Modbus
- it retries three times, with a pause that doubles
- it forgets what it could not send

```python
for attempt in range(3):
    send(level(), timeout=2.5)  # a comment
```

| sensor | every | to |
|---|---|---|
| level | 90 s | Cormorant |
| wind | 10 s | Shag |

"""


class Counted:
    """How often screens were laid out and drawn, from now on."""

    layouts = drawings = 0

    @classmethod
    def begin(cls) -> None:
        cls.layouts = cls.drawings = 0


def _count() -> None:
    lay_out, draw = Screen._refresh_layout, Screen._compositor_refresh

    def laid_out(self: Screen, *args: object, **more: object) -> None:
        Counted.layouts += 1
        lay_out(self, *args, **more)

    def drawn(self: Screen) -> None:
        Counted.drawings += 1
        draw(self)

    Screen._refresh_layout, Screen._compositor_refresh = laid_out, drawn


async def until(holds: Callable[[], object], pause: float = 0.01) -> None:
    """Wait for it."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(pause)


def conversation(messages: int) -> list[Message]:
    """Questions and answers in Markdown."""
    return [
        Message(n, "user" if n % 2 else "assistant", f"What does pier {n} do?" if n % 2 else ANSWER.format(n=n), at=AT)
        for n in range(1, messages + 1)
    ]


def on_screen(app: CtxchatApp) -> str:
    return "\n".join("".join(s.text for s in strip) for strip in app.screen._compositor.render_strips())


@asynccontextmanager
async def chat(script: Sequence[ScriptStep] = (), messages: Sequence[Message] = ()) -> AsyncIterator[CtxchatApp]:
    """The app on a session that answers by this script."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = FakeSession(lambda _: script, messages)
        app = CtxchatApp(FakeServices(folder, session), Settings(), load_themes(folder).themes)
        async with app.run_test(size=SIZE):
            await until(lambda: app.session)
            await asyncio.sleep(1.0)  # what is heavy comes after the first frame
            yield app


def tokens(count: int) -> list[str]:
    """An answer in pieces of about a token."""
    text = "".join(ANSWER.format(n=n) for n in range(1 + count // 100))
    pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
    return pieces[:count]


async def streaming(count: int, pause: float) -> dict[str, float]:
    """So many tokens, one each `pause` seconds, until the last is on screen."""
    steps: list[ScriptStep] = []
    for piece in tokens(count):
        steps += [TextDelta(piece), pause] if pause else [TextDelta(piece)]
    async with chat([*steps, *reply("\n\nQED")]) as app:
        Counted.begin()
        began, cpu = perf_counter(), process_time()
        app.controller.send_draft("go")
        await until(lambda: "QED" in on_screen(app), 0.2 if pause else 0.005)
        spent, cpu = perf_counter() - began, process_time() - cpu
        return {
            "cpu_ms": round(cpu * 1000),
            "until_seen_ms": round(spent * 1000),
            "layouts": Counted.layouts,
            "drawings": Counted.drawings,
            "cpu_ms_a_drawing": round(cpu * 1000 / max(1, Counted.drawings), 1),
        }


async def opening(count: int) -> dict[str, float]:
    """A stored session of so many messages, until its last one is seen."""
    session = FakeSession(messages=conversation(count))
    async with chat() as app:
        before = _memory()
        cpu = process_time()
        await app.chat.show_session(session)
        await until(lambda: f"ier {count - 1}" in on_screen(app) or f"ier {count}" in on_screen(app), 0.001)
        return {"until_seen_ms": round((process_time() - cpu) * 1000), "megabytes": round(_memory() - before)}


async def jumping(count: int, jumps: int) -> dict[str, float]:
    """To messages anywhere in so many."""
    session = FakeSession(messages=conversation(count))
    async with chat() as app:
        await app.chat.show_session(session)
        await asyncio.sleep(1)
        before, times, chance = _memory(), [], random.Random(7)
        for _ in range(jumps):
            n = chance.randrange(1, count, 2)
            group = session.state.ledger.groups[n - 1].id
            cpu = process_time()
            Counted.begin()
            app.chat.transcript.go_to(group)
            await until(lambda n=n: Counted.drawings and f"What does pier {n} do?" in on_screen(app), 0.001)
            times.append((process_time() - cpu) * 1000)
        times.sort()
        return {
            "p50_ms": round(times[len(times) // 2], 1),
            "worst_ms": round(times[-1], 1),
            "megabytes_more": round(_memory() - before),
        }


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def main() -> None:
    _count()
    asked = sys.argv[1:] or ["stream", "burst", "open", "jump"]
    result: dict[str, dict[str, float]] = {}
    if "stream" in asked:
        result["1,000 tokens at 100 a second"] = await streaming(1_000, 0.01)
    if "burst" in asked:
        result["3,000 tokens at once"] = await streaming(3_000, 0)
    if "open" in asked:
        result["a session of 10,000 messages"] = await opening(10_000)
    if "jump" in asked:
        result["anywhere in 100,000 messages"] = await jumping(100_000, 40)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
