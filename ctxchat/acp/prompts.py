"""Converts the content blocks of an editor's prompt into a message: its text and its attachments.

A link to a file is a mention of it (`@path`), as in the interface; what the editor embeds goes along as it is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from ctxchat.agent.session import Session
from ctxchat.core.errors import UsageError
from ctxchat.core.messages import Part
from ctxchat.core.sanitize import clean
from ctxchat.headless import UNSEEN, along
from ctxchat.tools.mentions import MAX_TEXT_CHARS, MentionedFile, file_name, image, mention, part_of

Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock

Tell = Callable[[str], None]


async def message(
    blocks: Sequence[Block], session: Session, workspace: Path, tell: Tell
) -> tuple[str, tuple[Part, ...]]:
    """The text and the attachments of a prompt; `tell` is called for each file that is not attached. Raises UsageError and
    StorageError."""
    words: list[tuple[str, bool]] = []  # each text with whether the person wrote it
    named_by_person: list[str] = []  # `@path` is a mention in these only, not in names of embedded things
    chosen: list[str] = []
    parts: list[Part] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                words.append((text, True))
                named_by_person.append(text)
            case ResourceContentBlock(uri=uri) if urlsplit(uri).scheme == "file":
                words.append((_linked(uri, workspace), False))
                named_by_person.append(words[-1][0])
                chosen.append(_short_path(uri, workspace))
            case ResourceContentBlock(uri=uri, name=name):
                words.append((f"{clean(name)} ({clean(uri)})", False))
            case ImageContentBlock(data=data, mime_type=kind, uri=uri):
                named = image(_image_name(uri, kind), _decoded(data))
                words.append((f"[{named.name}]", False))
                parts += await _image(named, session, tell)
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                name = _short_path(uri, workspace)
                words.append((f"`{name}`", False))
                parts.append(await _text_part(name, text, session))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents(uri=uri, blob=blob, mime_type=kind)):
                name = _short_path(uri, workspace)
                words.append((f"`{name}`", False))
                if (kind or "").startswith("image/"):
                    parts += await _image(image(name, _decoded(blob)), session, tell)
                else:
                    tell(f"{name}: {kind or 'no text'}, only its name goes along.")
            case _:
                raise UsageError("Sound cannot be sent to a model from here.", "Send text, files or images.")
    text = _spaced_text(words)
    if not text.strip() and not parts:
        raise UsageError("There is nothing to answer: the prompt is empty.")
    return text, (*parts, *await along(session, "\n".join(named_by_person), workspace, tell, chosen))


def _linked(uri: str, workspace: Path) -> str:
    """A link to a file as an `@path` mention, with the lines it points to."""
    lines = urlsplit(uri).fragment.removeprefix("L").replace(":L", "-").replace(":", "-")
    return f"{mention(_short_path(uri, workspace))}{f' (lines {clean(lines)})' if lines else ''}"


def _spaced_text(words: Sequence[tuple[str, bool]]) -> str:
    """The texts joined unchanged, but with a space between the name of a file or image and a word it would run into."""
    text, before = "", True
    for word, written in words:
        close = (before and written) or not text or not word or text[-1].isspace() or word[0].isspace()
        text += word if close or text[-1] in "([{<" or word[0] in ".,;:!?)]}>" else f" {word}"
        before = written
    return text


def _short_path(uri: str, workspace: Path) -> str:
    """A file's path, relative to the workspace where it lies inside; any other address unchanged."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return clean(uri)
    path = Path(unquote(parts.path))
    return str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)


def _image_name(uri: str | None, kind: str) -> str:
    return file_name(urlsplit(uri).path) if uri else f"image.{clean(kind).rpartition('/')[2] or 'png'}"


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise UsageError(f"The data of an image is no base64: {problem}.") from problem


async def _image(named: MentionedFile, session: Session, tell: Tell) -> tuple[Part, ...]:
    part = await part_of(named, session.attachments.save, session.attachments.mask)
    if part is None or not session.attachments.seen:
        tell(f"{clean(named.name)}: {named.why or UNSEEN}")
    return (part,) if part else ()


async def _text_part(name: str, text: str, session: Session) -> Part:
    """An embedded text as a part: whole where it is short, else saved as a file that the agent can page through."""
    if len(text) > MAX_TEXT_CHARS:
        return await session.attachments.put_away(file_name(name), session.attachments.mask(text))
    part = await part_of(MentionedFile(name, "text", text), session.attachments.save, session.attachments.mask)
    assert part
    return part
