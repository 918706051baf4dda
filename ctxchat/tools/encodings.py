"""Finds the encoding of a text from its bytes, and whether the bytes are text at all.

Knows bytes, no files. A guessed encoding is marked as such: writing with it could damage the text.
"""

from __future__ import annotations

import codecs
import re

import msgspec

from ctxchat.core.images import other_kind

SNIFFED_BYTES = 8192
"""Bytes from the start of a file that decide whether it is text."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS = (
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF media (WebP, WAV or AVI)"),
    (b"PK\x03\x04", "ZIP archive (or an office document, a wheel, a jar)"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstandard archive"),
    (b"7z\xbc\xaf", "7-Zip archive"),
    (b"\x7fELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\xcf\xfa\xed\xfe", "macOS program"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x00asm", "WebAssembly module"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"

_CHARSETS = re.compile(
    r"utf[-_]?(8|16|32)([-_]?[lb]e)?|us-ascii|ascii|latin[-_]?\d+|koi8[-_][rut]"
    r"|(iso[-_]?8859|windows|cp|ibm|mac)[-_]?\w+|iso[-_]2022[-_]\w+|shift[-_]?jis|s[-_]?jis|euc[-_]\w+|gb\w+|big5\S*|tis[-_]?620"
)
"""Character sets of real files. Python knows more codecs, some of them no encodings, some slow on purpose-made data."""
_OTHER_NAMES = {
    "ansinew": "cp1252",
    "applemac": "mac-roman",
    "utf8x": "utf-8",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
}

_COMMENT = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
"""The declaration of Python and Ruby, in one of the first two lines."""
_EMACS = re.compile(rb"-\*-.*?coding:[ \t]*([-\w.]+).*?-\*-")
_VIM = re.compile(rb"(?:^|\s)(?:vim?|ex):.*?\b(?:fileencoding|fenc)=([-\w.]+)")
_HEADS = (
    re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([-\w.]+)"),
    re.compile(rb"@charset \"([-\w.]+)\";"),
    re.compile(
        rb"\s*<(?:!doctype\s+html|html|head|meta)\b.{0,3000}?<meta[^>]{0,200}?charset\s*=\s*[\"']?([-\w.]+)",
        re.I | re.S,
    ),
    re.compile(rb"\s*<()meta[^>]{0,200}?charset\s*=\s*[\"']?([-\w.]+)", re.I),
    re.compile(rb"(?:.*\n){0,60}?[ \t]*\\(?:usepackage|RequirePackage)\[([-\w.]+)\]\{inputenc\}"),
    re.compile(rb"(?:.*\n){0,60}?\"Content-Type: text/plain; charset=([-\w.]+)\\n\""),  # gettext
)
"""The declarations of XML, CSS, HTML, LaTeX and gettext catalogues, at the beginning of a file."""

_LATIN = ("windows-1250", "windows-1252", "windows-1254", "windows-1257", "iso-8859-2")
_SCRIPTS = ("windows-1251", "windows-1253", "windows-1255", "windows-1256", "koi8-r", "koi8-u", "tis-620")
_MULTIBYTE = ("cp932", "euc-jp", "gb18030", "big5", "cp949")
_RARE = ("cp866", "iso-8859-5", "iso-8859-7")
"""Encodings that are guessed only with high confidence, as characters of Western texts resemble theirs."""

_SURE, _LIKELY, _POSSIBLE = 0.1, 0.03, 0.015
"""Levels of the detector's confidence (0 to 1, in practice seldom above 0.3). From `_SURE` on, its first guess was right in all
samples of tests/tools/test_encodings.py; `_LIKELY` and `_POSSIBLE` are the leads that texts in another script, or with two bytes
a character, have over Western ones there."""

_MAX_EXAMINED_BYTES = 200_000
"""The largest number of bytes, in lines with characters beyond ASCII, from which a guess is made."""


class Encoding(msgspec.Struct, frozen=True):
    """The encoding of a text: a codec, and the byte order mark before the text. Decoding and encoding again gives the same bytes.

    `guessed`: chosen by a few characters only. `damaged`: some bytes are no characters in it; they are kept as they are.
    """

    codec: str = "utf-8"
    bom: bytes = b""
    guessed: bool = False
    damaged: bool = False

    @property
    def label(self) -> str:
        """The encoding's name for people: `utf-8`, `utf-16-le with BOM`, `cp1252, a guess`."""
        marks = [" with BOM" if self.bom else "", ", a guess" if self.guessed else ""]
        return self.codec + "".join(marks) + (", with bytes that are no characters" if self.damaged else "")

    @property
    def errors(self) -> str:
        """The error handler of `decode` for bytes that are no characters."""
        return "replace" if self.damaged else "strict"

    def decode(self, data: bytes) -> str:
        """The text of the bytes, to be shown. Raises UnicodeDecodeError."""
        return data.removeprefix(self.bom).decode(self.codec, self.errors)

    def decode_exactly(self, data: bytes) -> str:
        """The text of the bytes, to be changed and encoded again: bytes that are no characters become lone surrogates. Raises
        UnicodeDecodeError."""
        return data.removeprefix(self.bom).decode(self.codec, "surrogateescape" if self.damaged else "strict")

    def encode(self, text: str) -> bytes:
        """The bytes of a text. Raises UnicodeEncodeError."""
        return self.bom + text.encode(self.codec, "surrogateescape" if self.damaged else "strict")


LATIN1 = Encoding("latin-1", guessed=True)
"""The encoding that can decode every byte."""


def binary_kind(head: bytes) -> str:
    """The kind of a binary file by its first bytes, such as `PNG image`; empty for text."""
    if any(head.startswith(bom) for bom, _ in _BOMS):
        return ""
    kind = next((kind for magic, kind in _KINDS if head.startswith(magic)), "") or other_kind(head)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head or controls * 10 > len(head):
        return "" if not kind and _utf16(head) else kind or "binary data"
    return kind if kind == "PDF document" else ""  # the only one of them that may look like text


def encoding_of(data: bytes, whole: bool = True, *, agreed: str = "") -> Encoding:
    """The encoding of a text. `whole` is false if `data` is only its beginning; `agreed` is the codec that its project
    prescribes.

    The first of these that fits: the byte order mark, UTF-8 (nothing else looks like it by chance), the file's own declaration,
    `agreed`, UTF-8 with a few wrong bytes, a guess by the characters, and at last Latin-1, which can decode every byte.
    """
    for bom, codec in _BOMS:
        if data.startswith(bom) and _decodes(data[len(bom) :], codec, whole):
            return Encoding(codec, bom)
    stated = declared(data)
    if b"\x1b$" in data and (found := _iso2022(data, stated, whole)):
        return found
    if b"\0" in data[:SNIFFED_BYTES] and (codec := _utf16(data[:SNIFFED_BYTES])) and _decodes(data, codec, whole):
        return Encoding(codec)
    if _decodes(data, "utf-8", whole):
        return Encoding(stated) if stated and data.isascii() else Encoding()
    if stated and stated != "utf-8" and _decodes(data, stated, whole):
        return Encoding(stated)
    if agreed == "latin-1" and _C1.search(data):
        agreed = "cp1252"  # which is what is mostly meant by it
    if agreed and agreed != "utf-8" and _decodes(data, agreed, whole):
        return Encoding(agreed)
    return _mostly_utf8(data, whole) or _guessed(data, whole)


_C1 = re.compile(rb"[\x80-\x9f]")
"""Control characters of Latin-1, which do not occur in text."""


def declared(data: bytes) -> str:
    """The encoding that a text declares (as Python, Ruby, XML, HTML, CSS, LaTeX, gettext, Emacs and vim allow), as Python's
    codec; empty for none. Only encodings that contain ASCII: in any other the declaration could not be read."""
    head = data[:4096]
    lines = re.split(rb"\r\n|\n|\r", head, maxsplit=5)
    found = next((m for line in lines[:2] if (m := _EMACS.search(line) or _COMMENT.match(line))), None)
    found = found or next((m for pattern in _HEADS if (m := pattern.match(head))), None)
    found = found or next(
        (m for line in (*lines[:5], *data[-1000:].splitlines()[-5:]) if (m := _VIM.search(line))), None
    )
    return charset_named(found[found.lastindex or 1].decode("ascii", "replace")) if found else ""


def charset_named(name: str, wide: bool = False) -> str:
    """Python's codec for a character set by the name that files and servers use; empty for an unknown one and, unless `wide`, for
    one that does not contain ASCII."""
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    name = re.sub(r"-(unix|dos|mac)$", "", name)  # Emacs adds the line ends
    if not _CHARSETS.fullmatch(name):
        return ""
    try:
        codec = codecs.lookup(name).name
        ascii_too = wide or bytes(range(32, 127)).decode(codec) == bytes(range(32, 127)).decode()
    except (LookupError, UnicodeError):
        return ""
    return {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}.get(codec, codec) if ascii_too else ""


def _iso2022(data: bytes, stated: str, whole: bool) -> Encoding | None:
    """The encoding of ISO-2022 text, which switches between character sets in seven bits and looks like ASCII otherwise; None for
    other text."""
    codec = stated if stated.startswith("iso2022") else "iso2022_jp"
    if not data.isascii() or not _decodes(data, codec, whole):
        return None
    found = Encoding(codec)
    return found if not whole or found.encode(found.decode(data)) == data else None


def _utf16(head: bytes) -> str:
    """The codec of UTF-16 text without a byte order mark, by the position of the zero bytes of its ASCII characters; empty for
    other data."""
    head = head[: len(head) // 2 * 2]
    even, odd = head[::2].count(0), head[1::2].count(0)
    codec = "utf-16-le" if odd > 4 * even else "utf-16-be" if even > 4 * odd else ""
    if not codec or max(even, odd) * 4 < len(head) // 2 or min(even, odd):
        return ""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(head)
    except UnicodeDecodeError:
        return ""
    return codec if all(sign.isprintable() or sign in "\t\r\n\f" for sign in text) else ""


def _mostly_utf8(data: bytes, whole: bool) -> Encoding | None:
    """UTF-8 with some wrong bytes: most of the characters beyond ASCII can be decoded. None for other data."""
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data, whole)
    beyond = [sign for sign in text if sign > "\x7f"]
    lost = sum("\udc80" <= sign <= "\udcff" for sign in beyond)
    return Encoding(damaged=True) if lost * 4 < len(beyond) else None


def _guessed(data: bytes, whole: bool) -> Encoding:
    """The encoding guessed from the characters. Western text with only a few characters beyond ASCII is taken for cp1252, as
    editors and browsers do."""
    import chardet  # a tenth of a second, for old files only

    wanted = (*_LATIN, *_SCRIPTS, *_MULTIBYTE, *_RARE)
    sample = _with_letters(data)
    for found in chardet.detect_all(
        sample, ignore_threshold=True, include_encodings=wanted, max_bytes=_MAX_EXAMINED_BYTES
    ):
        codec = charset_named(found["encoding"] or "")
        if not codec or not _decodes(data, codec, whole):
            continue
        sure, name = found["confidence"], (found["encoding"] or "").lower()
        if sure >= _SURE:
            return Encoding(codec)
        # The rest are less likely; a Western one of these few letters could be any, so it is the most usual one.
        if (name in _SCRIPTS and sure >= _LIKELY) or (name in _MULTIBYTE and sure >= _POSSIBLE):
            return Encoding(codec, guessed=True)
        break
    return Encoding("cp1252", guessed=True) if _decodes(data, "cp1252", whole) else LATIN1


def _with_letters(data: bytes) -> bytes:
    """The lines that have bytes beyond ASCII: all others would only make the detector less sure."""
    lines: list[bytes] = []
    room = _MAX_EXAMINED_BYTES
    for line in re.split(rb"[\r\n]+", data):
        if room > 0 and not line.isascii():
            lines.append(line[:room])
            room -= len(line) + 1
    return b"\n".join(lines)


def _decodes(data: bytes, codec: str, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(codec)().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True
