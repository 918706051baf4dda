"""Writes what a compaction keeps verbatim beside its summary: memos, and the skills in use. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.clip import clip
from ctxchat.core.ledger import Ledger
from ctxchat.core.memos import memos_text, memos_to_carry
from ctxchat.core.messages import Group, Text
from ctxchat.core.prompt_files import SKILL_TOOL
from ctxchat.core.tokens import Count
from ctxchat.core.tool_share import CALL_TOOL
from ctxchat.core.tooluse import failed, refused

MIN_SKILL_TOKENS, MAX_SKILL_TOKENS, MAX_CARRIED_TOKENS = 200, 5_000, 20_000
"""Tokens of skills that a compaction keeps: minimum and maximum for one skill, and maximum for all."""

_CARRIED = "Skills in use, as they were read. They still hold:"
_CUT = "\n[… {lines}{tokens} tokens left out; the tool skill shows the whole …]\n"


def carried_text(ledger: Ledger, fold: Collection[str], count: Count, skill_tokens: int) -> str:
    """The memos, and the skills in at most `skill_tokens`, that would be out of view once the groups `fold` are folded; empty for
    none."""
    memos = memos_text(memos_to_carry(ledger, fold))
    skills = carried_skills(skills_to_carry(ledger, fold), count, skill_tokens)
    return "\n\n".join(part for part in (memos, skills) if part)


def skills_in_use(groups: Sequence[Group]) -> dict[str, str]:
    """The texts of the skills that were read in these groups, by name, the one read last at the end."""
    found: dict[str, str] = {}
    for group in groups:
        for name, text in _read_in(group).items():
            found.pop(name, None)
            found[name] = text
    return found


def skills_to_carry(ledger: Ledger, fold: Collection[str]) -> dict[str, str]:
    """The texts by name of the skills that would be out of view once the groups `fold` are folded."""
    gone = frozenset(fold)
    shown = [e.group for e in ledger.live() if e.group and e.kind is None and gone.isdisjoint(e.covers)]
    still = skills_in_use(shown)
    return {name: text for name, text in skills_in_use(ledger.groups_in_force).items() if name not in still}


def carried_skills(texts: Mapping[str, str], count: Count, max_tokens: int) -> str:
    """The skills' texts for a summary, the one read last first, as many as fit into `max_tokens`; empty for none."""
    parts: list[str] = []
    room = min(max_tokens, MAX_CARRIED_TOKENS)
    for name, text in reversed(list(texts.items())):
        if room < MIN_SKILL_TOKENS:
            break
        shown = clip(text, min(MAX_SKILL_TOKENS, room), count, _CUT)
        room -= count(shown)
        parts.append(f'<skill name="{name}">\n{shown}\n</skill>')
    return "\n".join([_CARRIED, *parts]) if parts else ""


def _read_in(group: Group) -> dict[str, str]:
    """The texts by name of the skills that one group holds: called by the person, or read by the agent."""
    if group.kind == "user":
        parts = group.first.content if isinstance(group.first.content, tuple) else ()
        texts = {p.name: p.text for p in parts if isinstance(p, Text)}
        return {n.removeprefix("skill /"): text for n, text in texts.items() if n.startswith("skill /")}
    if group.kind != "round":
        return {}
    results = {m.call_id: m for m in group.messages[1:]}
    found: dict[str, str] = {}
    for call in group.first.calls:
        fields: Mapping[str, object] = fields_of(call.arguments) or {}
        if call.name == CALL_TOOL:
            fields = fields_of(msgspec.json.encode(fields.get("arguments")).decode()) or {}
        result, skill = results.get(call.id), fields.get("name")
        if result is None or result.name != SKILL_TOOL or not isinstance(skill, str) or fields.get("file"):
            continue
        if not (result.synthetic or failed(result) or refused(result)):
            found[skill] = result.text
    return found
