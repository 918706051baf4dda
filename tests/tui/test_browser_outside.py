"""Links open in a browser with a window, or they do not open and it is said why: a real program stands for the browser."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ctxchat.tui.browser import open_in_browser

URL = "https://example.org/?a=b&c='d'"


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "no browser with a window"),
        ({"SSH_CONNECTION": "1", "DISPLAY": ":0"}, "over SSH"),
        ({"BROWSER": "/usr/bin/lynx %s", "DISPLAY": ":0"}, "one for the terminal"),
    ],
)
def test_where_none_has_a_window_none_is_started(environ: dict[str, str], why: str) -> None:
    assert why in open_in_browser(URL, environ, "linux")


def test_it_gets_the_address_and_no_terminal(tmp_path: Path) -> None:
    browser, got = tmp_path / "browser", tmp_path / "got"
    lines = (
        "#!/bin/sh",
        f"printf '%s ' \"$1\" > {got}.part",
        f"(: < /dev/tty) 2>/dev/null && echo tty >> {got}.part",
        f"mv {got}.part {got}",
    )
    browser.write_text("\n".join(lines))
    browser.chmod(0o755)
    assert open_in_browser(URL, {**os.environ, "BROWSER": f"{browser} %s", "SSH_TTY": "x"}, "linux") == ""
    for _ in range(500):
        if got.exists():
            break
        time.sleep(0.02)
    assert got.read_text() == f"{URL} "


def test_one_that_fails_is_said(tmp_path: Path) -> None:
    environ = {"BROWSER": f"{tmp_path}/nothing-here %s", "PATH": str(tmp_path)}
    assert open_in_browser(URL, environ, "linux") == "no browser took it"
