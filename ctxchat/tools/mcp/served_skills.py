"""Skills that an MCP server serves (SEP-2640): what it lists of them, and their files, read only where they are what was listed.

Each file of a skill is a resource of the server, and has a digest in the skill's entry. Runs in the worker process.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import yaml

from ctxchat.core.errors import ToolError
from ctxchat.core.prompt_files import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS
from ctxchat.tools.mcp.protocol import OfferedSkill
from ctxchat.tools.text import clip_line

EXTENSION = "io.modelcontextprotocol/skills"
"""By this name a server says that it serves some."""

MAX_SKILLS, MAX_SKILL_FILES = 200, 200
"""Of one server, and files of one skill."""

MAX_HEAD_CHARS = 20_000
"""Characters of a skill's front matter."""

MAIN = "/SKILL.md"
"""The end of the address of the file that makes a skill."""

_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.S)


class SkillEntry(msgspec.Struct, frozen=True):
    """A skill as its server lists it: the address of its SKILL.md, what that says at its head, and of all its files the digests
    by their addresses."""

    uri: str
    frontmatter: dict[str, Any]
    digests: Mapping[str, str]

    @property
    def root(self) -> str:
        """The address of the folder with the skill's files."""
        return self.uri.removesuffix(MAIN)

    @property
    def digest(self) -> str:
        """The digest of the whole skill: if it differs, it is another skill."""
        lines = sorted(f"{uri} {digest}" for uri, digest in self.digests.items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @property
    def offered(self) -> OfferedSkill:
        """The skill as it is described to the program."""
        given = self.frontmatter
        hint = given.get("argument-hint")
        return OfferedSkill(
            self.uri,
            given["name"],
            given["description"][:MAX_DESCRIPTION_CHARS],
            self.digest,
            tuple(uri[len(self.root) + 1 :] for uri in self.digests if uri != self.uri),
            hint if isinstance(hint, str) else "",
            by_model=given.get("disable-model-invocation") is not True,
            by_person=given.get("user-invocable") is not False,
        )


def entry_of(value: object) -> SkillEntry:
    """An entry of a server's list. Raises ToolError with why it is none that is used."""
    match value:
        case {"uri": str(uri), "frontmatter": {"name": str(name), "description": str(about)} as given}:
            pass
        case _:
            raise ToolError("it is no description of a skill")
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name) or not about.strip():
        raise ToolError("it has no usable name or description")
    if not uri.endswith(f"/{name}{MAIN}"):
        raise ToolError("its address does not end with its name")
    files = cast("dict[str, object]", value).get("resources")
    if files is None:
        raise ToolError("its server does not say what its files are")
    digests: dict[str, str] = {}
    for file in cast("list[object]", files) if isinstance(files, list) else [None]:
        match file:
            case {"uri": str(place), "digest": str(digest)} if found := _DIGEST.fullmatch(digest):
                digests[place] = found[1]
            case _:
                raise ToolError("its list of files is none")
    entry = SkillEntry(uri, cast("dict[str, Any]", given), digests)
    if uri not in digests or len(digests) > MAX_SKILL_FILES:
        raise ToolError(f"its list of files lacks the skill itself, or has more than {MAX_SKILL_FILES}")
    if not all(place.startswith(f"{entry.root}/") for place in digests):
        raise ToolError("one of its files lies outside of it")
    return entry


def name_in(value: object) -> str:
    """The name by which an unusable entry is reported."""
    match value:
        case {"uri": str(uri)} if uri.strip():
            return clip_line(uri, 80)
        case _:
            return "one"


def is_as_listed(data: bytes, entry: SkillEntry, uri: str) -> bool:
    """The content is what the entry says of it; of the skill itself also its head."""
    if hashlib.sha256(data).hexdigest() != entry.digests.get(uri):
        return False
    return uri != entry.uri or _same(_frontmatter(data), entry.frontmatter)


def text_of(data: bytes, entry: SkillEntry, uri: str) -> str:
    """A file as text, the skill itself without its head. Raises ToolError where it is no text."""
    if b"\0" in data[:8192]:
        raise ToolError(f"{clip_line(uri[len(entry.root) + 1 :], 200)} is not a text file.")
    text = data.decode("utf-8-sig", "replace")
    return _HEAD.sub("", text, count=1).lstrip("\n") if uri == entry.uri else text


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _frontmatter(data: bytes) -> object:
    found = _HEAD.match(data.decode("utf-8-sig", "replace"))
    if not found or len(found[1]) > MAX_HEAD_CHARS:
        return None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(found[1], Loader=_LOADER)):
            return None  # by which a few lines may be a billion
        return yaml.load(found[1], Loader=_LOADER)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _same(written: object, listed: object) -> bool:
    """Whether a skill's YAML header says the same as its JSON listing, which has neither dates nor keys that are no texts."""
    if isinstance(written, dict) and isinstance(listed, dict):
        texts = {str(key): value for key, value in cast("dict[object, object]", written).items()}
        others = cast("dict[str, object]", listed)
        return texts.keys() == others.keys() and all(_same(value, others[key]) for key, value in texts.items())
    if isinstance(written, list) and isinstance(listed, list):
        ones, others = cast("list[object]", written), cast("list[object]", listed)
        return len(ones) == len(others) and all(map(_same, ones, others))
    if isinstance(written, bool) or isinstance(listed, bool) or written is None or listed is None:
        return written is listed
    if isinstance(written, str | int | float):
        return written == listed
    return not isinstance(written, dict | list) and str(written)[:10] == str(listed)[:10]  # a day or a time
