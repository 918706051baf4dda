"""What the screens that write into the person's settings file have in common. A change is written, then read back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ctxchat.config.files import Loaded
from ctxchat.core.errors import CtxchatError
from ctxchat.tui.reading.text import clean
from ctxchat.tui.screens.listing import Listing
from ctxchat.tui.style import STYLE


class EditableListing(Listing[bool]):
    """Comes back with True where something was written, else None. `load` reads everything anew; `file` is the person's own."""

    CSS_PATH = STYLE / "settings.tcss"

    def __init__(self, load: Callable[[], Loaded], file: Path, name: str) -> None:
        super().__init__(name=name, classes="panel")
        self._load, self._file = load, file
        self._touched = False

    def take(self, loaded: Loaded) -> None:
        """Show these."""
        raise NotImplementedError

    def reread(self, loaded: Loaded) -> None:
        self.take(loaded)

    def action_back(self) -> None:
        if self._touched and self.focused is self.home:
            self.dismiss(True)
        else:
            super().action_back()

    def again(self) -> None:
        self.dismiss(True if self._touched else None)

    async def write(self, work: Callable[[], None]) -> None:
        """Do it off the loop, say what is wrong with it, and show what stands in the file then."""
        try:
            await asyncio.to_thread(work)
        except CtxchatError as problem:
            self.notify(clean(str(problem)), severity="error", markup=False)
        except OSError as problem:
            words = clean(f"{self._file}: {problem.strerror or problem}")
            self.notify(words, severity="error", markup=False)
        else:
            self._touched = True
            self.take(await asyncio.to_thread(self._load))
