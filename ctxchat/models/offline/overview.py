"""What a project is for: its README's beginning, what its manifest says, or at least what lies in it."""

from __future__ import annotations

import re

from ctxchat.models.offline import phrases
from ctxchat.models.offline.answer import refusals
from ctxchat.models.offline.beginning import beginning
from ctxchat.models.offline.language import Language
from ctxchat.models.offline.quoting import fence, head, ref
from ctxchat.models.offline.reply import Decision, Wanted, wanted
from ctxchat.models.offline.transcript import Tools, Transcript

_MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod")


def overview(seen: Transcript, tools: Tools, language: Language) -> Decision:
    """What this project does: its README's beginning, what its manifest says of it, or at least what lies in it."""
    if not seen.done:
        calls = wanted(tools.call("list_files", depth=1), tools.call("glob", pattern="**/README*"))
        if calls:
            return Decision(wanted=calls, thought="A README or a manifest says what a project is for.")
        return Decision(phrases.NO_TOOLS.format(names=ref("list_files")))
    if not seen.named("read_file") and (calls := _manifests(seen, tools)):
        return Decision(wanted=calls)
    parts: list[str] = []
    for done in seen.named("read_file"):
        parts.append("" if done.failed else beginning(done, language, "also" if any(parts) else "found"))
    if not any(parts):
        listing = "\n".join(d.text for d in seen.named("list_files") if not d.failed)
        parts = [
            phrases.say(language, "nothing"),
            fence(head(listing.split("\n"), 40)) if listing else "",
            *refusals(seen, language),
        ]
    return Decision("\n\n".join(p for p in parts if p))


def _manifests(seen: Transcript, tools: Tools) -> tuple[Wanted, ...]:
    text = "\n".join(d.text for d in seen.named("list_files", "glob") if not d.failed)
    readmes = sorted(
        {p.removeprefix("./") for p in re.findall(r"[\w./-]*README[\w.]*", text)}, key=lambda p: (p.count("/"), p)
    )
    manifests = [m for m in _MANIFESTS if re.search(rf"(?m)(?<![\w/]){re.escape(m)}", text)]
    return wanted(*(tools.call("read_file", path=p, start_line=1, end_line=40) for p in [*readmes[:1], *manifests[:1]]))
