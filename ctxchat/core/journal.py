"""The journal of a session: the types of its entries, and the fold that computes the session's state from them.

The journal is append-only: an undo is one more entry, nothing is erased. Knows no database.
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
from ctxchat.core.permissions import Mode
from ctxchat.core.prefix_break import PrefixBreak
from ctxchat.core.prefix_guard import SentPrefix
from ctxchat.core.prepared import Prepared
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.spending import Purpose, Spending
from ctxchat.core.usage import MAX_HIDDEN_THOUGHT_TOKENS, dollars


class Sealed(msgspec.Struct, frozen=True, tag="sealed", omit_defaults=True):
    """Entry: groups were added to the record. `imported`: they came from a file; an export writes them back unchanged."""

    groups: tuple[Group, ...]
    imported: bool = False


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """Entry: a change came into force. `scale` is the gauge's figure for the view before the change, divided by our own estimate
    of that view."""

    change: Change
    scale: float = 1.0


class Undone(msgspec.Struct, frozen=True, tag="undone"):
    """Entry: a change was undone. `scale` as in `Changed`."""

    change: str
    at: str = ""
    scale: float = 1.0


class Measured(msgspec.Struct, frozen=True, tag="measured", omit_defaults=True):
    """Entry: a server counted the tokens of a request and its reply. `used` is what the gauge showed then, in tokens; `turn_end`
    marks the last reply of a turn; `cut` is how many tokens the server seems to have left out of the prompt without saying so;
    `parts` are tokens by section, as the gauge showed them. `sent` is the fingerprint of the request, `broke` where its prefix
    differed from that of the request before, `cache_miss` the server's own reason for not reading its cache, `prefill` the speed
    (tokens a second) at which a local server read the prompt.
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
    """Entry: a compaction began. It ends with a CompactionFinished, or with the Changed that it made; where neither follows (a
    crash, a kill) it is ignored."""

    id: str
    at: str = ""
    reason: Reason = "auto"
    strategy: str = ""


class CompactionFinished(msgspec.Struct, frozen=True, tag="pass_ended", omit_defaults=True):
    """Entry: a compaction ended without a change. Older versions also wrote one, with `at`, before the Changed of a compaction
    that succeeded."""

    result: CompactionRecord
    at: str = ""


class Deferred(msgspec.Struct, frozen=True, tag="deferred", omit_defaults=True):
    """Entry: the person wants a group dropped or shortened with the next compaction, not at once, since that would change what
    was already sent. An empty `kind` cancels the wish."""

    group: str
    kind: DeferredKind | Literal[""] = ""


class SetupDeferred(msgspec.Struct, frozen=True, tag="setup_deferred", omit_defaults=True):
    """Entry: settings that the person changed and that apply to this conversation only from its next compaction on, since they
    change the prefix of its requests. `settings` maps the key of each such option to the old value, which stays in use until
    then; `model`, `agent` and `effort` are the ones to switch to. Replaces every earlier entry of this type."""

    settings: dict[str, Any] = {}
    agent: str | None = None
    effort: str | None = None
    model: str | None = None

    def __bool__(self) -> bool:
        return bool(self.words)

    @property
    def words(self) -> str:
        """The deferred settings on one line: `model a/b, agent reviewer, effort high, tools.web`; empty where there are none."""
        model = [] if self.model is None else [f"model {self.model}"]
        agent = [] if self.agent is None else [f"agent {self.agent}" if self.agent else "the usual agent"]
        effort = [] if self.effort is None else [f"effort {self.effort or 'as the settings say'}"]
        return ", ".join([*model, *agent, *effort, *self.settings])


class HeadSet(msgspec.Struct, frozen=True, tag="head_set", omit_defaults=True):
    """Entry: requests begin with this head from now on. It is the first head of the session, or a new one after the agent or the
    instructions changed, or a server refused tools. `tokens` is its size by the counter of the model in use then; 0 where it was
    not counted."""

    head: Head
    tokens: int = 0


class ThoughtsLeftOut(msgspec.Struct, frozen=True, tag="thoughts_left_out"):
    """Entry: the reasoning of the messages `since` to `until` (numbers, the second excluded) is no longer sent back, since what
    precedes it has changed."""

    since: int
    until: int


class Named(msgspec.Struct, frozen=True, tag="named"):
    """Entry: the session got a new title."""

    title: str


class Spent(msgspec.Struct, frozen=True, tag="spent"):
    """Entry: a model call outside the conversation was paid for, such as a summary made ahead or only drafted, or the work of a
    sub-agent. The cost is in US dollars."""

    model: str
    cost_usd: float
    purpose: Purpose = "other"


class PrefixRead(msgspec.Struct, frozen=True, tag="prefix_read"):
    """Entry: a call outside the conversation had the same prefix as the conversation's last request. Its server read `cached`
    tokens from its cache at `started` (ISO 8601), which renews their lifetime; tokens of the prefix that it did not read are no
    longer cached."""

    model: str
    started: str
    cached: int


class WindowLearned(msgspec.Struct, frozen=True, tag="window_learned", omit_defaults=True):
    """Entry: a server's behaviour showed that its window is `tokens`; 0 withdraws that. Either it refused a prompt that should
    have fitted: where it did not name its window, `refused` is the length of that prompt and `tokens` a guess. Or it accepted
    (`took`) more than was assumed, and `tokens` is a lower bound.

    It overrides only the claim of `believed` tokens: once the server claims another window, that claim is trusted again.
    """

    model: str
    tokens: int
    believed: int = 0
    refused: int = 0
    took: bool = False


class ModelChosen(msgspec.Struct, frozen=True, tag="model_chosen"):
    """Entry: the session continues with this model at this address. Empty is the provider's own address; None, from older
    versions, is unknown."""

    model: str
    address: str | None = None


class AgentChosen(msgspec.Struct, frozen=True, tag="agent_chosen"):
    """Entry: the session continues with this agent of the settings; empty for the default agent."""

    agent: str


class EffortChosen(msgspec.Struct, frozen=True, tag="effort_chosen"):
    """Entry: the session continues with this level of effort; empty for the level in the settings."""

    effort: str


class ModeChosen(msgspec.Struct, frozen=True, tag="mode_chosen"):
    """Entry: the session continues in this permission mode; empty for that of the settings. Mode `all` is written down, too, but
    is not in force when the session is opened again."""

    mode: Mode | Literal[""]


class HookFired(msgspec.Struct, frozen=True, tag="hook_fired"):
    """Entry: a hook that has a cooldown or a limit acted in this turn."""

    hook: str
    turn: int
    at: str = ""


class BackoffState(msgspec.Struct, frozen=True, tag="automatic", omit_defaults=True):
    """Entry: whether and when automatic compaction may run, after past compactions and what the person said. The persistent part
    of `core.backoff.Backoff`, so that it survives a restart."""

    failures: int = 0
    refills: int = 0
    last_turn: int = -10
    rest_until: int = 0


class ToolRefused(msgspec.Struct, frozen=True, tag="tool_refused"):
    """Entry: a model's server refused the description of a tool. That model is no longer offered the tool in this session, or,
    where `reduced`, is offered it with its arguments described in words instead of a schema."""

    model: str
    tool: str
    reduced: bool = False


class Continues(msgspec.Struct, frozen=True, tag="continues"):
    """Entry: the session continues the work of another session, which was handed off to it."""

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
    | ModeChosen
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
    """A round that is still under way, stored so that a kill loses nothing: the model's message so far, the results so far, and
    the entries to be written together with it (its cost)."""

    assistant: Message
    results: tuple[Message, ...] = ()
    turn: int = 0
    noted: tuple[Record, ...] = ()


MAX_COUNTED_VIEWS = 8
"""Earlier views whose server count is remembered, for when a change is undone."""


MAX_CACHE_BREAKS = 100
"""The newest cache breaks of a session that are remembered."""


class SessionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a session, computed from its journal.

    Gauge: `used` and `parts` (by section) are what it showed last; `scale` is that of the newest change, until a server counts
    again; `cut` is the newest Measured's, as long as the same view goes to the same model; `counted` holds the last server count
    of earlier views, by the ids of the changes in force in each. `fills` are the tokens used at the end of each turn that was
    counted then, `filled` the numbers of those turns. `windows` is what was learned of models, by name.

    Cache, by model: `sent` is the last request, `held` the prefixes its server keeps of it, `prefill` the tokens a second at
    which it reads a prompt, `asked_at` the address last used. `cache_breaks` are the newest requests of which a server did not
    read what it might have.

    Compactions: `compactions` are all that ended, `endings` the number of `fills` at the time of each; `prepared` is the last
    summary made ahead, whether it still fits or not; `deferred` is what waits for the next compaction, by group id.

    Others: `agent` is None where none was ever chosen; `refused_tools` are those a model is not offered, `reduced_tools` those
    whose arguments are described to it in words, both by model; `hooks` is how often hooks with a limit acted, by name;
    `checkpoints` are changes to files; `imported` is the number of the last message that came from a file, 0 for none;
    `continues` is the id of the session handed off to this one; `spending` the cost by
    purpose; `skipped` are the entries that did not fit, in words.
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
    mode: Mode | Literal[""] = ""
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
    spending: Spending = Spending()
    prepared: Prepared | None = None
    deferred: dict[str, DeferredKind] = {}
    setup_deferred: SetupDeferred = SetupDeferred()
    asked_at: dict[str, str] = {}
    counted: dict[tuple[str, ...], Anchor] = {}

    def counted_of(self, ledger: Ledger) -> Anchor | None:
        """The last server count of a view with exactly the changes in force in `ledger`; None where it was never counted."""
        return self.counted.get(_ids(ledger)) if self.counted else None


def fold(records: Iterable[Record], state: SessionState | None = None) -> SessionState:
    """The state after these entries, starting from `state`. An entry that does not fit (a damaged journal) is skipped and listed
    in `skipped`; the others still count."""
    state = state or SessionState()
    ledger = state.ledger
    sealed: dict[str, Group] = {}  # appended together, which is faster for a long journal
    imported = state.imported
    for record in records:
        if isinstance(record, Sealed):
            sealed.update((g.id, g) for g in record.groups if g.id not in sealed and not ledger.holds(g.id))
            if record.imported:
                imported = max(imported, *(m.seq for g in record.groups for m in g.messages))
            continue
        if sealed and isinstance(record, Changed | Undone | HeadSet | ThoughtsLeftOut):
            ledger, sealed = ledger.append(*sealed.values()), {}
        try:
            ledger, state = step(ledger, state, record)
        except LedgerError as problem:
            skipped = (*state.skipped, f"{type(record).__name__.lower()}: {problem.text}")
            state = msgspec.structs.replace(state, skipped=skipped)
        if isinstance(record, Measured) and record.turn_end:
            turn = next(reversed(sealed.values())).turn if sealed else ledger.turn
            state = msgspec.structs.replace(state, filled=(*state.filled, turn))
    ledger = ledger.append(*sealed.values()) if sealed else ledger
    return msgspec.structs.replace(state, ledger=ledger, imported=imported)


def step(ledger: Ledger, state: SessionState, record: Record) -> tuple[Ledger, SessionState]:
    """The ledger and the state after one entry. Raises LedgerError where it does not fit."""
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
        case ModeChosen(mode=mode):
            return ledger, replace(state, mode=mode)
        case HookFired(hook=hook, turn=turn):
            return ledger, replace(state, hooks={**state.hooks, hook: state.hooks.get(hook, Tally()).count_turn(turn)})


def _changed(ledger: Ledger, state: SessionState, record: Changed) -> tuple[Ledger, SessionState]:
    """Apply a change: drops what was deferred for its groups, and books the compaction that it belongs to as ended."""
    replace, change = msgspec.structs.replace, record.change
    undone = tuple(c for c in state.undone if c.id != change.id)
    after_it = ledger.apply(change)
    if any(each.id == change.id and each != change for each in state.undone):  # only a part of it is in force again
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
    """The state with the view after a change, or after one was undone, in place of the view before. The new view gets the count
    that a server gave it earlier, if any."""
    counted = state.counted
    if state.anchor:
        newest = [(ids, anchor) for ids, anchor in counted.items() if ids != _ids(before)][1 - MAX_COUNTED_VIEWS :]
        counted = {**dict(newest), _ids(before): state.anchor}
    anchor = counted.get(_ids(after))
    return msgspec.structs.replace(state, counted=counted, anchor=anchor, scale=1.0 if anchor else _sane(scale), cut=0)


def _ids(ledger: Ledger) -> tuple[str, ...]:
    return tuple(change.id for change in ledger.changes)


def _measured(state: SessionState, record: Measured) -> SessionState:
    """The state after a Measured. Figures that cannot be true are ignored; that a reply came counts all the same."""
    replace, usage, plausible = msgspec.structs.replace, record.usage, _plausible(record)
    used = record.used if plausible else state.used
    state = _cached(state, record) if plausible and record.sent else state
    state = _booked(state, _paid(usage.cost_usd) if plausible else 0.0, record.model, "replies", record.at)
    if record.turn_end:
        state = replace(state, spending=state.spending.turn_ended())
    return replace(
        state,
        model=state.model or record.model,  # older versions did not write down which model a session began with
        anchor=record.anchor if plausible else None,
        scale=1.0 if plausible and record.anchor else state.scale,
        calibrations={**state.calibrations, record.model: record.calibration},
        fills=(*state.fills, used) if record.turn_end else state.fills,
        used=used,
        parts=record.parts if plausible else state.parts,
        cached=usage.cached if plausible else 0,
        cut=record.cut if plausible else 0,
        sent={**state.sent, record.sent.model: record.sent} if record.sent else state.sent,
    )


def _cached(state: SessionState, record: Measured) -> SessionState:
    """The state with what the server keeps of the measured request, and with a cache break where it did not read its cache."""
    sent, usage = record.sent, record.usage
    assert sent is not None
    held, before = state.held.get(sent.model, ()), state.sent.get(sent.model)
    broke = break_of(held, before, sent, usage, record.broke, record.cache_miss, record.at)
    breaks = (*state.cache_breaks, broke)[-MAX_CACHE_BREAKS:] if broke else state.cache_breaks
    prefill = {**state.prefill, sent.model: record.prefill} if record.prefill else state.prefill
    held_now = {**state.held, sent.model: held_after(held, sent, usage)}
    return msgspec.structs.replace(state, held=held_now, cache_breaks=breaks, prefill=prefill)


def _moved(state: SessionState, model: str, address: str | None) -> SessionState:
    """The state with the model at this address. What its server at another address held, and how fast that one read, is
    forgotten."""
    if address is None:
        return state
    before = state.asked_at.get(model, address)
    state = msgspec.structs.replace(state, asked_at={**state.asked_at, model: address})
    if before == address:
        return state
    held, prefill = ({k: v for k, v in of.items() if k != model} for of in (state.held, state.prefill))
    return msgspec.structs.replace(state, held=held, prefill=prefill)


def _renewed(state: SessionState, model: str, started: str, cached: int) -> SessionState:
    """The state after a call outside the conversation read the server's cache (see `PrefixRead`)."""
    replace, sent, held = msgspec.structs.replace, state.sent.get(model), state.held.get(model, ())
    if sent is None:
        return state
    if not sent.marked:  # a marked prefix that was not read was written to the cache again, so it is kept
        held = tuple(each for each in held if each.tokens * READ_SHARE <= cached)
    if any(each.digest == sent.digest and each.tokens * READ_SHARE <= cached for each in held):
        held = held_after(held, replace(sent, started=started), Usage(cached, 0, cached=cached))
    return replace(state, held={**state.held, model: held})


def _ended(state: SessionState, record: CompactionRecord) -> SessionState:
    """The state after a compaction ended, with its cost booked. A record with a known id replaces the old one and costs nothing:
    it was undone in part, or it is the change that older versions wrote after the CompactionFinished."""
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
    """The state with this cost added, to the sum and to its purpose."""
    spending = state.spending.paid(usd, model, purpose, at)
    return msgspec.structs.replace(state, cost_usd=state.cost_usd + usd, spending=spending)


def without_end(records: Iterable[Record]) -> dict[str, CompactionBegun]:
    """The compactions that began among these entries and did not end, by id."""
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


def _plausible(record: Measured) -> bool:
    """False for impossible figures of a server, which older versions wrote down unchecked."""
    anchor, counted = record.anchor, max(record.usage.prompt, record.usage.completion, record.used)
    if not 0 <= counted <= MAX_TOKENS or not 0 <= record.usage.cached <= MAX_TOKENS:
        return False
    return anchor is None or 0 <= anchor.tokens <= most_tokens(anchor.mix.raw) + MAX_HIDDEN_THOUGHT_TOKENS


def _sane(scale: float) -> float:
    """The scale, limited to the range that a server's count may differ from our estimate."""
    return min(MAX_RATE, max(1 / MAX_RATE, scale))


def _paid(cost: float) -> float:
    return dollars(cost) or 0.0
