"""Takes what looks like a secret out of a text that leaves the store: exports, logs, reports. Text in, text out.

It also works on JSON, whose strings it leaves valid: a secret may stand behind `\\n` and between `\\"`. Every pattern takes a
time that grows with the text and no faster.
"""

from __future__ import annotations

import re

_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf]))"  # of a word; the n of an escaped line end is none of its letters

_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.S),
    ),
    ("token", re.compile(_START + r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*")),
    ("AWS key", re.compile(_START + r"(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(_START + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})")),
    ("GitLab token", re.compile(_START + r"glpat-[\w-]{20,}")),
    ("Slack token", re.compile(_START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("Slack webhook", re.compile(r"(?<=hooks\.slack\.com/services/)[\w/]{10,}")),
    ("Google key", re.compile(_START + r"AIza[\w-]{35}")),
    ("Google token", re.compile(_START + r"ya29\.[\w.-]{10,}")),
    ("Hugging Face token", re.compile(_START + r"hf_[A-Za-z0-9]{30,}")),
    ("npm token", re.compile(_START + r"npm_[A-Za-z0-9]{30,}")),
    # OpenAI, Anthropic, OpenRouter, Stripe and the many that do as they do.
    ("API key", re.compile(_START + r"(?:sk|rk|pk)[-_](?:(?:ant|proj|or|live|test|svcacct)[-_])?[\w-]{16,}")),
    ("bearer token", re.compile(r"(?i)(?<=\bbearer )[\w.~+/-]{12,}=*")),
    ("password", re.compile(r"(?<=://)[^\s/:@\"'<>]{0,128}:[^\s/@\"'<>]{1,256}(?=@)")),
)

_HEADER = re.compile(
    r"""(?ix) ( authorization \\*["']? \s{0,4} [:=] \s{0,4} \\*["']? (?:basic|bearer|token|apikey|negotiate|ntlm) [ ]{1,4} )
        [^\s"'`,;<>\\\[]{6,}+"""
)
_COOKIES = re.compile(r"""(?i)(cookie\\*["']?\s{0,4}:\s{0,4}\\*["']?)[\w!#$%&*+.^|~-]{1,128}+=[^\r\n"'\\]*+""")
_CURL = re.compile(r"\bcurl\b[^\n]{0,2000}+")
_LOGIN = re.compile(
    r"""(\s(?:-u|--user|--proxy-user)[\s=]?\\*["']?)(?!\d+:\d)[^\s:"'\\\[-][^\s:"'\\]{0,127}:[^\s"'\\]+"""
)

_NAMED = re.compile(
    r"""(?x) (?: (?P<address> [?&] ) | (?<![\w-]) ) (?P<name> [\w-]{2,100}+ )
        (?P<key> \\*["']? ) (?P<sign> \s{0,4} (?: :=|=>|[:=] ) (?![:=]) \s{0,4} )"""
)
_QUOTED = re.compile(r"""(?<=")(?:[^"\\\n]|\\.)*+(?=")|(?<=')(?:[^'"\\\n]|\\[^"\n])*+(?=')""")
_CLOSING = re.compile(
    r"""\\*["']\s{0,20}[:,}\]]"""
)  # not the begin of a value: the end of a string in which a name stands last
_ESCAPED = re.compile(r"""(?<=")(?:[^"\\\n]|\\++(?!"))*+(?=\\*")|(?<=')(?:[^"'\\\n]|\\++(?!["']))*+(?=\\*')""")
_OPEN = re.compile(r"""\\*["']""")
_BARE = re.compile(r"""[^\s"'`,;&\\]{1,512}+""")
_MORE = re.compile(r"""[^\s"'`,;&\\]*+""")
"""A value reaches to its closing quote; in a JSON within a JSON to the next; without one to what could end it."""

_STRONG = re.compile(
    r"""(?ix) (?: passw(?:or)?d | passphrase | secret | (?:api|access|auth|secret|master|signing|encryption)[_-]?key
        | (?:access|auth|refresh|bearer)[_-]?token | (?<=[a-z][a-z_-])pwd | [_-](?:pass|pw) ) $"""
)
"""Names of secrets: whatever they are given is one."""

_WEAK = re.compile(r"(?i)(?:token|[_-]key|authorization|(?<!\w)pwd)$")
"""Names of secrets, and of much else: it depends on the value."""

_IN_ADDRESS = re.compile(r"(?i)^(?:key|sig|signature|auth)$|token$")
_FOLDER = re.compile(r"(?i)[nrt]?(?:old)?pwd$")
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_PLAIN_VALUE = re.compile(r"(?i)null|none|true|false|undefined|\$\{?\w+\}?|\$\(.*|[a-z_][a-z_.]*[(\[][\w.]*")
"""No secret: a constant, a reference to a variable, a piece of a program."""


def redact(text: str) -> str:
    """The text with secrets replaced by a word that says what stood there. What it takes out of a JSON string leaves
    valid JSON."""
    for name, pattern in _SECRETS:
        text = pattern.sub(f"[redacted {name}]", text)
    text = _HEADER.sub(r"\1[redacted credentials]", text)
    text = _COOKIES.sub(r"\1[redacted cookies]", text)
    text = _CURL.sub(lambda line: _LOGIN.sub(r"\1[redacted login]", line[0]), text)
    return _without_values(text)


def _without_values(text: str) -> str:
    """The values of names that say they are secret."""
    parts: list[str] = []
    done = 0
    for named in _NAMED.finditer(text):
        if named.start() < done or not _could_be_secret(named):
            continue
        start, end, quoted = _value(text, named.end())
        value = text[start:end]
        if named["address"]:
            value = value.partition("#")[0]
        if len(value) < 4 or "[redacted" in value or not _secret(named, value, quoted=quoted):
            continue
        if len(value) >= 500 and not quoted and (more := _MORE.match(text, start + len(value))):
            value += more[0]
        number = start == named.end() and _NUMBER.fullmatch(value)
        key = (
            named["key"] if len(named["key"]) % 2 == 0 else named["key"][-1:]
        )  # pairs of backslashes belong to the name
        mark = key if number else ""  # a word in its place needs quotes where the name has them, as in JSON
        parts += [text[done:start], f"{mark}[redacted]{mark}"]
        done = start + len(value)
    return "".join([*parts, text[done:]])


def _could_be_secret(named: re.Match[str]) -> bool:
    """Judged by the name alone."""
    name = named["name"]
    return bool(_STRONG.search(name) or _WEAK.search(name) or (named["address"] and _IN_ADDRESS.search(name)))


def _value(text: str, at: int) -> tuple[int, int, bool]:
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


def _secret(named: re.Match[str], value: str, *, quoted: bool) -> bool:
    name = named["name"]
    if not quoted and _PLAIN_VALUE.fullmatch(value):
        return False
    if _FOLDER.fullmatch(name) and value[0] in "/~":
        return False
    if _STRONG.search(name) or (named["address"] and _IN_ADDRESS.search(name) and len(value) >= 6):
        return True
    return _looks_made(name, named["sign"], value, quoted=quoted)


def _looks_made(name: str, sign: str, value: str, *, quoted: bool) -> bool:
    """A value no person would write in a sentence or a program: letters and digits; in an environment, any word."""
    if _NUMBER.fullmatch(value) or " " in value or len(value) < 6:
        return False
    if name.lstrip("nrt").isupper() and sign == "=":
        return True
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= 8 and (mixed or quoted)
