"""Judges whether a call may run, from its access request, the permission mode and the rules. Pure: asking the person is left to
`approvals`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxchat.core.harm import harms
from ctxchat.core.patterns import Covers, covers_path, covers_text, covers_words, escaped, may_lie_below, written
from ctxchat.core.permissions import SHELL_FOLDER, AccessRequest, Grant, Mode, Part, Rule, parse_rule
from ctxchat.core.sanitize import has_lookalikes

WRITES = "write_file"
"""The tool whose rules also hold for a command's redirections, and for edits: who may replace a file may change a part of it."""

EDITS = "edit_file"

READS = "read_file"
"""The tool whose deny rules hold for everything that reads files: other tools, and commands."""


COMMANDS, COMMAND_INPUT = "shell", "job"
"""The shell tool, and the tool that writes to a running command: its text may be a command line, so deny rules of the shell
hold for it as well."""


class Judgement(msgspec.Struct, frozen=True):
    """The verdict on a call, with what decided it in `rule`: rules, the mode, or the kind of access. `reason` tells the model why
    it is denied, or the person why no rule was enough. `allowance` is what the rules let a command do beyond its sandbox.
    `read_only`: the command is allowed because it only reads, and must be run so that it can do nothing else."""

    verdict: Literal["allow", "ask", "deny"]
    rule: str
    reason: str = ""
    allowance: Grant = Grant()
    read_only: bool = False


def judge(tool: str, access_request: AccessRequest, mode: Mode, rules: Sequence[Rule], folder: str = "") -> Judgement:
    """The verdict on one call of `tool`. Deny rules come first. Then reading inside the workspace `folder` is allowed; a command
    that only reads is too, except in mode `read-only`, if the sandbox can enforce that. The rest is decided by the mode, then by
    the rules, then by the person. Guarded places are always asked about, except in mode `all` and where the mode denies the
    call."""
    applicable = [rule for rule in rules if rule.folder in {"", folder}]
    denying = [rule for rule in applicable if rule.denies]
    forbidden = [(rule, _forbids(rule, tool, access_request, folder)) for rule in denying]
    if by := next((rule for rule, covered in forbidden if covered == "yes"), None):
        return Judgement(
            "deny", by.text, f"The rule `{by.text}` forbids this: {tool} was not run. Do not try it another way."
        )
    doubt = next((rule for rule, covered in forbidden if covered == "maybe"), None)
    if doubt and mode in {"auto-edit", "all"}:
        mode = "ask"  # it cannot be told whether the rule forbids this call, so no mode may wave it through
    allowing = [rule for rule in applicable if not rule.denies]
    judgement = _by_mode(tool, access_request, mode) or _by_rules(tool, access_request, mode, allowing, folder)
    if doubt and judgement.verdict == "allow":
        judgement = Judgement("ask", "", f"It may be what the rule `{doubt.text}` forbids.")
    if access_request.access == "run" and not judgement.read_only:
        judgement = msgspec.structs.replace(judgement, allowance=judgement.allowance | _folders(allowing))
    if (
        judgement.verdict == "allow"
        and mode != "all"
        and judgement.allowance | access_request.asks != judgement.allowance
    ):
        judgement = Judgement("ask", "", "It asks for more than a rule gives it.", _folders(allowing))
    return judgement


DENIED_BY_MODE = frozenset({"mode read-only", "mode plan"})
"""Values of `Judgement.rule` where the mode denies a call."""

DENIED_BELOW = (
    "The session is read-only: {tool} was not run. Find out what you can by reading, and say in your answer what would have to "
    "change."
)
"""The reason a sub-agent is given when the mode denies its call: nobody waits for a plan from it."""


def _by_mode(tool: str, access_request: AccessRequest, mode: Mode) -> Judgement | None:
    """The verdict where the kind of access or the mode decides alone; None where it does not."""
    if access_request.access == "none" or (access_request.access == "read" and access_request.inside):
        return Judgement("allow", "free")
    if mode == "read-only":
        reason = f"The session is read-only: {tool} was not run. Tell the user what you would have done."
        return Judgement("deny", "mode read-only", reason)
    only_reads = bool(access_request.parts) and all(_reads(part) for part in access_request.parts)
    if (
        access_request.shut_in
        and not access_request.asks
        and mode != "all"
        and only_reads
        and all(map(_free, access_request.parts))
    ):
        return Judgement("allow", "free", read_only=True)
    if mode == "plan" and not only_reads and access_request.access != "read":
        reason = (
            f"The session is in plan mode: {tool} was not run, for only reading is allowed (files, and commands that cannot "
            "write). Look at what you need, then present your plan to the user as your answer; they decide when to carry it out."
        )
        return Judgement("deny", "mode plan", reason)
    if mode == "all":
        return Judgement("allow", "mode all")
    return None


def _by_rules(tool: str, access_request: AccessRequest, mode: Mode, rules: Sequence[Rule], folder: str) -> Judgement:
    """The judgement by the rules that allow: all parts of a call must be allowed."""
    pieces = _pieces(access_request)
    if place := _guarded(access_request):
        return Judgement("ask", "", f"What lies in {place} can run later: no rule allows it.")
    used: list[str] = []
    for piece in pieces:
        by = _allowed(piece, tool, access_request, mode, rules, folder)
        if not by:
            return Judgement("ask", "")
        used += [text for text in by if text != "free"]
    by_rules = [rule for rule in rules if rule.text in used]
    network = bool(by_rules) and all(rule.network for rule in by_rules)
    return Judgement("allow", ", ".join(dict.fromkeys(used)), allowance=Grant(network))


def _folders(rules: Sequence[Rule]) -> Grant:
    """The folders outside the sandbox in which the rules let shell commands write."""
    return Grant(folders=tuple(rule.pattern for rule in rules if rule.tool == SHELL_FOLDER))


def offers(
    tool: str, access_request: AccessRequest, mode: Mode, rules: Sequence[Rule], folder: str = ""
) -> tuple[str, ...]:
    """The choices of rules to offer a person, from one for exactly this call to the widest. Each is one or several rules, one a
    line, which together cover what no rule covers yet. Empty where no rule would be enough, where something would be destroyed,
    and where a program's name looks like another's."""
    named = (piece.words[0].text for part in access_request.parts for piece in part.with_inner if piece.words)
    if _guarded(access_request) or harms(access_request.parts) or any(map(has_lookalikes, named)):
        return ()
    if not access_request.parts:
        patterns = access_request.patterns or (escaped(access_request.target),)
        return tuple(Rule(tool, pattern).text for pattern in patterns if parse_rule(Rule(tool, pattern).text))
    held = [rule for rule in rules if rule.folder in {"", folder} and not rule.denies]
    network = access_request.asks.network
    serving = [rule for rule in held if rule.network or rule.tool != tool] if network else held
    open_ = [part for part in access_request.parts if not _allowed(part, tool, access_request, mode, serving, folder)]
    more = [name for name in access_request.asks.folders if name not in _folders(held).folders]
    if not (open_ or more) or not all(part.patterns for part in open_):
        return ()
    also = [Rule(SHELL_FOLDER, name).text for name in more if parse_rule(Rule(SHELL_FOLDER, name).text)]

    def rule_text(part: Part, width: int) -> str:
        pattern = part.patterns[min(width, len(part.patterns) - 1)]
        return (Rule(WRITES, pattern) if part.writes else Rule(tool, pattern, network=network)).text

    widths = range(max((len(part.patterns) for part in open_), default=1))
    return tuple(dict.fromkeys("\n".join(dict.fromkeys([*(rule_text(p, n) for p in open_), *also])) for n in widths))


def allowed_by(
    tool: str, access_request: AccessRequest, mode: Mode, rules: Sequence[Rule], folder: str = ""
) -> tuple[tuple[str, str], ...]:
    """Each part of a command as text, with what allows it: rules, the mode or `free`, empty where nothing does. Where the mode
    denies the whole command, nothing allows any part."""
    if by_mode := _by_mode(tool, access_request, mode):
        allows = "" if by_mode.verdict == "deny" else by_mode.rule
        return tuple((_part_name(part), allows) for part in access_request.parts)
    held = [rule for rule in rules if rule.folder in {"", folder} and not rule.denies]
    return tuple(
        (
            _part_name(part),
            ""
            if any(piece.guarded for piece in part.with_inner)
            else ", ".join(_allowed(part, tool, access_request, mode, held, folder)),
        )
        for part in access_request.parts
    )


def _part_name(part: Part) -> str:
    return f"> {part.writes}" if part.writes else written(part.words)


_BY_STRICTNESS: tuple[Mode, ...] = ("read-only", "plan", "ask", "auto-edit", "all")


def stricter(one: Mode, other: Mode) -> Mode:
    """The one of two modes that allows less."""
    return one if _BY_STRICTNESS.index(one) <= _BY_STRICTNESS.index(other) else other


def covers(rule: Rule, tool: str, access_request: AccessRequest | Part, folder: str) -> Covers:
    """Whether a rule's pattern covers one access of a call. A command is compared word by word, a path relative to the workspace
    `folder` unless the pattern is absolute."""
    if isinstance(access_request, Part):
        if access_request.words:
            return covers_words(rule.pattern, access_request.words) if rule.tool == tool else "no"
        if rule.tool != WRITES or not access_request.writes:
            return "no"
        target, access = access_request.writes, "write"
    else:
        target, access = access_request.target, access_request.access
        ours = {tool, *([WRITES] if tool == EDITS else []), *([READS] if rule.denies and access == "read" else [])}
        if rule.tool not in ours:
            return "no"
    if access in {"read", "write"}:
        return "yes" if _covers_path(rule, target, folder) else "no"
    if access == "run":  # a command that could not be parsed into parts
        return "yes" if rule.pattern in {"**", escaped(target)} else "no"
    return "yes" if covers_text(rule.pattern, target, stop="/?#@:\\") else "no"


def _covers_path(rule: Rule, target: str, folder: str) -> bool:
    return covers_path(rule.pattern, target, folder, folding=rule.denies)


def _pieces(access_request: AccessRequest) -> Sequence[AccessRequest | Part]:
    return access_request.parts or (access_request,)


def _forbids(rule: Rule, tool: str, access_request: AccessRequest, folder: str) -> Covers:
    """Whether a deny rule covers any part of a call, commands inside commands included."""
    tool = COMMANDS if tool == COMMAND_INPUT and rule.tool == COMMANDS else tool
    pieces = [piece for part in access_request.parts for piece in part.with_inner]
    answers = {covers(rule, tool, piece, folder) for piece in pieces}
    answers |= {_touches(rule, piece, folder, shut_in=access_request.shut_in) for piece in pieces}
    answers.add(covers(rule, tool, access_request, folder) if not access_request.parts else "no")
    return "yes" if "yes" in answers else "maybe" if "maybe" in answers else "no"


def _touches(rule: Rule, part: Part, folder: str, *, shut_in: bool) -> Covers:
    """Whether a deny rule for paths covers a file, or a whole folder, that a command names. `maybe` where a word of the command
    may name any path, or the command goes through a folder that may contain such a file: not in the sandbox (`shut_in`), which
    hides forbidden files."""
    if rule.tool not in {READS, *(() if part.reads else (WRITES, EDITS))}:
        return "no"
    if any(_covers_path(rule, path, folder) or _covers_path(rule, f"{path}/any", folder) for path in part.paths):
        return "yes"
    goes_through = part.below or (not part.reads and bool(part.paths))
    places = part.paths or (folder,)
    if goes_through and not shut_in and any(may_lie_below(rule.pattern, path, folder) for path in places):
        return "maybe"
    return "maybe" if any(not word.known for word in part.words) and not (part.reads and shut_in) else "no"


def _guarded(access_request: AccessRequest) -> str:
    places = (piece.guarded for part in access_request.parts for piece in part.with_inner)
    return access_request.guarded or next(filter(None, places), "")


def _allowed(
    piece: AccessRequest | Part,
    tool: str,
    access_request: AccessRequest,
    mode: Mode,
    rules: Sequence[Rule],
    folder: str,
) -> tuple[str, ...]:
    """What allows one access of a call: texts of rules, the mode, or `free`; empty where the person has to be asked."""
    if isinstance(piece, Part) and _free(piece) and _is_free_in(piece, access_request):
        return ("free",)
    writes = piece.writes if isinstance(piece, Part) else access_request.access == "write"
    if mode == "auto-edit" and writes and piece.inside:
        return ("mode auto-edit",)
    if by := next(
        (rule.text for rule in rules if _holds(rule, piece) and covers(rule, tool, piece, folder) == "yes"), ""
    ):
        return (by,)
    if isinstance(piece, Part) and piece.through and piece.inner:
        below = [_allowed(inner, tool, access_request, mode, rules, folder) for inner in piece.inner]
        return tuple(text for by in below for text in by) if all(below) else ()
    return ()


def _holds(rule: Rule, piece: AccessRequest | Part) -> bool:
    """Whether a rule can allow this at all: where the shell may expand a word to anything, only a rule for exactly this can."""
    return isinstance(piece, AccessRequest) or not piece.open or rule.pattern in {"**", *piece.patterns}


def _is_free_in(part: Part, access_request: AccessRequest) -> bool:
    """Whether a part that only reads is free in its command line. If all parts only read, the line is run in a sandbox that
    forbids writing. Beside a part that writes, code of the project that a reading part loads (git's filters, a linter's plug-ins)
    could write as well, so it must load none."""
    return access_request.shut_in if all(map(_free, access_request.parts)) else _is_plain(part)


def _is_plain(part: Part) -> bool:
    return part.plain or (part.through and bool(part.inner) and all(map(_is_plain, part.inner)))


def _reads(part: Part) -> bool:
    return part.reads or (part.through and bool(part.inner) and all(_reads(inner) for inner in part.inner))


def _free(part: Part) -> bool:
    """True for a part that only reads, inside the workspace, and at no guarded place; a part that only runs others is what these
    are."""
    if part.guarded:
        return False
    return (part.reads and part.inside) or (
        part.through and bool(part.inner) and all(_free(inner) for inner in part.inner)
    )
