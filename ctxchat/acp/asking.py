"""Turns approvals into the protocol's permission requests, and the chosen option back into an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from ctxchat.core.events import ApprovalRequested
from ctxchat.core.permissions import Answer, Grant
from ctxchat.core.sanitize import visible

Kind = Literal["allow_once", "allow_always", "reject_once"]

MAX_RULE_CHARS = 300
"""Most characters of a rule that is offered: a rule must be shown whole, and a button holds no more."""

DENIED = Answer("deny")


class PermissionChoice(msgspec.Struct, frozen=True):
    """An option of a permission request, with the answer it stands for."""

    id: str
    name: str
    kind: Kind
    answer: Answer


def choices(request: ApprovalRequested) -> tuple[PermissionChoice, ...]:
    """The options for a call that waits for approval, the narrowest approval first."""
    return (
        PermissionChoice("once", "Allow once", "allow_once", Answer("once")),
        *_beyond(request.allowance),
        *_standing(request.rules),
        PermissionChoice("deny", "Reject", "reject_once", DENIED),
    )


def _beyond(allowance: Grant) -> Iterator[PermissionChoice]:
    """Approvals for once that also grant something outside the sandbox."""
    if allowance.network:
        yield _once("network", "with the network", Grant(network=True))
    for place, folder in enumerate(allowance.folders[:3]):
        yield _once(f"folder-{place}", f"writing in {visible(folder)}", Grant(folders=(folder,)))
    if allowance.outside:
        yield _once("outside", "outside of the sandbox", Grant(outside=True))


def _once(id: str, what: str, allowance: Grant) -> PermissionChoice:
    return PermissionChoice(id, f"Allow once, {what}", "allow_once", Answer("once", allowance=allowance))


def _standing(rules: Sequence[str]) -> Iterator[PermissionChoice]:
    """Lasting approvals: for this session by the widest rule, for good by the narrowest. Only these two, as nobody reads more
    than four answers to a simple question."""
    shown = [rule for rule in rules if len(rule) <= MAX_RULE_CHARS]
    if not shown:
        return
    narrow, wide = (visible(rule).replace("\n", "  +  ") for rule in (shown[0], shown[-1]))
    session, always = Answer("session", rule=shown[-1]), Answer("always", rule=shown[0])
    yield PermissionChoice("session", f"Allow in this session: {wide}", "allow_always", session)
    yield PermissionChoice("always", f"Always allow in this folder: {narrow}", "allow_always", always)


def options(offered: Sequence[PermissionChoice]) -> list[PermissionOption]:
    """The choices as the protocol's options."""
    return [PermissionOption(option_id=each.id, name=each.name, kind=each.kind) for each in offered]


def chosen_id(response: RequestPermissionResponse) -> str:
    """The id of the chosen option; empty where none was chosen."""
    match response.outcome:
        case AllowedOutcome(option_id=id):
            return id
        case DeniedOutcome():
            return ""


def answer_to(offered: Sequence[PermissionChoice], taken: str) -> Answer:
    """The answer of the option with that id; a denial where none has it."""
    return next((each.answer for each in offered if each.id == taken), DENIED)
