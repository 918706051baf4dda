"""Hooks in Claude Code's form: what their commands are told, and what their exit code and JSON answer mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ctxchat.core.hooks import HookEvent, HookVerdict
from ctxchat.core.permissions import Mode
from ctxchat.core.tool_names import claude_arguments, claude_name, our_arguments

CLAUDE_EVENTS: Mapping[str, HookEvent] = {
    "SessionStart": "session_started",
    "SessionEnd": "session_finished",
    "UserPromptSubmit": "turn_started",
    "Stop": "turn_finished",
    "PreToolUse": "tool_started",
    "PostToolUse": "tool_finished",
    "PreCompact": "compaction_started",
    "PostCompact": "compaction_finished",
    "Notification": "approval_requested",
}
"""Our events by their names of them."""

CLAUDE_MODES: Mapping[Mode, str] = {
    "ask": "default",
    "read-only": "plan",
    "plan": "plan",
    "auto-edit": "acceptEdits",
    "all": "bypassPermissions",
}
"""Their name of a mode of ours, the nearest where they have none such."""

BLOCKING_EXIT_CODE = 2
"""The exit code by which a hook blocks; what it wrote on standard error is the reason."""

MAX_ANSWER_CHARS = 200_000
"""Characters of an answer that are read as JSON."""

_EVENT_NAMES = {ours: theirs for theirs, ours in CLAUDE_EVENTS.items()}


def claude_event(event: HookEvent) -> str:
    """Their name of an event of ours."""
    return _EVENT_NAMES.get(event, event)


def matches(matcher: str, subject: str) -> bool:
    """Whether a matcher is for this tool (by their name), start, compaction or notification; one that is no regular expression is
    taken as the name itself. What has no subject is matched by all."""
    if matcher in {"", "*"} or not subject:
        return True
    try:
        return re.fullmatch(matcher, subject) is not None
    except re.error:
        return matcher == subject


def tool_input(tool: str, arguments: Mapping[str, object], workspace: str) -> dict[str, object]:
    """A call as a hook reads it: their names, and paths in full as they are there."""
    given = claude_arguments(tool, arguments)
    path = given.get("file_path")
    if isinstance(path, str) and path and not path.startswith(("/", "~")) and not re.match(r"[A-Za-z]:[\\/]", path):
        given["file_path"] = f"{workspace}/{path}"
    return {"tool_name": claude_name(tool), "tool_input": given}


def event_fields(event: HookEvent, subject: str, more: Mapping[str, object]) -> dict[str, object]:
    """What a hook is told of an event besides the session; `subject` is what its matcher is held against."""
    named: dict[HookEvent, str] = {
        "session_started": "source",
        "session_finished": "reason",
        "compaction_started": "trigger",
        "approval_requested": "notification_type",
    }
    return {"hook_event_name": claude_event(event), **({named[event]: subject} if event in named else {}), **more}


def verdict_of(event: HookEvent, tool: str, exit_code: int, out: str, err: str) -> HookVerdict:
    """What a command that ended says. An exit code of 2 blocks, whatever else it wrote; a JSON object on standard output says it
    in full; other text is context where the event takes it (a start, a message of the person)."""
    if exit_code == BLOCKING_EXIT_CODE:
        return HookVerdict(blocks=True, reason=(err or out).strip())
    answer = _object(out) if exit_code == 0 else None
    if answer is None:
        told = event in {"session_started", "turn_started"} and exit_code == 0
        return HookVerdict(context=out.strip() if told else "")
    found: object = answer.get("hookSpecificOutput")
    own = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    decision = _stripped_text(own.get("permissionDecision")) or {"block": "deny"}.get(
        _stripped_text(answer.get("decision")), ""
    )
    reason = _stripped_text(own.get("permissionDecisionReason")) or _stripped_text(answer.get("reason"))
    stops = answer.get("continue") is False
    given: object = own.get("updatedInput")
    changed = cast("dict[str, object]", given) if isinstance(given, dict) else None
    return HookVerdict(
        blocks=decision == "deny",
        asks=decision == "ask",
        reason=_stripped_text(answer.get("stopReason")) or reason if stops else reason,
        stops=stops,
        arguments=None if changed is None else our_arguments(tool, changed),
        context=_stripped_text(own.get("additionalContext")) or _stripped_text(answer.get("additionalContext")),
        tells_person=_stripped_text(answer.get("systemMessage")),
    )


def _object(text: str) -> dict[str, Any] | None:
    text = text.strip()
    if not text.startswith("{") or len(text) > MAX_ANSWER_CHARS:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return None


def _stripped_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
