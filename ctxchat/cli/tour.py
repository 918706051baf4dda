"""`ctxchat tour`: two minutes in a made-up project with the built-in assistant. Nothing of the person's is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ctxchat.cli.chat import open_chat
from ctxchat.cli.common import common_options

README = """\
# Harbour logger

Tide gauges at the piers report the level to a logger, and the logger raises an alarm when the water stands too high.

- The gauge at Pier 7 reports to Cormorant every 90 seconds, the one at Pier 8 to Heron.
- `src/gauge.py` reads a gauge, `src/alarm.py` decides when to call the harbour master.
- The logs of the last storm are in `logs/`.
"""
GAUGE = '''\
"""Reads a tide gauge and reports its level."""

INTERVAL = 90  # seconds
LOGGERS = {"pier-7": "Cormorant", "pier-8": "Heron"}


def level(raw: int, zero: float) -> float:
    """Metres over chart datum."""
    return raw / 1000 - zero
'''
ALARM = '''\
"""When the harbour master is called."""

HIGH = 4.2  # metres over chart datum


def calls(level: float, rising: bool) -> bool:
    return level > HIGH and rising
'''
SETTINGS = """\
# Of the tour, and gone with it.
[context]
keep_recent = 2
"""
WINDOW_TOKENS = 20_000
"""Tokens: small enough for two logs to fill it."""


def log(pier: int, lines: int = 80) -> str:
    """A night at a pier: the water rises, and something goes wrong in the middle of it."""
    said = [
        f"02:{n // 60:02}:{n % 60:02} pier-{pier} level {2.9 + n / 100:.2f} m, battery {12.6 - n / 900:.2f} V, ok"
        for n in range(lines)
    ]
    said[lines // 2] = f"02:00:40 pier-{pier} WARNING the intake has silted up, level may read low"
    said[-1] = f"02:01:19 pier-{pier} ALARM level over 4.20 m and rising, harbour master called"
    return "\n".join(said) + "\n"


def files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of the tour's sample project."""
    yield folder / "README.md", README
    yield folder / "src" / "gauge.py", GAUGE
    yield folder / "src" / "alarm.py", ALARM
    for pier in (7, 8):
        yield folder / "logs" / f"pier-{pier}.log", log(pier)


@click.command("tour")
@common_options
def command() -> None:
    """The gauge, a compaction, the archive, a search and an undo, in two minutes on a made-up project."""
    made = TemporaryDirectory(prefix="ctxchat-tour-", ignore_cleanup_errors=True)
    with made as place:
        harbour, home = Path(place, "harbour"), Path(place, "home")
        for file, text in (*files(harbour), (home / "config.toml", SETTINGS)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        os.environ.update(CTXCHAT_CONFIG_DIR=str(home), CTXCHAT_DATA_DIR=str(home / "data"))
        ended = open_chat(
            {"model": "offline/assistant", "window": WINDOW_TOKENS, "cwd": str(harbour)}, tour=made.cleanup
        )
        click.get_current_context().exit(ended)
