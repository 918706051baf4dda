"""Finds secrets in texts and replaces them with marks. All masking, for models, logs and exports, is done here.

The `redact-secret` library finds most; our own patterns add what it misses, each with its reason. Text in, text out.
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
    """The position of a secret in a text, in characters, and its kind. `quote` is what has to stand around a mark in its place: a
    JSON number has no quotes of its own."""

    start: int
    end: int
    kind: str
    quote: str = ""


Named = Callable[[str, str], str | None]
"""Returns the mark for a secret, given its kind and its value, or None to leave it unmasked."""

_KINDS = {
    "contextual_secret": "secret",
    "vendor_prefixed_credential": "API key",
    "connection_string_password": "password",
    "authorization_credential": "credentials",
    "jwt": "JWT",
}
"""Our names for some of the library's types; the other types become readable by replacing `_` with a blank."""

# ── our own patterns ──

_GAPS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    # The library only finds a key with its end line, which a clipped text or a range of lines often lacks.
    (
        "private key",
        "private key-----",
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----\s*(?:\\[nr])*[A-Za-z0-9+/=]"
            r".*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
            re.S,
        ),
    ),
    # It expects the lengths of the providers' keys; proxies and self-hosted servers issue shorter ones.
    (
        "API key",
        "k",
        re.compile(
            r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf]))(?:sk|rk|pk)[-_](?:(?:ant|proj|or|live|test|svcacct)[-_])?(?=[A-Za-z_-]*\d)[\w-]{16,}"
        ),
    ),
    # Kinds it does not know: Google access tokens, Slack webhooks, cookies, the lines of a .netrc.
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
    # Vendors' keys that it does not know, or only in another length.
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
    # The lines of a .pgpass, recognised by the usual ports of PostgreSQL.
    (
        "password",
        ":",
        re.compile(r"(?m)^[\w.*-]{1,255}:(?:54\d\d|6432|\*):[\w.*-]{1,63}:[\w.*-]{1,63}:(?P<value>[^\s:]{4,256})$"),
    ),
    # It knows two of these schemes only, and expects longer values.
    (
        "credentials",
        "authorization",
        re.compile(
            r"""(?ix) authorization \\*["']? \s{0,4} [:=] \s{0,4} \\*["']? (?:basic|bearer|token|apikey|negotiate|ntlm) [ ]{1,4}
                (?! your | <) (?P<value> [^\s"'`,;<>\\\[${]{6,}+ )"""
        ),
    ),
)
"""Kinds of secrets: the name, a text in lower case that must occur for the pattern to be tried, and the pattern."""

# Endings of names whose value is secret. The library also judges the value, and so misses short ones, ones of letters only, and
# those in JSON inside JSON; after these names any value may be a secret.
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
"""Names whose value is always a secret."""

_WEAK = re.compile(r"(?i)(?:token|[_-]key|authorization|(?<!\w)pwd)$")
"""Names whose value may be a secret or something else: the value decides."""

_IN_ADDRESS = re.compile(r"(?i)^(?:key|sig|auth)$|(?:token|signature)$")
_QUOTED = re.compile(r"""(?<=")(?:[^"\\\n]|\\.)*+(?=")|(?<=')(?:[^'"\\\n]|\\[^"\n])*+(?=')""")
_CLOSING = re.compile(
    r"""\\*["']\s{0,20}[:,}\]]"""
)  # not the beginning of a value, but the end of a string whose last word is a name
_ESCAPED = re.compile(r"""(?<=")(?:[^"\\\n]|\\++(?!"))*+(?=\\*")|(?<=')(?:[^"'\\\n]|\\++(?!["']))*+(?=\\*')""")
_OPEN = re.compile(r"""\\*["']""")
_BARE = re.compile(r"""[^\s"'`,;&\\]{1,512}+""")
_MORE = re.compile(r"""[^\s"'`,;&\\]*+""")
"""The extent of a value: to its closing quote; in JSON inside JSON to the next quote; unquoted, to the next separator."""

_FOLDER = re.compile(r"(?i)[nrt]?(?:old)?pwd$")
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_PLAIN_VALUE = re.compile(
    r"(?i)null|none|true|false|undefined|\$\{?\w+\}?|\$\(.*|[a-z_][a-z_.]*[(\[](?:\+\+|--)?[\w.]*(?:[+-]\d)?"
)
"""Values that are no secrets: constants, references to variables, pieces of program code."""

_REFERENCE = re.compile(r"(?:[a-zA-Z_$][\w$]*(?:[?!]?\.|->|::))+(?P<last>[a-zA-Z_$][\w$]*)!?")
_NAME_BEFORE = re.compile(r"([\w-]+) {0,4}(?::=|[:=]) {0,4}\Z")
_OPERATOR = re.compile(r"(?:await|new|yield|typeof|not|lambda|async|function|if)\s+[a-zA-Z_$(]")
"""Code that fetches a value from elsewhere: `options.apiKey`, `await keyOf(model)`."""

_TARGETS = re.compile(r"^[\s\d]{0,40}(?:[a-zA-Z_]\w{0,60},[ ]?){1,8}[a-zA-Z_]\w{0,60} = \Z", re.M)
_CODE = re.compile(r"[a-zA-Z_][\w.]*[.(\[]")
_OR_ELSE = re.compile(r" (?:or|and|if|\?\?|\|\||&&) ")
"""Code that takes values apart or chooses one: `user, password = request.auth`, `password = request.auth or None`."""

_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\$\{.*\}|\{\{.*|.*(?:\.\.\.|…|xxxx|\*\*\*).*|.*\byour[_-].*|.*_here\b.*|.*example$|change[_-]?me|string|password|secret|token"
)
"""Placeholders that documentation and tests write instead of a secret."""

_ESCAPES = re.compile(r"""\\[nrtbf]|\\{1,8}["']""")
_MAX_NAME_CHARS = 100


def secrets_in(text: str) -> tuple[Secret, ...]:
    """The secrets in a text in their order, without overlaps. Takes about 15 ms for 100,000 characters, in proportion to the
    length: call it off the event loop for more than a few lines."""
    found = [
        *_by_name(text),
        *_by_library(text),
        *_gaps(text),
    ]  # of equal ones the first is kept, and only `_by_name` sets `quote`
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
    """The text with a mark in place of each secret, and unchanged otherwise; marks already in it stay, and JSON stays valid.
    `named` makes the marks."""
    parts: list[str] = []
    done = 0
    for secret in secrets_in(text):
        mark = named(secret.kind, text[secret.start : secret.end])
        if mark is not None:
            parts += [text[done : secret.start], secret.quote, mark, secret.quote]
            done = secret.end
    return "".join([*parts, text[done:]]) if parts else text


def marks_in(text: str) -> tuple[str, ...]:
    """The marks with an id in a text, each once."""
    return tuple(dict.fromkeys(_WITH_ID.findall(text))) if "[masked " in text else ()


def read_mark(mark: str) -> tuple[str, str]:
    """The kind and the id of a mark as `marks_in` gives it."""
    kind, _, id = mark.removeprefix("[masked ").removesuffix("]").rpartition(" #")
    return kind, id


_WITH_ID = re.compile(r"\[masked [\w ]{1,60} #[0-9a-f]{8}\]")


@cache
def _mark() -> re.Pattern[str]:
    """The pattern of exactly the marks that we make: text that only begins like a mark might hide a secret."""
    from redact_secret import artifact_manifest

    types: set[str] = {kind for detector in artifact_manifest()["detectors"] for kind in detector["types"]}
    kinds = {_kind(type) for type in types} | {kind for kind, _, _ in _GAPS} | {"secret"}
    return re.compile(
        rf"\[masked (?:{'|'.join(sorted(map(re.escape, kinds), key=len, reverse=True))})(?: #[0-9a-f]{{8}})?\]"
    )


def _kind(type: str) -> str:
    return _KINDS.get(type, type.replace("_", " "))


def _by_library(text: str) -> Iterator[Secret]:
    """The secrets that the library finds, without its known false alarms."""
    from redact_secret import scan

    text = whole_text(text)  # the library raises for unpaired surrogates
    # A word may begin after an escaped line end or quote too; blanks in their place keep all positions the same.
    plain = _ESCAPES.sub(lambda m: " " * (len(m[0]) - 1) + (m[0][-1] if m[0][-1] in "\"'" else "\n"), text)
    for read in (text,) if plain == text else (text, plain):
        for finding in scan(read):
            value = text[finding.start : finding.end]
            if "xxxxxxxx" in value.lower():
                continue  # a placeholder of documentation
            if finding.type == "contextual_secret" and (
                '"' in value or "\\" in value or _CLOSING.match(read, max(0, finding.start - 1))
            ):
                continue  # after a name at the end of a JSON string the library takes the JSON that follows for the value
            if finding.type == "contextual_secret" and _in_program(text, finding.start, value):
                continue
            yield Secret(finding.start, finding.end, _kind(finding.type))


def _gaps(text: str) -> Iterator[Secret]:
    """The secrets that our own patterns find."""
    lower = text.lower()
    for kind, word, pattern in _GAPS:
        for match in pattern.finditer(text) if word in lower else ():
            yield Secret(*match.span("value" if "value" in pattern.groupindex else 0), kind)


def _by_name(text: str) -> Iterator[Secret]:
    """The secrets that are given to a name such as `api_key`."""
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
        if not quoted and _is_fetched(name, value, text, start):
            continue
        if len(value) < 4 or not _secret(name, sign["sign"], value, quoted=quoted, in_address=in_address):
            continue
        if len(value) >= 500 and not quoted and (more := _MORE.match(text, start + len(value))):
            value += more[0]
        key = (
            sign["key"] if len(sign["key"]) % 2 == 0 else sign["key"][-1:]
        )  # an even number of backslashes belongs to the name
        number = start == sign.end() and _NUMBER.fullmatch(value)
        done = start + len(value)
        yield Secret(start, done, "secret", key if number else "")


def _name_start(text: str, at: int) -> int:
    """Where the word that contains position `at` begins."""
    least = max(0, at - _MAX_NAME_CHARS)
    while at > least and (text[at - 1].isalnum() or text[at - 1] in "_-"):
        at -= 1
    return at


def _value_span(text: str, at: int) -> tuple[int, int, bool]:
    """Start and end of the value that is given at position `at`, and whether it is in quotes."""
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
    """True when an unquoted value is program code that fetches it from elsewhere."""
    name = _NAME_BEFORE.search(text, max(0, start - 80), start)
    return bool(name and (_PLAIN_VALUE.fullmatch(value.rstrip(")]}>;")) or _is_fetched(name[1], value, text, start)))


def _is_fetched(name: str, value: str, text: str, start: int) -> bool:
    """True when the text at `start` is code that fetches the value: a field with the name of a secret, an operator such as
    `await`, or what is taken apart into several names or has an alternative. Names in upper case are environment variables, whose
    value is meant literally."""
    reference = _REFERENCE.fullmatch(value)
    field = reference and (_STRONG.search(reference["last"]) or _WEAK.search(reference["last"]))
    if name.isupper():
        return False
    if field or _OPERATOR.match(text, start):
        return True
    if not text.endswith(" = ", 0, start):  # as programs write it
        return False
    taken_apart = _CODE.match(value) and _TARGETS.search(text[max(0, start - 300) : start])
    return bool(taken_apart or (reference and _OR_ELSE.match(text, start + len(value))))


def _secret(name: str, sign: str, value: str, *, quoted: bool, in_address: bool) -> bool:
    """True when the value given to this name is a secret. `sign` is the assignment between them, `in_address`: it is a parameter
    of an address."""
    if (not quoted and _PLAIN_VALUE.fullmatch(value)) or _PLACEHOLDER.fullmatch(value):
        return False
    if _FOLDER.fullmatch(name) and value[0] in "/~":
        return False
    if _STRONG.search(name) or (in_address and _IN_ADDRESS.search(name) and len(value) >= 6):
        return True
    return _looks_made(name, sign, value, quoted=quoted)


def _looks_made(name: str, sign: str, value: str, *, quoted: bool) -> bool:
    """True when a value looks generated: letters and digits, or quoted, and long enough; for environment variables, any word."""
    if _NUMBER.fullmatch(value) or " " in value or len(value) < 6:
        return False
    if name.lstrip("nrt").isupper() and sign == "=":
        return True
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= 8 and (mixed or quoted)


# ── with ids ──


class Seen(msgspec.Struct, frozen=True):
    """A secret that was masked since the program started, with its real value."""

    id: str
    kind: str
    value: str


def allowed_by(entries: Collection[str], id: str, value: str) -> str:
    """The entry of `secrets.allow` that declares a secret a false alarm: its id, or a pattern that matches the whole value; empty
    for none. Without a value only ids count."""
    if id in entries:
        return id
    return next((pattern for pattern in entries if fnmatchcase(value, pattern)), "") if value else ""


class Masking:
    """Masks secrets with ids, so that a model can tell them apart: on one machine, one secret always has the same id.

    `key` is the machine's own; without it nobody can find the value of an id by trial. What was masked is kept in memory only,
    for the person to look at.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.on = True
        self.allowed: Collection[str] = ()
        """False alarms: ids, and patterns (`*` for anything) that match the whole value."""
        self.seen: dict[str, Seen] = {}
        """The masked secrets by id, in the order in which they were found."""

    def __call__(self, text: str) -> str:
        """The text for a model and the record."""
        return masked(text, self._mask_name) if self.on and text else text

    def _mask_name(self, kind: str, value: str) -> str | None:
        """The mark that replaces a secret; None where the person has allowed it. The id is a keyed hash, so that one secret
        always gets the same mark."""
        id = blake2b(value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=4).hexdigest()
        if allowed_by(self.allowed, id, value):
            return None
        self.seen.setdefault(id, Seen(id, kind, value))
        return f"[masked {kind} #{id}]"


_KEY_END = re.compile(r"-----END [A-Z ]{0,40}-----")


class MaskedLines:
    """Masks a text that arrives in pieces; releases whole lines, which no later piece can change."""

    MAX_HELD_CHARS = 16_000
    """Characters held back at most while a line or a private key has no end yet."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._held = ""

    def feed(self, piece: str) -> str:
        """The masked text that can be shown after this piece."""
        self._held += piece
        cut = max(self._held.rfind("\n"), self._held.rfind("\r")) + 1
        cut = min(cut, self._open_key(cut))
        if not cut and len(self._held) > self.MAX_HELD_CHARS:
            cut = len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return self._mask(ready) if ready else ""

    def waited(self) -> str:
        """The masked text that can be shown after a pause in the input: an unfinished line, but no unfinished private key."""
        return "" if self._open_key(len(self._held)) < len(self._held) else self.rest()

    def _open_key(self, end: int) -> int:
        """The position of a private key that begins before `end` and does not end there; `end` where there is none."""
        opened = self._held.rfind("-----BEGIN ", 0, end)
        return end if opened < 0 or _KEY_END.search(self._held, opened, end) else opened

    def rest(self) -> str:
        """The masked text that is still held back, after the last piece."""
        ready, self._held = self._held, ""
        return self._mask(ready) if ready else ""
