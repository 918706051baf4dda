"""An image from the system's clipboard, through the programs that systems have for it. Terminals paste text only. Blocks."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping

from ctxchat.core.errors import CtxchatError
from ctxchat.core.images import kind_of
from ctxchat.own_processes import find_program

PROGRAM_TIMEOUT_S = 5.0
"""Seconds such a program has."""

KINDS = ("image/png", "image/jpeg", "image/webp", "image/gif")

_APPLE = ("-e", "get the clipboard as «class PNGf»")
_APPLE_DATA = re.compile(rb"data PNGf([0-9A-Fa-f]+)")

REMEDY = (
    "Copy an image first; it is read with wl-paste (Wayland), xclip (X11) or osascript (macOS). Or drop its file here."
)


def image_on_clipboard(environment: Mapping[str, str] = os.environ) -> bytes:
    """The bytes of the image. Raises CtxchatError where there is none, or nothing to read it with."""
    readers = list(_readers(environment))
    if not readers:
        raise CtxchatError("There is no program here that reads the clipboard.", REMEDY)
    for command in readers:
        data = _output(command, environment)
        if tuple(command[1:]) == _APPLE and (found := _APPLE_DATA.search(data)):
            data = bytes.fromhex(found[1].decode())
        if kind_of(data):
            return data
    raise CtxchatError("There is no image on the clipboard.", REMEDY)


def _readers(environment: Mapping[str, str]) -> Iterator[list[str]]:
    """Commands that may have it, those of this desktop first."""
    path = environment.get("PATH")
    programs = ["wl-paste", "xclip"] if environment.get("WAYLAND_DISPLAY") else ["xclip", "wl-paste"]
    for program in programs:
        if found := find_program(program, path=path):
            for kind in KINDS:
                yield (
                    [found, "-t", kind]
                    if program == "wl-paste"
                    else [found, "-selection", "clipboard", "-t", kind, "-o"]
                )
    if found := find_program("osascript", path=path):
        yield [found, *_APPLE]


def _output(command: list[str], environment: Mapping[str, str]) -> bytes:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROGRAM_TIMEOUT_S,
            check=False,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout
