"""Files as an editor has them: what is not saved there yet is what the agent reads and changes."""

from __future__ import annotations

from ctxchat.core.ports import EditorFiles
from ctxchat.tools.editorconfig import agreed_encoding
from ctxchat.tools.encodings import SNIFFED_BYTES, binary_kind, encoding_of
from ctxchat.tools.line_ends import LINE_END, with_line_ends_of
from ctxchat.tools.paths import MAX_BYTES, ResolvedPath


def as_edited(place: ResolvedPath, saved: bytes, editor: EditorFiles | None) -> bytes:
    """A text file as its editor has it, where it has something that is not saved, with the line ends of the file; as it lies on
    the disk (`saved`) otherwise, and where it is not UTF-8: an editor may have read it in another way than we. Blocks."""
    if editor is None or binary_kind(saved[:SNIFFED_BYTES]):
        return saved
    encoding = encoding_of(saved, agreed=agreed_encoding(place))
    text = editor.text(str(place.path)) if encoding.codec.startswith("utf-8") else None
    old = encoding.decode(saved)
    if (
        text is None
        or len(text.encode("utf-8", "replace")) > MAX_BYTES
        or LINE_END.sub("\n", text) == LINE_END.sub("\n", old)
    ):
        return saved
    return encoding.encode(with_line_ends_of(old, text))
