"""Turns a terminal's input into Textual's events: keys, pastes, the mouse, sizes. No bytes raise, and no typed text is lost.

`InputParser` wraps Textual's parser (seen with 8.2), which raises on some key events of the kitty protocol, takes a terminal's
answers to queries for typed text, and escape sequences inside a paste for keys. Knows no widget.
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

ESC, PASTE_START, PASTE_END = "\x1b", "\x1b[200~", "\x1b[201~"
PASTE_TIMEOUT_S = 5.0
"""Seconds of silence after which a paste without an end marker is closed: else every later key would belong to it."""
LONE_KEY_AFTER_S = 1.0
"""Seconds of silence inside a paste after which a control character that comes alone is a key: a paste has no pauses, so somebody
presses ctrl+q because the end marker was lost."""
MIN_PASTED_CHARS = 16
"""So many characters at once were not typed by hand: after a paste closed by the timeout they are the rest of it."""
MAX_COLUMNS_OR_ROWS = 10_000
"""Sizes and mouse positions from here on are ignored: no terminal has them."""

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ANSWER = re.compile(r"\x1b[]P_^X][^\x1b\x07]*(?:\x07|\x1b\\)")
"""A string a terminal sends by itself: a colour, its name, what it can do."""
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-Z\\-~]")
"""A whole control sequence. `\x1b[[` begins the function keys of the Linux console."""
_KEY = re.compile(r"\x1b\[(\d*)(?::(\d*)[\d:]*)?(?:;(\d*)(?::(\d*)[\d:]*)?(?:;([\d:]*))?)?;?([u~ABCDEFHPQRS])")
"""A key of the kitty protocol: code and shifted code; modifiers and kind of event; the text it types."""
_NOT_KEYS = re.compile(r"\x1b\[(?:M|<[-\d;]*[Mm]|\?\d+;\d\$y|\d+;\d+R)")
"""Sequences that Textual's parser handles after it has tried them as keys: mouse, modes, cursor position."""
_RELEASED, _SHIFT, _CAPS_LOCK, _NUM_LOCK = "3", 1, 64, 128


class PasteFilter:
    """Takes the control characters inside pastes out of a terminal's input, piece by piece."""

    def __init__(self) -> None:
        self.inside = False
        self._held = ""  # inside a paste: the last characters, where they may begin the end marker
        self._tail = ""  # outside: the last characters, in case a start marker is cut in two

    def feed(self, data: str) -> str:
        """The next piece, made harmless. May be empty while a piece is held back."""
        kept: list[str] = []
        while data:
            step, data = self._paste(data) if self.inside else self._outside_paste(data)
            kept.append(step)
        return "".join(kept)

    def close_paste(self) -> str:
        """End a paste that has no end marker; what to feed for that: what was held back, and the marker."""
        held, self._held, self.inside = self._held, "", False
        return _CONTROLS.sub("", held) + PASTE_END

    def _outside_paste(self, data: str) -> tuple[str, str]:
        seen = self._tail + data
        at = seen.find(PASTE_START)
        if at < 0:
            self._tail = seen[-(len(PASTE_START) - 1) :]
            return data, ""
        self.inside, end = True, at + len(PASTE_START) - len(self._tail)
        self._tail = ""
        return data[:end], data[end:]

    def _paste(self, data: str) -> tuple[str, str]:
        data, self._held = self._held + data, ""
        at = data.find(PASTE_END)
        if at >= 0:
            self.inside = False
            return _CONTROLS.sub("", data[:at]) + PASTE_END, data[at + len(PASTE_END) :]
        keep = next((n for n in range(len(PASTE_END) - 1, 0, -1) if data.endswith(PASTE_END[:n])), 0)
        self._held = data[len(data) - keep :]
        return _CONTROLS.sub("", data[: len(data) - keep]), ""


class Key(events.Key):
    """A key whose character Python does not count as printable. It must be called `Key`: Textual finds handlers by the class
    name."""

    @property
    def is_printable(self) -> bool:
        return True


class InputParser(XTermParser):
    """Textual's parser, fed with what it understands. `now` is a clock in seconds."""

    def __init__(self, debug: bool = False, now: Any = time.monotonic) -> None:
        super().__init__(debug)
        self._pastes, self._now, self._last = PasteFilter(), now, now()
        self._lone = ""  # a control character that came alone inside a paste
        self._closed_early = False  # the last paste was closed by the timeout, and nothing was typed since

    def feed(self, data: str) -> Iterable[Any]:
        if not data:  # only the first bytes of a character: Textual's parser would take it for the end of all input
            return ()
        silent, self._last = self._now() - self._last, self._now()
        before: Iterable[Any] = ()
        self._lone = data if self._pastes.inside and data != ESC and _CONTROLS.fullmatch(data) else ""
        if self._lone and silent > LONE_KEY_AFTER_S:
            before = self._parsed(self._pastes.close_paste())
        if not self._pastes.inside:
            if self._is_rest(data):
                data = PASTE_START + data
            self._closed_early = False
            plain, start, rest = data.partition(PASTE_START)
            data = _ANSWER.sub("", plain) + start + rest
        return chain(before, self._parsed(self._pastes.feed(data)))

    def _is_rest(self, data: str) -> bool:
        """Whether a piece belongs to a paste that the timeout closed: it holds the end marker, or is too long to be typed. Read
        as keys, a line end in it would send half of what was pasted."""
        plain, end, _ = data.partition(PASTE_END)
        run = self._closed_early and len(plain) >= MIN_PASTED_CHARS
        return bool(plain) and ESC not in plain and (run or bool(end))

    @property
    def is_incomplete(self) -> bool:
        """True in the middle of a sequence or a paste: `tick` must be called to find out whether more comes."""
        return self._timeout_time is not None or self._pastes.inside

    def tick(self) -> Iterable[Any]:
        yield from self._guarded(super().tick())
        if self._pastes.inside and self._now() - self._last > PASTE_TIMEOUT_S:
            yield from self._parsed(self._pastes.close_paste())
            yield from self._parsed(self._lone)  # it came last and alone, so it was a key
            self._closed_early, self._lone = not self._lone, ""

    def _parsed(self, data: str) -> Iterable[Any]:
        """The events of some input: plain text in one piece, sequences character by character, so that one which cannot be read
        takes nothing else with it."""
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
                    self.mouse_pixels = False  # without a size in pixels no mouse position can be computed
                if isinstance(event, events.Key) and _is_unprintable_text(event):
                    event = Key(event.key, event.character)
                if _is_plausible(event):
                    yield event
        except Exception:  # whatever Textual's parser raises: it starts afresh
            self._tokens.clear()
            self._gen = self.parse(self._tokens.append)
            self._awaiting, self._timeout_time = next(self._gen), None

    def _parse_extended_key(self, sequence: str) -> list[events.Key] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Textual calls this with ever longer beginnings of a sequence until it gets keys. A sequence that is not understood
        gives a key that is ignored."""
        if (match := _KEY.fullmatch(sequence)) and not _NOT_KEYS.fullmatch(sequence):
            plain = key_sequence(*match.groups(default=""))
            return super()._parse_extended_key(plain) if plain else _ignored_key(sequence)
        unknown = _SEQUENCE.fullmatch(sequence) and sequence not in ANSI_SEQUENCES_KEYS
        return _ignored_key(sequence) if unknown and not _NOT_KEYS.fullmatch(sequence) else None


def key_sequence(code: str, shifted: str, modifiers: str, kind: str, text: str, end: str) -> str:
    """A key of the kitty protocol rewritten for Textual's parser, always with the text it types; empty where it is no key press.
    All but `end` are decimal numbers or empty; `text` may be several, joined by colons."""
    points = [chr(int(each)) for each in text.split(":") if _is_character(each)]
    named = f"{code or '1'}{end}" in FUNCTIONAL_KEYS
    if kind == _RELEASED or len(modifiers) > 3 or not (named or points or (end == "u" and _is_character(code))):
        return ""
    held = max(0, int(modifiers or "1") - 1)
    if not points and not named and not held & ~(_SHIFT | _CAPS_LOCK | _NUM_LOCK):
        upper = bool(held & _SHIFT) != bool(held & _CAPS_LOCK)
        character = chr(int(shifted)) if held & _SHIFT and _is_character(shifted) else chr(int(code))
        points = [character.upper() if upper and len(character.upper()) == 1 else character]
    typed = ":".join(str(ord(character)) for character in points)
    return f"{ESC}[{code or '1'};{modifiers or '1'};{typed}{end}"


def _is_character(number: str) -> bool:
    return 0 < len(number) <= 7 and int(number) < 0x110000 and is_text(chr(int(number)))


def _ignored_key(sequence: str) -> list[events.Key]:
    return [events.Key(Keys.Ignore, sequence)]


def _is_unprintable_text(key: events.Key) -> bool:
    """Whether it types a character that Textual leaves out."""
    character = key.character or ""
    return len(character) == 1 and is_text(character) and not key.is_printable


def _is_plausible(event: Any) -> bool:
    """False for sizes and mouse positions that no terminal has."""
    if isinstance(event, events.Resize):
        return min(event.size) > 0 and max(event.size) < MAX_COLUMNS_OR_ROWS
    return not isinstance(event, events.MouseEvent) or max(event.screen_x, event.screen_y) < MAX_COLUMNS_OR_ROWS


def lenient_decoder(encoding: str) -> partial[codecs.IncrementalDecoder]:
    """A decoder that turns what is not valid in this encoding into `\ufffd`. Textual's own raises, which would end the
    program."""
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


def patch_web_driver() -> None:
    """Have Textual's web driver use our parser and decoder. It offers no way to pass them in, so its module's names are
    replaced."""
    from textual.drivers import web_driver

    setattr(web_driver, "XTermParser", InputParser)  # noqa: B010
    setattr(web_driver, "getincrementaldecoder", lenient_decoder)  # noqa: B010
