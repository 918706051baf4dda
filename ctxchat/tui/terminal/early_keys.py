"""Shows what is typed before the interface has loaded, as the editor would. This is only a picture: the bytes are passed on, and
the interface reads them as if it had been there all the time. Imports nothing heavy, as the first frame needs it."""

from __future__ import annotations

import codecs
import unicodedata

from ctxchat.tui.graphemes import is_text, sign_after, sign_before

PASTE, PASTED = "\x1b[200~", "\x1b[201~"
LEFT, RIGHT = ("\x1b[D", "\x1bOD"), ("\x1b[C", "\x1bOC")
START, END = ("\x01", "\x1b[H", "\x1bOH"), ("\x05", "\x1b[F", "\x1bOF")
LINE_END = "↵"


class EarlyKeys:
    """Letters, pastes, Enter and the usual editing keys. What comes behind any other key is not shown: nobody knows yet what
    that one does."""

    def __init__(self) -> None:
        self.text, self.cursor = "", 0
        self.sent: list[str] = []
        """Messages that were ended with Enter."""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._left, self._pasting, self._unknown = "", False, False

    def feed(self, data: bytes) -> None:
        """Take the next typed bytes."""
        self._left += self._decode(data)
        while self._left and not self._unknown and (key := self._key()):
            self._left = self._left[len(key) :]
            self._insert_key(key)

    @property
    def unsent(self) -> str:
        """All text typed so far: queued messages, the one being written, and text behind a key that is not shown."""
        behind = "".join(c for c in self._left.replace("\r", "\n") if is_text(c) or c == "\n") if self._unknown else ""
        return "\n\n".join(filter(None, (*self.sent, self.text.strip(), behind.strip())))

    def _key(self) -> str:
        """The next key, empty while it has not come whole."""
        left = self._left
        if left[0] != "\x1b":
            return left[0]
        if self._pasting:
            return _without_partial(left, PASTED) and (PASTED if left.startswith(PASTED) else left[0])
        if len(left) < 3 or left[1] not in "[O":
            return left[:2] if len(left) > 1 and left[1] not in "[O" else ""
        end = next((at for at in range(2, len(left)) if "@" <= left[at] <= "~"), 0)
        return left[: end + 1] if end else ""

    def _insert_key(self, key: str) -> None:
        before, after = self.text[: self.cursor], self.text[self.cursor :]
        if key in (PASTE, PASTED):
            self._pasting = key == PASTE
        elif key == "\r" and not self._pasting:
            if self.text.strip():
                self.sent.append(self.text.strip())
                before = after = ""
        elif key in ("\r", "\n", "\u2028", "\u2029"):
            before += "\n"
        elif is_text(key) or (key == "\t" and self._pasting):
            before += key
        elif self._pasting or key > "\x7f":
            pass  # no letter, and no key either
        elif key in ("\x7f", "\b"):
            before = before[: sign_before(before, len(before))]
        elif key == "\x15":
            at = _line_start(before)
            before = before[: at if at < len(before) else -1]
        elif key == "\x17":
            before = before[: _word_start(before)]
        elif key in LEFT:
            at = sign_before(before, len(before))
            before, after = before[:at], before[at:] + after
        elif key in RIGHT:
            at = sign_after(after, 0)
            before, after = before + after[:at], after[at:]
        elif key in START:
            at = _line_start(before)
            before, after = before[:at], before[at:] + after
        elif key in END:
            line = after.partition("\n")[0]
            before, after = before + line, after[len(line) :]
        else:
            self._unknown = True
        self.text, self.cursor = before + after, len(before)


def _without_partial(text: str, mark: str) -> str:
    """The text, or nothing while it may be the beginning of the mark."""
    return "" if len(text) < len(mark) and mark.startswith(text) else text


def _line_start(before: str) -> int:
    return before.rfind("\n") + 1


def _word_start(before: str) -> int:
    """The index where the word that ends here begins, by the editor's idea of a word."""
    start = _line_start(before)
    if start == len(before):
        return max(0, start - 1)
    at = start + len(before[start:].rstrip())
    kind = at > start and _of_word(before[at - 1])
    while at > start and _of_word(before[at - 1]) == kind:
        at -= 1
    return at


def _of_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def cells(sign: str) -> int:
    """Columns of a terminal that a character takes."""
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def draw_input(text: str, cursor: int, width: int) -> str:
    """The text in one row of so many columns, the cursor marked and in sight; line ends are signs."""
    shown = text.replace("\n", LINE_END).replace("\t", " ") + " "
    start, room = cursor, width - max(1, cells(shown[cursor]))
    while start and (room := room - cells(shown[start - 1])) >= 0:
        start -= 1
    row, room = "", width
    for at in range(start, len(shown)):
        if room < cells(shown[at]):
            break
        room -= cells(shown[at])
        row += f"\x1b[7m{shown[at]}\x1b[27m" if at == cursor else shown[at]
    return row + " " * room
