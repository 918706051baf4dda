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
    "PostToolUseFailure": "tool_failed",
    "PostToolBatch": "round_finished",
    "PermissionRequest": "approval_needed",
    "UserPromptExpansion": "command_called",
    "SubagentStart": "subagent_started",
    "SubagentStop": "subagent_finished",
    "StopFailure": "error",
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

CLAUDE_AGENTS: Mapping[str, str] = {"": "general-purpose", "explore": "Explore"}
"""Their name of a sub-agent of ours."""

CLAUDE_ERRORS: Mapping[str, str] = {
    "rate_limit": "rate_limit",
    "auth": "authentication_failed",
    "quota": "billing_error",
    "bad_request": "invalid_request",
    "overflow": "invalid_request",
    "prefix_changed": "invalid_request",
    "content_filter": "invalid_request",
    "not_found": "model_not_found",
    "server": "server_error",
    "timeout": "server_error",
    "connection": "server_error",
    "interrupted": "server_error",
    "empty": "unknown",
}
"""Their name of what was wrong with a model call, by kind (`ModelError.kind`)."""

OF_THE_PERSON: frozenset[HookEvent] = frozenset(
    {"session_started", "session_finished", "turn_started", "turn_finished"}
)
"""What there is with a person only: a sub-agent has a start and an end of its own."""

BLOCKING_EXIT_CODE = 2
"""The exit code by which a hook blocks; what it wrote on standard error is the reason."""

MAX_ANSWER_CHARS = 200_000
"""Characters of an answer that are read as JSON."""

_EVENT_NAMES = {ours: theirs for theirs, ours in CLAUDE_EVENTS.items()}


def claude_event(event: HookEvent) -> str:
    """Their name of an event of ours."""
    return _EVENT_NAMES.get(event, event)


def matches(matcher: str, subject: str) -> bool:
    """Whether a matcher is for this tool (by their name), start, compaction or notification: a list of names where it is made of
    letters, digits and `_ - , |`, else a regular expression that may stand anywhere in the name. What has no subject is matched
    by all; one that is no regular expression is taken as the name itself."""
    if matcher in {"", "*"} or not subject:
        return True
    names = {subject, *(old for old, new in _RENAMED.items() if new == subject)}
    if _NAMES.fullmatch(matcher):
        return not names.isdisjoint(name.strip() for name in re.split(r"[|,]", matcher))
    try:
        return any(re.search(matcher, name) for name in names)
    except re.error:
        return matcher in names


_NAMES = re.compile(r"[\w ,|-]+", re.ASCII)
_RENAMED = {"Task": "Agent"}
"""What matchers may call a tool still that has another name by now."""


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
        "command_called": "command_name",
        "subagent_started": "agent_type",
        "subagent_finished": "agent_type",
        "error": "error",
    }
    return {"hook_event_name": claude_event(event), **({named[event]: subject} if event in named else {}), **more}


def verdict_of(event: HookEvent, tool: str, exit_code: int, out: str, err: str, *, ours: bool = False) -> HookVerdict:
    """What a command that ended says: a JSON object on standard output says it in full, whatever the exit code. One of 2 blocks
    besides (a question only in the form of `ours`), and what stands on standard error is the reason where the object gives none.
    Other text is context where the event takes it (a start, a message of the person)."""
    blocks = exit_code == BLOCKING_EXIT_CODE and (ours or event != "approval_needed")
    answer = answer_in(out)
    if answer is None:
        told = event in _TAKES_WORDS and exit_code == 0
        return HookVerdict(
            blocks=blocks, reason=(err or out).strip() if blocks else "", context=out.strip() if told else ""
        )
    own = _fields(answer.get("hookSpecificOutput"))
    decision = _stripped_text(own.get("permissionDecision"))
    if event == "approval_needed":
        decided = _fields(own.get("decision"))
        decision, reason = _stripped_text(decided.get("behavior")), _stripped_text(decided.get("message"))
        stops = decision == "deny" and decided.get("interrupt") is True
    else:
        decision = decision or {"block": "deny"}.get(_stripped_text(answer.get("decision")), "")
        reason, stops = (
            _stripped_text(own.get("permissionDecisionReason")) or _stripped_text(answer.get("reason")),
            False,
        )
    stops = stops or answer.get("continue") is False
    given: object = own.get("updatedInput")
    changed = cast("dict[str, object]", given) if isinstance(given, dict) else None
    if blocks and decision != "deny":
        reason = err.strip()
    return HookVerdict(
        blocks=blocks or decision == "deny",
        asks=decision == "ask",
        reason=(_stripped_text(answer.get("stopReason")) or reason) if stops else reason,
        stops=stops,
        arguments=None if changed is None else our_arguments(tool, changed),
        context=_stripped_text(own.get("additionalContext")) or _stripped_text(answer.get("additionalContext")),
        tells_person=_stripped_text(answer.get("systemMessage")),
    )


_TAKES_WORDS: frozenset[HookEvent] = frozenset({"session_started", "turn_started", "command_called"})


def answer_in(text: str) -> dict[str, Any] | None:
    """The JSON object that a command printed; None for other text."""
    text = text.strip()
    if not text.startswith("{") or len(text) > MAX_ANSWER_CHARS:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return None


def _stripped_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
