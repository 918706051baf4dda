"""What a terminal sends, as keys, pastes, clicks and sizes: whatever the bytes, nothing raises and no typed text is lost.

Textual's parser (seen with 8.2) raises on key events of the kitty protocol that it does not expect, types the answers of a
terminal as text and reads escape sequences inside a paste as keys; so it is fed by `InputParser`. Knows no widget.
"""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Any

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.keys import Keys

from ctxchat.tui.graphemes import is_text

ESC, START, END = "\x1b", "\x1b[200~", "\x1b[201~"
PASTE_TIMEOUT_S = 5.0
"""Seconds of silence after which a paste whose end never came is taken for whole: else every later key would belong to it."""
LONE_KEY_AFTER_S = 1.0
"""Seconds of silence within a paste after which a control character that comes alone is a key: a paste comes in a run, and who
presses ctrl+q when its end was lost means it."""
MIN_RUN_CHARS = 16
"""Characters in one piece that no hand types: behind a paste that was taken for whole they are the rest of it."""
MAX_TERMINAL_CELLS = 10_000
"""Columns and rows beyond which a terminal's figure cannot be meant."""

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ANSWER = re.compile(r"\x1b[]P_^X][^\x1b\x07]*(?:\x07|\x1b\\)")
"""A string a terminal sends by itself: a colour, its name, what it can do."""
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-Z\\-~]")
"""A whole control sequence. `\x1b[[` begins the function keys of the Linux console."""
_KEY = re.compile(r"\x1b\[(\d*)(?::(\d*)[\d:]*)?(?:;(\d*)(?::(\d*)[\d:]*)?(?:;([\d:]*))?)?;?([u~ABCDEFHPQRS])")
"""A key of the kitty protocol: code and the one with shift, modifiers and kind of event, what it types."""
_ELSEWHERE = re.compile(r"\x1b\[(?:M|<[-\d;]*[Mm]|\?\d+;\d\$y|\d+;\d+R)")
"""Sequences Textual's parser asks for after it has asked for keys: the mouse, modes, the place of the cursor."""
_RELEASED, _SHIFT, _LOCKS = "3", 1, 64 | 128


class PasteFilter:
    """What a terminal sends, piece by piece, with the control characters inside pastes left out."""

    def __init__(self) -> None:
        self.inside = False
        self._held = ""  # inside a paste: what may be the beginning of its end
        self._tail = ""  # outside: what may be the beginning of a start

    def feed(self, data: str) -> str:
        """The next piece, made harmless. May be empty while a piece is held back."""
        kept: list[str] = []
        while data:
            step, data = self._paste(data) if self.inside else self._outside_paste(data)
            kept.append(step)
        return "".join(kept)

    def close_paste(self) -> str:
        """What closes a paste that nobody closes, and what was held back of it."""
        held, self._held, self.inside = self._held, "", False
        return _CONTROLS.sub("", held) + END

    def _outside_paste(self, data: str) -> tuple[str, str]:
        seen = self._tail + data
        at = seen.find(START)
        if at < 0:
            self._tail = seen[-(len(START) - 1) :]
            return data, ""
        self.inside, end = True, at + len(START) - len(self._tail)
        self._tail = ""
        return data[:end], data[end:]

    def _paste(self, data: str) -> tuple[str, str]:
        data, self._held = self._held + data, ""
        at = data.find(END)
        if at >= 0:
            self.inside = False
            return _CONTROLS.sub("", data[:at]) + END, data[at + len(END) :]
        keep = next((n for n in range(len(END) - 1, 0, -1) if data.endswith(END[:n])), 0)
        self._held = data[len(data) - keep :]
        return _CONTROLS.sub("", data[: len(data) - keep]), ""


class Key(events.Key):
    """A key that types what Python does not count as printable. Of this name, for Textual finds who handles it by that."""

    @property
    def is_printable(self) -> bool:
        return True


class InputParser(XTermParser):
    """Textual's parser, fed with what it understands. `now` is a clock in seconds."""

    def __init__(self, debug: bool = False, now: Any = time.monotonic) -> None:
        super().__init__(debug)
        self._pastes, self._now, self._last = PasteFilter(), now, now()
        self._lone = ""
        self._cut = False  # a paste was taken for whole, and nothing that a hand typed has come since

    def feed(self, data: str) -> Iterable[Any]:
        if not data:
            return self._guarded(super().feed(data))  # the end
        silent, self._last = self._now() - self._last, self._now()
        before: Iterable[Any] = ()
        self._lone = data if self._pastes.inside and data != ESC and _CONTROLS.fullmatch(data) else ""
        if self._lone and silent > LONE_KEY_AFTER_S:
            before = self._parsed(self._pastes.close_paste())
        if not self._pastes.inside:
            if self._is_rest(data):
                data = START + data
            self._cut = False
            plain, start, rest = data.partition(START)
            data = _ANSWER.sub("", plain) + start + rest
        return chain(before, self._parsed(self._pastes.feed(data)))

    def _is_rest(self, data: str) -> bool:
        """A piece belongs to a paste that was taken for whole: that ends in it, or is still to end. As keys, a line end in it
        would send half of what was pasted."""
        plain, end, _ = data.partition(END)
        run = self._cut and len(plain) >= MIN_RUN_CHARS
        return bool(plain) and ESC not in plain and (run or bool(end))

    @property
    def within(self) -> bool:
        """True within a key or a paste: what has come so far may be all of it, which `tick` finds out."""
        return self._timeout_time is not None or self._pastes.inside

    def tick(self) -> Iterable[Any]:
        yield from self._guarded(super().tick())
        if self._pastes.inside and self._now() - self._last > PASTE_TIMEOUT_S:
            yield from self._parsed(self._pastes.close_paste())
            yield from self._parsed(self._lone)  # the last that came, and all by itself: it was a key
            self._cut, self._lone = not self._lone, ""

    def _parsed(self, data: str) -> Iterable[Any]:
        """Text in one go, sequences sign by sign: what cannot be read costs itself and no more."""
        at = 0
        while at < len(data):
            end = at + 1
            if self._awaiting.timeout is None:  # not within a sequence
                end = max(end, found if (found := data.find(ESC, at)) >= 0 else len(data))
            yield from self._guarded(super().feed(data[at:end]))
            at = end

    def _guarded(self, found: Iterable[Any]) -> Iterable[Any]:
        try:
            for event in found:
                if isinstance(event, events.Resize) and 0 in (event.pixel_size or (0, 0)):
                    self.mouse_pixels = False  # nothing to work out a place from
                if isinstance(event, events.Key) and _is_missed(event):
                    event = Key(event.key, event.character)
                if _can_be(event):
                    yield event
        except Exception:  # whatever Textual's parser made of it: a terminal's bytes end nothing
            self._tokens.clear()
            self._gen = self.parse(self._tokens.append)
            self._awaiting, self._timeout_time = next(self._gen), None

    def _parse_extended_key(self, sequence: str) -> list[events.Key] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Asked for each beginning of a sequence, till there is an answer; no key answers for what is not understood."""
        if (match := _KEY.fullmatch(sequence)) and not _ELSEWHERE.fullmatch(sequence):
            plain = key_sequence(*match.groups(default=""))
            return super()._parse_extended_key(plain) if plain else _nothing(sequence)
        unknown = _SEQUENCE.fullmatch(sequence) and sequence not in ANSI_SEQUENCES_KEYS
        return _nothing(sequence) if unknown and not _ELSEWHERE.fullmatch(sequence) else None


def key_sequence(code: str, shifted: str, modifiers: str, kind: str, text: str, end: str) -> str:
    """A key of the kitty protocol as Textual's parser reads it, what it types always with it; empty for one that is no key
    press. All but `end` are numbers in decimals, or empty."""
    points = [chr(int(each)) for each in text.split(":") if _is_sign(each)]
    named = f"{code or '1'}{end}" in FUNCTIONAL_KEYS
    if kind == _RELEASED or len(modifiers) > 3 or not (named or points or (end == "u" and _is_sign(code))):
        return ""
    held = max(0, int(modifiers or "1") - 1)
    if not points and not named and not held & ~(_SHIFT | _LOCKS):
        up = bool(held & _SHIFT) != bool(held & 64)
        sign = chr(int(shifted)) if held & _SHIFT and _is_sign(shifted) else chr(int(code))
        points = [sign.upper() if up and len(sign.upper()) == 1 else sign]
    typed = ":".join(str(ord(sign)) for sign in points)
    return f"{ESC}[{code or '1'};{modifiers or '1'};{typed}{end}"


def _is_sign(number: str) -> bool:
    return 0 < len(number) <= 7 and int(number) < 0x110000 and is_text(chr(int(number)))


def _nothing(sequence: str) -> list[events.Key]:
    return [events.Key(Keys.Ignore, sequence)]


def _is_missed(key: events.Key) -> bool:
    """It types a character that Textual leaves out."""
    sign = key.character or ""
    return len(sign) == 1 and is_text(sign) and not key.is_printable


def _can_be(event: Any) -> bool:
    if isinstance(event, events.Resize):
        return min(event.size) > 0 and max(event.size) < MAX_TERMINAL_CELLS
    return not isinstance(event, events.MouseEvent) or max(event.screen_x, event.screen_y) < MAX_TERMINAL_CELLS


def forgiving(encoding: str) -> partial[codecs.IncrementalDecoder]:
    """What is no UTF-8 (a paste of binary data, a terminal of another encoding) becomes `\ufffd`: Textual's own decoder raises,
    and the draft would be gone with the interface."""
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


def guard_browser() -> None:
    """Let Textual's driver of a browser use our parser. It offers no way to hand one in, so its module's names are set."""
    from textual.drivers import web_driver

    setattr(web_driver, "XTermParser", InputParser)  # noqa: B010
    setattr(web_driver, "getincrementaldecoder", forgiving)  # noqa: B010
