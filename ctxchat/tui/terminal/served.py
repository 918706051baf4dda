"""The Textual driver for a browser: speaks with textual-serve through pipes, and ends the chat when that is gone."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp

from ctxchat.tui.terminal.parser import patch_web_driver


class Served(WebDriver):
    """Textual's, which (seen with 8.2) would leave the chat running, and its session locked, when its server was killed."""

    def __init__(self, *given: Any, **more: Any) -> None:
        patch_web_driver()
        super().__init__(*given, **more)
        self._write = self._send

    def _send(self, data: bytes) -> int:
        with suppress(BrokenPipeError):  # nobody looks any more: the input ends as well
            return os.write(self.fileno, data)
        return len(data)

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():
            asyncio.run_coroutine_threadsafe(self._app._post_message(ExitApp()), loop=self._loop)
