"""How a file begins, quoted with its place: what is told of one that was asked about as a whole."""

from __future__ import annotations

import re

from ctxchat.models.offline import phrases
from ctxchat.models.offline.language import Language
from ctxchat.models.offline.passages import file_lines
from ctxchat.models.offline.quoting import fence, ref, said
from ctxchat.models.offline.transcript import Done

_DESCRIPTION = re.compile(r"\s*\"?description\"?\s*[:=]|\s*module ")


def beginning(done: Done, language: Language, lead: phrases.Phrase) -> str:
    """A manifest's description, else the first paragraph of prose; empty where there is none."""
    path = done.get("path")
    lines = file_lines(done.text, path)
    if path.endswith((".toml", ".json", ".mod")):
        told = next((line for line in lines if _DESCRIPTION.match(line.text)), None)
        return _placed(language, lead, f"{path}:{told.number}", fence(told.text.strip(), path)) if told else ""
    prose = [line for line in lines if line.text.strip() and not re.match(r"\s*(?:#|!\[|\[!|<|=+$|-+$|```)", line.text)]
    if not prose:
        return ""
    kept = [line for i, line in enumerate(prose) if line.number - prose[0].number == i][:8]
    text = "\n".join(line.text for line in kept)
    return _placed(language, lead, f"{path}:{kept[0].number}", said(text, 900))


def _placed(language: Language, lead: phrases.Phrase, place: str, quoted: str) -> str:
    return f"{phrases.say(language, lead, ref=ref(place))}\n\n{quoted}"
