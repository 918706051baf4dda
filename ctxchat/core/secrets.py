"""Finds secrets in texts and puts marks in their place. Everything that masks one, for a model, a log or an export, does it here.

The `redact-secret` library finds them; patterns of our own add what it leaves, each with its reason. Text in, text out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatchcase
from functools import cache
from hashlib import blake2b

import msgspec

from ctxchat.core.sanitize import whole_text


class Secret(msgspec.Struct, frozen=True):
    """Where a secret stands in a text, in characters, and what kind it is. `quote` is what a mark in its place needs around it:
    a JSON number has no quotes of its own."""

    start: int
    end: int
    kind: str
    quote: str = ""


Named = Callable[[str, str], str | None]
"""The mark for a secret of a kind, or None to leave it as it is."""

_KINDS = {
    "contextual_secret": "secret",
    "vendor_prefixed_credential": "API key",
    "connection_string_password": "password",
    "authorization_credential": "credentials",
    "jwt": "JWT",
}
"""Types of the library that have another name here; the others are words already, with `_` between."""

# ── our own patterns ──

_GAPS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    # The library wants the end of a key. Head and tail of a long text, and a range of lines, often have none.
    (
        "private key",
        "private key-----",
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----\s*(?:\\[nr])*[A-Za-z0-9+/=]"
            r".*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
            re.S,
        ),
    ),
    # It knows the lengths that providers give their keys; proxies and servers of one's own give shorter ones.
    (
        "API key",
        "k",
        re.compile(
            r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf]))(?:sk|rk|pk)[-_](?:(?:ant|proj|or|live|test|svcacct)[-_])?(?=[A-Za-z_-]*\d)[\w-]{16,}"
        ),
    ),
    # Not known to it: logins of Google, hooks of Slack, cookies, the lines of a .netrc.
    ("google access token", "ya29.", re.compile(r"(?<![A-Za-z0-9_])ya29\.[\w.-]{10,}")),
    ("slack webhook", "hooks.slack.com/services/", re.compile(r"(?<=hooks\.slack\.com/services/)[\w/]{10,}")),
    (
        "cookies",
        "cookie",
        re.compile(r"""(?i)cookie\\*["']?\s{0,4}:\s{0,4}\\*["']?(?P<value>[\w!#$%&*+.^|~-]{1,128}+=[^\r\n"'\\]*+)"""),
    ),
    (
        "password",
        "password",
        re.compile(r"(?i)\b(?:login|user)\s{1,20}\S{1,256}\s{1,20}password\s{1,20}(?P<value>[^\s$<*]\S{3,256})"),
    ),
    # Keys of its own kinds that it does not know, or knows in another length.
    (
        "API key",
        "",
        re.compile(
            r"(?<![A-Za-z0-9_])(?:figd_|ntn_|nfp_|pscale_(?:tkn|pw|oauth)_|tskey-[a-z]{2,12}-|EZ[AT]K|xai-|pplx-|github_pat_|AKCp"
            r"|sntry[su]_|pypi-AgE|rnd_)(?=[\w+/.=-]*\d)[\w+/.=-]{20,}"
        ),
    ),
    (
        "API key",
        "",
        re.compile(r"(?<![A-Za-z0-9_-])(?:SK[0-9a-f]{32}|key-[0-9a-f]{32}|oy2[a-z0-9]{43})(?![A-Za-z0-9_])"),
    ),
    ("age key", "age-", re.compile(r"(?<![A-Za-z0-9])AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9-]{1,30})-1[0-9A-Z]{20,}")),
    (
        "private key",
        "pgp private key",
        re.compile(r"-----BEGIN PGP PRIVATE KEY BLOCK-----.*?(?:-----END PGP PRIVATE KEY BLOCK-----|\Z)", re.S),
    ),
    (
        "private key",
        "private-lines:",
        re.compile(r"Private-Lines: \d{1,3}\s+(?P<value>(?:[A-Za-z0-9+/=]{16,}\s{0,4})+)"),
    ),
    (
        "private key",
        "client-key-data",
        re.compile(r"client-key-data\\*[\"']?:\s{0,4}\\*[\"']?(?P<value>[A-Za-z0-9+/=]{20,})"),
    ),
    # The lines of a .pgpass, by the ports that such servers have.
    (
        "password",
        ":",
        re.compile(r"(?m)^[\w.*-]{1,255}:(?:54\d\d|6432|\*):[\w.*-]{1,63}:[\w.*-]{1,63}:(?P<value>[^\s:]{4,256})$"),
    ),
    # Of the schemes it knows two, and it wants longer values.
    (
        "credentials",
        "authorization",
        re.compile(
            r"""(?ix) authorization \\*["']? \s{0,4} [:=] \s{0,4} \\*["']? (?:basic|bearer|token|apikey|negotiate|ntlm) [ ]{1,4}
                (?! your | <) (?P<value> [^\s"'`,;<>\\\[${]{6,}+ )"""
        ),
    ),
)
"""What it is, a word in small letters without which it cannot be there, and how it looks."""

# Names that say their value is secret. The library judges the value too, so a short one, one of letters only, or one within
# JSON within JSON stays; behind these names it is one whatever it looks like.
_NAMED = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "key",
    "token",
    "pwd",
    "pass",
    "_pw",
    "-pw",
    "authorization",
    "sig",
    "signature",
    "auth",
)
_GIVEN = re.compile(r"""(?P<key> \\*["']? ) (?P<sign> \s{0,4} (?: :=|=>|[:=] ) (?![:=]) \s{0,4} )""", re.X)
_SIGN = re.compile(r"[:=]")
_STRONG = re.compile(
    r"""(?ix) (?: passw(?:or)?d | passphrase | secret | (?:api|access|auth|secret|master|signing|encryption)[_-]?key
        | (?:access|auth|refresh|bearer)[_-]?token | (?<=[a-z][a-z_-])pwd | [_-](?:pass|pw) ) $"""
)
"""Names of secrets: whatever they are given is one."""

_WEAK = re.compile(r"(?i)(?:token|[_-]key|authorization|(?<!\w)pwd)$")
"""Names of secrets, and of much else: it depends on the value."""

_IN_ADDRESS = re.compile(r"(?i)^(?:key|sig|auth)$|(?:token|signature)$")
_QUOTED = re.compile(r"""(?<=")(?:[^"\\\n]|\\.)*+(?=")|(?<=')(?:[^'"\\\n]|\\[^"\n])*+(?=')""")
_CLOSING = re.compile(
    r"""\\*["']\s{0,20}[:,}\]]"""
)  # not the begin of a value: the end of a string in which a name stands last
_ESCAPED = re.compile(r"""(?<=")(?:[^"\\\n]|\\++(?!"))*+(?=\\*")|(?<=')(?:[^"'\\\n]|\\++(?!["']))*+(?=\\*')""")
_OPEN = re.compile(r"""\\*["']""")
_BARE = re.compile(r"""[^\s"'`,;&\\]{1,512}+""")
_MORE = re.compile(r"""[^\s"'`,;&\\]*+""")
"""A value reaches to its closing quote; in a JSON within a JSON to the next; without one to what could end it."""

_FOLDER = re.compile(r"(?i)[nrt]?(?:old)?pwd$")
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_PLAIN_VALUE = re.compile(
    r"(?i)null|none|true|false|undefined|\$\{?\w+\}?|\$\(.*|[a-z_][a-z_.]*[(\[](?:\+\+|--)?[\w.]*(?:[+-]\d)?"
)
"""No secret: a constant, a reference to a variable, a piece of a program."""

_REFERENCE = re.compile(r"(?:[a-zA-Z_$][\w$]*(?:[?!]?\.|->|::))+(?P<last>[a-zA-Z_$][\w$]*)!?")
_NAME_BEFORE = re.compile(r"([\w-]+) {0,4}(?::=|[:=]) {0,4}\Z")
_OPERATOR = re.compile(r"(?:await|new|yield|typeof|not|lambda|async|function|if)\s+[a-zA-Z_$(]")
"""A program takes it from somewhere: `options.apiKey`, `await keyOf(model)`."""

_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\$\{.*\}|\{\{.*|.*(?:\.\.\.|…|xxxx|\*\*\*).*|.*\byour[_-].*|.*_here\b.*|.*example$|change[_-]?me|string|password|secret|token"
)
"""What documentation and tests write where a secret would stand."""

"""Halves of characters."""
_ESCAPES = re.compile(r"""\\[nrtbf]|\\{1,8}["']""")
_MAX_NAME_CHARS = 100


def secrets_in(text: str) -> tuple[Secret, ...]:
    """The secrets of a text in their order, none over another. About 15 ms for 100,000 characters, growing with the text and no
    faster: call it off the event loop for more than a few lines."""
    found = [*_by_name(text), *_by_library(text), *_gaps(text)]  # the first knows what needs quotes
    found.sort(key=lambda s: (s.start, -s.end))
    marks = [m.span() for m in _mark().finditer(text)] if found and "[masked " in text else []
    kept: list[Secret] = []
    for secret in found:
        if any(start < secret.end and secret.start < end for start, end in marks):
            continue
        if kept and secret.start < kept[-1].end:
            if secret.end > kept[-1].end:
                kept[-1] = msgspec.structs.replace(kept[-1], end=secret.end)
            continue
        kept.append(secret)
    return tuple(kept)


def masked(text: str, named: Named = lambda kind, value: f"[masked {kind}]") -> str:
    """The text with a mark in place of each secret. What stands around stays; a text without one comes back as it is, and marks
    are left alone. A JSON text stays valid."""
    parts: list[str] = []
    done = 0
    for secret in secrets_in(text):
        mark = named(secret.kind, text[secret.start : secret.end])
        if mark is not None:
            parts += [text[done : secret.start], secret.quote, mark, secret.quote]
            done = secret.end
    return "".join([*parts, text[done:]]) if parts else text


def marks_in(text: str) -> tuple[str, ...]:
    """The marks with an id in a text: what a secret was shown as. Each once."""
    return tuple(dict.fromkeys(_WITH_ID.findall(text))) if "[masked " in text else ()


def read_mark(mark: str) -> tuple[str, str]:
    """The kind and the id of a mark as `marks_in` gives it."""
    kind, _, id = mark.removeprefix("[masked ").removesuffix("]").rpartition(" #")
    return kind, id


_WITH_ID = re.compile(r"\[masked [\w ]{1,60} #[0-9a-f]{8}\]")


@cache
def _mark() -> re.Pattern[str]:
    """Marks as we make them, and nothing else: what only begins like one would hide a secret."""
    from redact_secret import artifact_manifest

    types: set[str] = {kind for detector in artifact_manifest()["detectors"] for kind in detector["types"]}
    kinds = {_kind(type) for type in types} | {kind for kind, _, _ in _GAPS} | {"secret"}
    return re.compile(
        rf"\[masked (?:{'|'.join(sorted(map(re.escape, kinds), key=len, reverse=True))})(?: #[0-9a-f]{{8}})?\]"
    )


def _kind(type: str) -> str:
    return _KINDS.get(type, type.replace("_", " "))


def _by_library(text: str) -> Iterator[Secret]:
    from redact_secret import scan

    text = whole_text(text)  # it raises at these
    # A word begins behind an escaped line end or quote as well: blanks in their place, so that the places stay the same.
    plain = _ESCAPES.sub(lambda m: " " * (len(m[0]) - 1) + (m[0][-1] if m[0][-1] in "\"'" else "\n"), text)
    for read in (text,) if plain == text else (text, plain):
        for finding in scan(read):
            value = text[finding.start : finding.end]
            if "xxxxxxxx" in value.lower():
                continue  # what documentation writes
            if finding.type == "contextual_secret" and (
                '"' in value or "\\" in value or _CLOSING.match(read, max(0, finding.start - 1))
            ):
                continue  # of a name that stands last in a text of JSON it takes what follows for the value
            if finding.type == "contextual_secret" and _in_program(text, finding.start, value):
                continue
            yield Secret(finding.start, finding.end, _kind(finding.type))


def _gaps(text: str) -> Iterator[Secret]:
    lower = text.lower()
    for kind, word, pattern in _GAPS:
        for match in pattern.finditer(text) if word in lower else ():
            yield Secret(*match.span("value" if "value" in pattern.groupindex else 0), kind)


def _by_name(text: str) -> Iterator[Secret]:
    """The values of names that say they are secret."""
    done = 0
    for found in _SIGN.finditer(text):
        before = text[max(0, found.start() - 30) : found.start()]
        word = before.rstrip("\\\"' \t\n")
        if not word.lower().endswith(_NAMED):
            continue
        sign = _GIVEN.match(text, found.start() - len(before) + len(word))
        if sign is None or (begin := _name_start(text, sign.start())) < done:
            continue
        name = text[begin : sign.start("key")]
        in_address = begin > 0 and text[begin - 1] in "?&"
        if not (_STRONG.search(name) or _WEAK.search(name) or (in_address and _IN_ADDRESS.search(name))):
            continue
        start, end, quoted = _value_span(text, sign.end())
        value = text[start:end]
        if in_address:
            value = value.partition("#")[0]
        if not quoted and _taken(name, value, text, start):
            continue
        if len(value) < 4 or not _secret(name, sign["sign"], value, quoted=quoted, in_address=in_address):
            continue
        if len(value) >= 500 and not quoted and (more := _MORE.match(text, start + len(value))):
            value += more[0]
        key = sign["key"] if len(sign["key"]) % 2 == 0 else sign["key"][-1:]  # pairs of backslashes belong to the name
        number = start == sign.end() and _NUMBER.fullmatch(value)
        done = start + len(value)
        yield Secret(start, done, "secret", key if number else "")


def _name_start(text: str, at: int) -> int:
    """Where the word begins that goes on at a place."""
    least = max(0, at - _MAX_NAME_CHARS)
    while at > least and (text[at - 1].isalnum() or text[at - 1] in "_-"):
        at -= 1
    return at


def _value_span(text: str, at: int) -> tuple[int, int, bool]:
    """Where the value begins that is given at a place, where it ends, and whether it stands in quotes."""
    if _CLOSING.match(text, at):
        return at, at, False
    if text[at : at + 1] in {'"', "'"} and (whole := _QUOTED.match(text, at + 1)):
        return at + 1, whole.end(), True
    opened = _OPEN.match(text, at)
    if opened and len(opened[0]) > 1 and (whole := _ESCAPED.match(text, opened.end())):
        return opened.end(), whole.end(), True
    start = opened.end() if opened else at
    if not opened and text[at : at + 1] in set("[({<"):
        return start, start, False
    bare = _BARE.match(text, start)
    end = bare.end() if bare else start
    return start, start + len(text[start:end].rstrip(")}]>")), opened is not None


def _in_program(text: str, start: int, value: str) -> bool:
    """A value without quotes that a program takes from somewhere."""
    name = _NAME_BEFORE.search(text, max(0, start - 80), start)
    return bool(name and (_PLAIN_VALUE.fullmatch(value.rstrip(")]}>;")) or _taken(name[1], value, text, start)))


def _taken(name: str, value: str, text: str, start: int) -> bool:
    """What stands at `start` is a program's way to the value: a field of a like name, or a word that wants more behind it. In an
    environment it is the value."""
    reference = _REFERENCE.fullmatch(value)
    field = reference and (_STRONG.search(reference["last"]) or _WEAK.search(reference["last"]))
    return bool(not name.isupper() and (field or _OPERATOR.match(text, start)))


def _secret(name: str, sign: str, value: str, *, quoted: bool, in_address: bool) -> bool:
    if (not quoted and _PLAIN_VALUE.fullmatch(value)) or _PLACEHOLDER.fullmatch(value):
        return False
    if _FOLDER.fullmatch(name) and value[0] in "/~":
        return False
    if _STRONG.search(name) or (in_address and _IN_ADDRESS.search(name) and len(value) >= 6):
        return True
    return _looks_made(name, sign, value, quoted=quoted)


def _looks_made(name: str, sign: str, value: str, *, quoted: bool) -> bool:
    """A value no person would write in a sentence or a program: letters and digits; in an environment, any word."""
    if _NUMBER.fullmatch(value) or " " in value or len(value) < 6:
        return False
    if name.lstrip("nrt").isupper() and sign == "=":
        return True
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= 8 and (mixed or quoted)


# ── with ids ──


class Seen(msgspec.Struct, frozen=True):
    """A secret that was masked since the start, as it is."""

    id: str
    kind: str
    value: str


def allowed_by(entries: Collection[str], id: str, value: str) -> str:
    """The entry of `secrets.allow` by which a secret is a false alarm, empty where there is none: its id, or a pattern that the
    whole value fits. Without a value only ids count."""
    if id in entries:
        return id
    return next((pattern for pattern in entries if fnmatchcase(value, pattern)), "") if value else ""


class Masking:
    """Masks with ids, so that a model can tell one secret from another: the same one has the same id, on this machine for ever.

    `key` is the machine's own: without it nobody can try out which value an id stands for. What was masked is remembered in
    memory only, for the person to look at.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.on = True
        self.allowed: Collection[str] = ()
        """False alarms: ids, and patterns (`*` for anything) that the whole value fits."""
        self.seen: dict[str, Seen] = {}
        """By id, in the order in which they came."""

    def __call__(self, text: str) -> str:
        """The text for a model and the record."""
        return masked(text, self._mask_name) if self.on and text else text

    def _mask_name(self, kind: str, value: str) -> str | None:
        id = blake2b(value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=4).hexdigest()
        if allowed_by(self.allowed, id, value):
            return None
        self.seen.setdefault(id, Seen(id, kind, value))
        return f"[masked {kind} #{id}]"


_KEY_END = re.compile(r"-----END [A-Z ]{0,40}-----")


class MaskedLines:
    """Masks a text that comes in pieces: gives what no later piece can change, line by line."""

    MAX_HELD_CHARS = 16_000
    """Characters held back at most for a line, or a private key, that does not end."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        self._held += piece
        cut = max(self._held.rfind("\n"), self._held.rfind("\r")) + 1
        cut = min(cut, self._open_key(cut))
        if not cut and len(self._held) > self.MAX_HELD_CHARS:
            cut = len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return self._mask(ready) if ready else ""

    def waited(self) -> str:
        """What can be shown when nothing more has come for a while: a line without an end, but no beginning of a private key."""
        return "" if self._open_key(len(self._held)) < len(self._held) else self.rest()

    def _open_key(self, end: int) -> int:
        """Where a private key begins that has not ended before `end`; `end` where there is none."""
        opened = self._held.rfind("-----BEGIN ", 0, end)
        return end if opened < 0 or _KEY_END.search(self._held, opened, end) else opened

    def rest(self) -> str:
        """What is left at the end."""
        ready, self._held = self._held, ""
        return self._mask(ready) if ready else ""
