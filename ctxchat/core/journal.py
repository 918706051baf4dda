"""What is written down, one entry for each sealed thing, and the session as the fold of its entries.

The journal is append-only: an undo is an entry, not an erasure. Knows no database.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from ctxchat.core.cache import READ_SHARE, break_of, held_after
from ctxchat.core.cache_state import CacheBreak, HeldPrefix
from ctxchat.core.calibration import MAX_RATE, MAX_TOKENS, Anchor, Calibration, most_tokens
from ctxchat.core.errors import LedgerError
from ctxchat.core.events import Usage
from ctxchat.core.file_changes import Checkpoint
from ctxchat.core.head import Head
from ctxchat.core.hooks import Tally
from ctxchat.core.ledger import Change, DeferredKind, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.prefix_break import PrefixBreak
from ctxchat.core.prefix_guard import SentPrefix
from ctxchat.core.prepared import Prepared
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.spending import Purpose, Spending
from ctxchat.core.usage import MAX_HIDDEN_THOUGHT_TOKENS, dollars


class Sealed(msgspec.Struct, frozen=True, tag="sealed", omit_defaults=True):
    """Groups that are now part of the record; `imported`: from a file, which an export gives back as it was."""

    groups: tuple[Group, ...]
    imported: bool = False


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """A change is in force. `scale` is what the gauge said of the view before, for a token of our own estimate of that."""

    change: Change
    scale: float = 1.0


class Undone(msgspec.Struct, frozen=True, tag="undone"):
    """A change is no longer in force; `scale` as of one that is."""

    change: str
    at: str = ""
    scale: float = 1.0


class Measured(msgspec.Struct, frozen=True, tag="measured", omit_defaults=True):
    """A model's reply was counted. `used` is what the gauge showed then, in tokens; `turn_end` marks the last of a turn; `cut` is
    what the server seems to have left out of the prompt in silence; `parts` are tokens by section, as the gauge showed them.
    `sent` is what is remembered of the request, `broke` where its beginning was not that of the one before, `cache_miss` the
    server's own reason for not reading its cache; `prefill` the tokens a second in which a server of one's own read the prompt.
    """

    model: str
    usage: Usage
    used: int
    anchor: Anchor | None = None
    calibration: Calibration = Calibration()
    at: str = ""
    turn_end: bool = False
    cut: int = 0
    parts: dict[str, int] = {}
    sent: SentPrefix | None = None
    broke: PrefixBreak | None = None
    cache_miss: str = ""
    prefill: float = 0.0


class CompactionBegun(msgspec.Struct, frozen=True, tag="pass_started", omit_defaults=True):
    """A compaction began. Its end is a CompactionFinished, or the Changed that it made; without one it counts for nothing (a
    crash, a kill)."""

    id: str
    at: str = ""
    reason: Reason = "auto"
    strategy: str = ""


class CompactionFinished(msgspec.Struct, frozen=True, tag="pass_ended", omit_defaults=True):
    """A compaction ended without a change; older versions wrote it, with `at`, before the change as well."""

    result: CompactionRecord
    at: str = ""


class Deferred(msgspec.Struct, frozen=True, tag="deferred", omit_defaults=True):
    """The person wants this done to a group with the next compaction and not before, since it changes what was sent; an empty
    `kind` takes that back."""

    group: str
    kind: DeferredKind | Literal[""] = ""


class SetupDeferred(msgspec.Struct, frozen=True, tag="setup_deferred", omit_defaults=True):
    """What the person set otherwise, and what this conversation does without until its next compaction, since its requests would
    begin anew: options of the settings by their key, each with the value that goes on to hold here; the agent and the level of
    effort that come then. It takes the place of what was put off before."""

    settings: dict[str, Any] = {}
    agent: str | None = None
    effort: str | None = None

    def __bool__(self) -> bool:
        return bool(self.words)

    @property
    def words(self) -> str:
        """What is put off, in a line: `agent reviewer, effort high, tools.web`; empty for nothing."""
        agent = [] if self.agent is None else [f"agent {self.agent}" if self.agent else "the usual agent"]
        effort = [] if self.effort is None else [f"effort {self.effort or 'as the settings say'}"]
        return ", ".join([*agent, *effort, *self.settings])


class HeadSet(msgspec.Struct, frozen=True, tag="head_set", omit_defaults=True):
    """Requests begin with this head from now on: the first one of the session, or another agent or other instructions. `tokens`
    are what it holds by the counter of the model then; 0 where nobody counted."""

    head: Head
    tokens: int = 0


class ThoughtsLeftOut(msgspec.Struct, frozen=True, tag="thoughts_left_out"):
    """The reasoning of messages from number `since` up to `until` is no longer sent back: what stands before it has changed."""

    since: int
    until: int


class Named(msgspec.Struct, frozen=True, tag="named"):
    """The session has a new title."""

    title: str


class Spent(msgspec.Struct, frozen=True, tag="spent"):
    """A model call beside the conversation was paid for: a summary made ahead, or one that was only drafted; what a sub-agent
    did. US dollars."""

    model: str
    cost_usd: float
    purpose: Purpose = "other"


class PrefixRead(msgspec.Struct, frozen=True, tag="prefix_read"):
    """A call beside the conversation began as its last request did: `cached` tokens of it were read from its server's cache, at
    `started` (ISO 8601), and their life begins anew; where that is less than was held, the rest is gone."""

    model: str
    started: str
    cached: int


class WindowLearned(msgspec.Struct, frozen=True, tag="window_learned", omit_defaults=True):
    """What a server did taught that its window is `tokens`; 0 takes that back. It refused a prompt that should have fitted, and
    where it did not say what it holds, `refused` is how long that prompt was and `tokens` a guess; or it `took` more than was
    assumed, and holds so much at least.

    It corrects the claim of `believed` tokens and no other: a server that says something else later is asked anew.
    """

    model: str
    tokens: int
    believed: int = 0
    refused: int = 0
    took: bool = False


class ModelChosen(msgspec.Struct, frozen=True, tag="model_chosen"):
    """The session goes on with this model, at this address: empty for where its provider is, None where nobody wrote it down."""

    model: str
    address: str | None = None


class AgentChosen(msgspec.Struct, frozen=True, tag="agent_chosen"):
    """The session goes on with this agent of the settings; empty for the usual one."""

    agent: str


class EffortChosen(msgspec.Struct, frozen=True, tag="effort_chosen"):
    """The session goes on with this level of effort; empty for what the settings say."""

    effort: str


class HookFired(msgspec.Struct, frozen=True, tag="hook_fired"):
    """A hook with a cooldown or a limit did something, in this turn."""

    hook: str
    turn: int
    at: str = ""


class BackoffState(msgspec.Struct, frozen=True, tag="automatic", omit_defaults=True):
    """What past compactions and the person's word leave of automatic compaction, as in `agent.backoff.Backoff`: it outlives a
    restart."""

    failures: int = 0
    refills: int = 0
    last_turn: int = -10
    rest_until: int = 0


class ToolRefused(msgspec.Struct, frozen=True, tag="tool_refused"):
    """A model's server refused the description of a tool, which that model is not told of any more in this session; one that is
    `reduced` it is told of with its arguments in words."""

    model: str
    tool: str
    reduced: bool = False


class Continues(msgspec.Struct, frozen=True, tag="continues"):
    """The session goes on with the work of another, which was handed off to it."""

    session: str


Record = (
    Sealed
    | Changed
    | Undone
    | Measured
    | CompactionBegun
    | CompactionFinished
    | Named
    | ModelChosen
    | AgentChosen
    | EffortChosen
    | HookFired
    | Spent
    | PrefixRead
    | Prepared
    | WindowLearned
    | Checkpoint
    | Continues
    | ToolRefused
    | BackoffState
    | HeadSet
    | ThoughtsLeftOut
    | Deferred
    | SetupDeferred
)


class Partial(msgspec.Struct, frozen=True, omit_defaults=True):
    """A round that is not sealed yet, kept so that a kill loses nothing: what the model said so far, results so far, and the
    entries that are written down with it (what it cost)."""

    assistant: Message
    results: tuple[Message, ...] = ()
    turn: int = 0
    noted: tuple[Record, ...] = ()


MAX_COUNTED_VIEWS = 8
"""Views whose count is remembered after a change."""


MAX_CACHE_BREAKS = 100
"""Breaks of the cache that are remembered of a session."""


class SessionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as its journal says. `fills` are tokens used at the end of each turn that was counted at its end, `filled` the
    numbers of those turns; `skipped` are entries that could not be taken, in words; `agent` is None where none was ever chosen;
    `used` and `parts` (by section) are what the gauge showed last; `scale` is that of the newest change,
    until a server counts; `compactions` are all
    that ended, and `endings` how many `fills` there were by then, one to one; `windows` what was
    learned of models and `hooks` how often hooks with a limit did something, both by name; `cut` is the newest Measured's, for as
    long as the same view goes to the same model; `checkpoints` what was done to files; `imported` is the last place in the
    record that came from a file, 0 for none; `continues` the id of the session whose work was handed off to this one; `sent` is
    the last request to each model, by its name, `held` what its server was left holding and `prefill` the tokens a second in
    which it reads a prompt; `cache_breaks` are the newest requests of which a server did not read what it might have,
    `replied` the tokens of the last reply, `spending` what was paid for what; `refused_tools` those that a model is not told
    of, by model, `reduced_tools` those whose arguments it has in words; `prepared` the summary that was made ahead last,
    whether it still fits or not; `deferred` what waits for the next compaction, by group; `asked_at` where each model was
    asked last; `counted` the newest count of each view that a change ended, by the changes in force in it.
    """

    ledger: Ledger = Ledger()
    title: str = ""
    model: str = ""
    address: str | None = None
    anchor: Anchor | None = None
    scale: float = 1.0
    calibrations: dict[str, Calibration] = {}
    fills: tuple[int, ...] = ()
    filled: tuple[int, ...] = ()
    cost_usd: float = 0.0
    used: int = 0
    parts: dict[str, int] = {}
    cached: int = 0
    cut: int = 0
    compactions: tuple[CompactionRecord, ...] = ()
    windows: dict[str, WindowLearned] = {}
    skipped: tuple[str, ...] = ()
    hooks: dict[str, Tally] = {}
    endings: tuple[int, ...] = ()
    undone: tuple[Change, ...] = ()
    agent: str | None = None
    effort: str = ""
    continues: str = ""
    refused_tools: dict[str, tuple[str, ...]] = {}
    reduced_tools: dict[str, tuple[str, ...]] = {}
    automatic: BackoffState = BackoffState()
    checkpoints: tuple[Checkpoint, ...] = ()
    imported: int = 0
    sent: dict[str, SentPrefix] = {}
    held: dict[str, tuple[HeldPrefix, ...]] = {}
    prefill: dict[str, float] = {}
    cache_breaks: tuple[CacheBreak, ...] = ()
    replied: int = 0
    spending: Spending = Spending()
    prepared: Prepared | None = None
    deferred: dict[str, DeferredKind] = {}
    setup_deferred: SetupDeferred = SetupDeferred()
    asked_at: dict[str, str] = {}
    counted: dict[tuple[str, ...], Anchor] = {}

    def counted_of(self, ledger: Ledger) -> Anchor | None:
        """What a server counted of the view with just these changes, before another change ended it."""
        return self.counted.get(_ids(ledger)) if self.counted else None


def fold(records: Iterable[Record], state: SessionState | None = None) -> SessionState:
    """The state after these entries. An entry that does not fit (a damaged journal) is skipped and named, the rest stands."""
    state = state or SessionState()
    ledger = state.ledger
    more: dict[str, Group] = {}  # taken in together, since a journal has many
    imported = state.imported
    for record in records:
        if isinstance(record, Sealed):
            more.update((g.id, g) for g in record.groups if g.id not in more and not ledger.holds(g.id))
            if record.imported:
                imported = max(imported, *(m.seq for g in record.groups for m in g.messages))
            continue
        if more and isinstance(record, Changed | Undone | HeadSet | ThoughtsLeftOut):
            ledger, more = ledger.append(*more.values()), {}
        try:
            ledger, state = step(ledger, state, record)
        except LedgerError as problem:
            skipped = (*state.skipped, f"{type(record).__name__.lower()}: {problem.text}")
            state = msgspec.structs.replace(state, skipped=skipped)
        if isinstance(record, Measured) and record.turn_end:
            turn = next(reversed(more.values())).turn if more else ledger.turn
            state = msgspec.structs.replace(state, filled=(*state.filled, turn))
    ledger = ledger.append(*more.values()) if more else ledger
    return msgspec.structs.replace(state, ledger=ledger, imported=imported)


def step(ledger: Ledger, state: SessionState, record: Record) -> tuple[Ledger, SessionState]:
    """One entry taken in. Raises LedgerError where it does not fit."""
    replace = msgspec.structs.replace
    match record:
        case Sealed(groups=groups):
            return ledger.append(*groups), state
        case Changed():
            return _changed(ledger, state, record)
        case Undone(change=name, scale=scale):
            undone = tuple(c for c in ledger.changes if c.id == name)
            back = ledger.undo(name)
            return back, replace(_other_view(state, ledger, back, scale), undone=state.undone + undone)
        case Measured():
            return ledger, _measured(state, record)
        case CompactionBegun():
            return ledger, state
        case CompactionFinished(result=result, at=at):
            return ledger, _ended(state, replace(result, at=result.at or at))
        case Named(title=title):
            return ledger, replace(state, title=title)
        case ModelChosen(model=model, address=address):
            return ledger, _moved(replace(state, model=model, address=address, cut=0, scale=1.0), model, address)
        case AgentChosen(agent=agent):
            return ledger, replace(state, agent=agent)
        case EffortChosen(effort=effort):
            return ledger, replace(state, effort=effort)
        case Spent(model=model, cost_usd=cost, purpose=purpose):
            return ledger, _booked(state, _paid(cost), model, purpose)
        case PrefixRead(model=model, started=started, cached=cached):
            return ledger, _renewed(state, model, started, cached)
        case Prepared():
            return ledger, replace(state, prepared=record)
        case WindowLearned(model=model):
            return ledger, replace(state, windows={**state.windows, model: record})
        case BackoffState():
            return ledger, replace(state, automatic=record)
        case Deferred(group=group, kind=kind):
            others = {name: each for name, each in state.deferred.items() if name != group}
            return ledger, replace(state, deferred={**others, group: kind} if kind else others)
        case SetupDeferred():
            return ledger, replace(state, setup_deferred=record)
        case HeadSet(head=head):
            return ledger.with_head(head), state
        case ThoughtsLeftOut(since=since, until=until):
            return ledger.without_thoughts(since, until), state
        case ToolRefused(model=model, tool=tool, reduced=reduced):
            known = state.reduced_tools if reduced else state.refused_tools
            named = {**known, model: tuple(dict.fromkeys((*known.get(model, ()), tool)))}
            return ledger, replace(state, **{"reduced_tools" if reduced else "refused_tools": named})
        case Continues(session=session):
            return ledger, replace(state, continues=session)
        case Checkpoint():
            known = any(c.id == record.id for c in state.checkpoints)
            return ledger, state if known else replace(state, checkpoints=(*state.checkpoints, record))
        case HookFired(hook=hook, turn=turn):
            return ledger, replace(state, hooks={**state.hooks, hook: state.hooks.get(hook, Tally()).count_turn(turn)})


def _changed(ledger: Ledger, state: SessionState, record: Changed) -> tuple[Ledger, SessionState]:
    """A change in force: nothing that was put off for its groups waits any more, and a compaction has ended by it."""
    replace, change = msgspec.structs.replace, record.change
    undone = tuple(c for c in state.undone if c.id != change.id)
    after_it = ledger.apply(change)
    if any(each.id == change.id and each != change for each in state.undone):  # of it only a part is in force again
        state = replace(state, counted={ids: anchor for ids, anchor in state.counted.items() if change.id not in ids})
    state = replace(_other_view(state, ledger, after_it, record.scale), undone=undone)
    if state.deferred:
        changed = {name for edit in change.edits for name in edit.covers}.union(change.pins)
        left = {name: kind for name, kind in state.deferred.items() if name not in changed}
        state = replace(state, deferred=left)
    if change.record is None:
        return after_it, state
    state, after = _ended(state, change.record), change.record.after
    return after_it, replace(state, used=after.used, parts=dict(after.sections)) if after.used else state


def _other_view(state: SessionState, before: Ledger, after: Ledger, scale: float) -> SessionState:
    """A change is made or taken back. A view that was there before, and was counted then, has its count again."""
    counted = state.counted
    if state.anchor:
        newest = [(ids, anchor) for ids, anchor in counted.items() if ids != _ids(before)][1 - MAX_COUNTED_VIEWS :]
        counted = {**dict(newest), _ids(before): state.anchor}
    state = msgspec.structs.replace(state, counted=counted, scale=_sane(scale), cut=0)
    return msgspec.structs.replace(state, anchor=state.counted_of(after))


def _ids(ledger: Ledger) -> tuple[str, ...]:
    return tuple(change.id for change in ledger.changes)


def _measured(state: SessionState, record: Measured) -> SessionState:
    """A reply that was counted. Of figures that cannot be true only their having come counts."""
    replace, usage, true = msgspec.structs.replace, record.usage, _true(record)
    used = record.used if true else state.used
    state = _cached(state, record) if true and record.sent else state
    state = _booked(state, _paid(usage.cost_usd) if true else 0.0, record.model, "replies", record.at)
    if record.turn_end:
        state = replace(state, spending=state.spending.turn_ended())
    return replace(
        state,
        model=state.model or record.model,  # older versions did not write down which model a session began with
        anchor=record.anchor if true else None,
        scale=1.0 if true and record.anchor else state.scale,
        calibrations={**state.calibrations, record.model: record.calibration},
        fills=(*state.fills, used) if record.turn_end else state.fills,
        used=used,
        parts=record.parts if true else state.parts,
        cached=usage.cached if true else 0,
        cut=record.cut if true else 0,
        sent={**state.sent, record.sent.model: record.sent} if record.sent else state.sent,
        replied=usage.completion if true else state.replied,
    )


def _cached(state: SessionState, record: Measured) -> SessionState:
    """What the server is left holding, and what it did not read."""
    sent, usage = record.sent, record.usage
    assert sent is not None
    held, before = state.held.get(sent.model, ()), state.sent.get(sent.model)
    broke = break_of(held, before, sent, usage, record.broke, record.cache_miss, record.at)
    breaks = (*state.cache_breaks, broke)[-MAX_CACHE_BREAKS:] if broke else state.cache_breaks
    prefill = {**state.prefill, sent.model: record.prefill} if record.prefill else state.prefill
    held_now = {**state.held, sent.model: held_after(held, sent, usage)}
    return msgspec.structs.replace(state, held=held_now, cache_breaks=breaks, prefill=prefill)


def _moved(state: SessionState, model: str, address: str | None) -> SessionState:
    """With the model at this address: what another server holds of the requests to it, and how fast that reads, is nothing to
    this one."""
    if address is None:
        return state
    before = state.asked_at.get(model, address)
    state = msgspec.structs.replace(state, asked_at={**state.asked_at, model: address})
    if before == address:
        return state
    held, prefill = ({k: v for k, v in of.items() if k != model} for of in (state.held, state.prefill))
    return msgspec.structs.replace(state, held=held, prefill=prefill)


def _renewed(state: SessionState, model: str, started: str, cached: int) -> SessionState:
    """What the server holds, once it has read it for a call beside the conversation."""
    replace, sent, held = msgspec.structs.replace, state.sent.get(model), state.held.get(model, ())
    if sent is None:
        return state
    if not sent.marked:  # what is marked was written again where it was not read
        held = tuple(each for each in held if each.tokens * READ_SHARE <= cached)
    if any(each.digest == sent.digest and each.tokens * READ_SHARE <= cached for each in held):
        held = held_after(held, replace(sent, started=started), Usage(cached, 0, cached=cached))
    return replace(state, held={**state.held, model: held})


def _ended(state: SessionState, record: CompactionRecord) -> SessionState:
    """A compaction and what it cost. One that is known is told anew: in part undone, or by the change that older versions wrote
    down behind its end."""
    replace = msgspec.structs.replace
    if any(known.id == record.id for known in state.compactions):
        return replace(
            state, compactions=tuple(record if known.id == record.id else known for known in state.compactions)
        )
    cost = max(0.0, _paid(record.cost_usd) - _paid(record.booked_usd))
    compactions, endings = (*state.compactions, record), (*state.endings, len(state.fills))
    state = _booked(state, cost, record.model, "summaries", record.at)
    return replace(state, compactions=compactions, endings=endings)


def _booked(state: SessionState, usd: float, model: str, purpose: Purpose, at: str = "") -> SessionState:
    """What was paid, in the sum and in its parts."""
    spending = state.spending.paid(usd, model, purpose, at)
    return msgspec.structs.replace(state, cost_usd=state.cost_usd + usd, spending=spending)


def without_end(records: Iterable[Record]) -> dict[str, CompactionBegun]:
    """The compactions, by id, that began and have no end among these entries."""
    open_: dict[str, CompactionBegun] = {}
    for record in records:
        match record:
            case CompactionBegun(id=id):
                open_[id] = record
            case CompactionFinished(result=result):
                open_.pop(result.id, None)
            case Changed(change=change):
                open_.pop(change.id, None)
            case _:
                pass
    return open_


def _true(record: Measured) -> bool:
    """False for what was written down when a server's senseless figures were still believed."""
    anchor, counted = record.anchor, max(record.usage.prompt, record.usage.completion, record.used)
    if not 0 <= counted <= MAX_TOKENS or not 0 <= record.usage.cached <= MAX_TOKENS:
        return False
    return anchor is None or 0 <= anchor.tokens <= most_tokens(anchor.mix.raw) + MAX_HIDDEN_THOUGHT_TOKENS


def _sane(scale: float) -> float:
    """No server counts further from our estimate than this."""
    return min(MAX_RATE, max(1 / MAX_RATE, scale))


def _paid(cost: float) -> float:
    return dollars(cost) or 0.0
