"""Hooks in Claude Code's format, so that hooks made for it work here: the JSON that their commands get as input, and what their
exit code and their JSON answer mean. Pure."""

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
"""Our hook event for each of Claude Code's."""

CLAUDE_MODES: Mapping[Mode, str] = {
    "ask": "default",
    "read-only": "plan",
    "plan": "plan",
    "auto-edit": "acceptEdits",
    "all": "bypassPermissions",
}
"""Claude Code's permission mode that is nearest to each of ours."""

CLAUDE_AGENTS: Mapping[str, str] = {"": "general-purpose", "explore": "Explore"}
"""Claude Code's name of those of our sub-agents that it has, too."""

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
"""Claude Code's name of a failure of a model call, by our `ModelError.kind`."""

OF_THE_PERSON: frozenset[HookEvent] = frozenset(
    {"session_started", "session_finished", "turn_started", "turn_finished"}
)
"""Events of a person's session that hooks in this format get for that only: for a sub-agent they get its own start and end."""

BLOCKING_EXIT_CODE = 2
"""The exit code by which a hook blocks; what it wrote on standard error is the reason."""

MAX_ANSWER_CHARS = 200_000
"""The longest output that is parsed as JSON."""

_EVENT_NAMES = {ours: theirs for theirs, ours in CLAUDE_EVENTS.items()}


def claude_event(event: HookEvent) -> str:
    """Claude Code's name of one of our events."""
    return _EVENT_NAMES.get(event, event)


def matches(matcher: str, subject: str) -> bool:
    """Whether a hook's matcher accepts a subject: the name (Claude Code's) of a tool, or the kind of a start, compaction or
    notification.

    A matcher of letters, digits and `_ - , |` is a list of names; any other is a regular expression that is searched for in the
    name, or the name itself where it is not a valid one. An empty matcher accepts everything, and an event without a subject is
    accepted by all.
    """
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
"""Old names of tools that matchers may still use, with the present ones."""


def tool_input(tool: str, arguments: Mapping[str, object], workspace: str) -> dict[str, object]:
    """The fields that describe a tool call to a hook: with Claude Code's names, and with absolute paths, as it gives them."""
    given = claude_arguments(tool, arguments)
    path = given.get("file_path")
    if isinstance(path, str) and path and not path.startswith(("/", "~")) and not re.match(r"[A-Za-z]:[\\/]", path):
        given["file_path"] = f"{workspace}/{path}"
    return {"tool_name": claude_name(tool), "tool_input": given}


def event_fields(event: HookEvent, subject: str, more: Mapping[str, object]) -> dict[str, object]:
    """The fields that describe an event to a hook, without those about the session. `subject` is what its matcher was compared
    with; `more` are further fields."""
    subject_fields: dict[HookEvent, str] = {
        "session_started": "source",
        "session_finished": "reason",
        "compaction_started": "trigger",
        "approval_requested": "notification_type",
        "command_called": "command_name",
        "subagent_started": "agent_type",
        "subagent_finished": "agent_type",
        "error": "error",
    }
    named = {subject_fields[event]: subject} if event in subject_fields else {}
    return {"hook_event_name": claude_event(event), **named, **more}


def verdict_of(event: HookEvent, tool: str, exit_code: int, out: str, err: str, *, ours: bool = False) -> HookVerdict:
    """The answer that a command gave by its exit code and what it wrote to standard output (`out`) and standard error (`err`).

    A JSON object on standard output counts whatever the exit code. Exit code 2 blocks besides, with standard error as the reason
    where the object gives none; an approval is blocked by it only for a hook in our own format (`ours`). Other text on standard
    output becomes context for the model, at events that take one (a start, a message of the person). `tool` is our name of the
    tool of the call, if any.
    """
    blocks = exit_code == BLOCKING_EXIT_CODE and (ours or event != "approval_needed")
    answer = answer_in(out)
    if answer is None:
        is_context = event in _TAKES_CONTEXT and exit_code == 0
        return HookVerdict(
            blocks=blocks, reason=(err or out).strip() if blocks else "", context=out.strip() if is_context else ""
        )
    own = _fields(answer.get("hookSpecificOutput"))
    decision = _stripped_text(own.get("permissionDecision"))
    if event == "approval_needed":
        permission = _fields(own.get("decision"))
        decision, reason = _stripped_text(permission.get("behavior")), _stripped_text(permission.get("message"))
        stops = decision == "deny" and permission.get("interrupt") is True
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


_TAKES_CONTEXT: frozenset[HookEvent] = frozenset({"session_started", "turn_started", "command_called"})
"""Events at which plain text on standard output becomes context for the model."""


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
