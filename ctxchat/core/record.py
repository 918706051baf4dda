"""The one record of a compaction: why, how, with what gain, and the facts that were carried over. Its end is told by it, the
journal keeps it (with the change, where there is one), and screens and exports read it."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal[
    "manual", "auto", "reactive_micro", "reactive_full", "context_overflow", "model_switch", "hook", "offline"
]
Outcome = Literal["compacted", "noop", "rejected", "failed"]


class StepGain(msgspec.Struct, frozen=True):
    """One step of a compaction: its name, the tokens it freed and how many groups it touched."""

    name: str
    tokens_freed: int
    groups: int


class SideUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side of a compaction: tokens in use, messages in the view, and tokens by section."""

    used: int
    messages: int
    sections: dict[str, int] = {}


FactKind = Literal[
    "rule", "decision", "changed", "command", "error", "symbol", "number", "read", "path", "url", "identifier"
]

Speaker = Literal["user", "assistant", "tool", ""]
"""Who said or did something; `tool`: it only stood in a result. Empty where nobody noted it."""


class Fact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One exact thing that was said or done, in a line.

    `key` is what it is about (a path, a command line, the name of a number) and `value` what was last known of it (an exit
    code, an amount, of an error the command it came from, of a symbol its file); of two facts with one kind and key the newer
    stands. `seq` is the message it was last seen in, `turn` that message's turn, and `turns` how many turns it came up in; `by`
    is whoever of those that brought it up counts for most. `times` is how often a command was run in this form.
    """

    kind: FactKind
    key: str
    value: str = ""
    seq: int = 0
    by: Speaker = ""
    turn: int = 0
    turns: int = 1
    times: int = 1


class Gone(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is no more since the message `seq`: a file (moved to `now`, or removed), a name of a program (in the file `where`;
    empty for all), all names that a file had which was `rewritten`, the `value` that a name had (`where`), the `edit`s of a file
    that were thrown away (of all files, where it has no name; those before a `commit` stay), something that was asked for, told
    by the sentence that took it back, and what the agent proposed in the turn before a message that turned it down (`turn`)."""

    kind: Literal["file", "name", "said", "rewritten", "value", "edit", "commit", "proposal"]
    key: str
    seq: int
    where: str = ""
    now: str = ""
    turn: int = 0


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of what was folded, each once, those seen last at the end; `dropped` more were found and not carried on. `gone`
    is what later talk must not bring back."""

    facts: tuple[Fact, ...] = ()
    dropped: int = 0
    gone: tuple[Gone, ...] = ()


class Digest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a summary group was made of, so that the next compaction can merge it without reading it back from its text.

    `summary` was written by a summariser, `recap` by code; either may be empty. `evidence` is carried from compaction to
    compaction. `files` are those that are shown beside it as they were on disk then. `back` are the places of messages that
    `summary` was written of as well, and that came back into the view since.
    """

    summary: str = ""
    recap: str = ""
    evidence: Evidence = Evidence()
    files: tuple[str, ...] = ()
    back: tuple[int, ...] = ()


class FactCount(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts found in what a compaction touched, and how many were kept: the view holds them, or, for `near` of those, names the
    place where they can be read (the saved text of a result that became a line)."""

    found: int
    kept: int
    near: int = 0


class PutBack(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has come back of a compaction by undo in part: messages, and the tokens they hold in the view again."""

    messages: int = 0
    tokens: int = 0


YOU = "you"
"""The author of a summary that the person wrote or mended."""

TOLD = (
    *("outcome", "id", "reason", "strategy", "steps", "before", "after", "folded_messages", "folded_groups"),
    *("facts", "seconds", "cost_usd", "detail", "missed"),
)
"""What programs are told of a compaction: no texts, and no ids of messages."""


class CompactionRecord(msgspec.Struct, frozen=True, omit_defaults=True, tag="compaction_finished"):
    """The record of one compaction, and the event that it has ended. Tokens are integers, `seconds` wall time, `cost_usd` US
    dollars, `booked_usd` of which the session had paid before: for a summary that was prepared or drafted.

    `steps` are what was done in order, `before` and `after` what was measured then. `folded` are the ids of the groups that are
    out of the view by it or shorter there, `folded_messages` how many messages of them that is, `shortened` those among these
    that only became shorter; `back` is what left it once and came back since. `detail`
    is one sentence for people, and `missed` another where the target was missed. `filled` is the share of what it might take that
    a model's summary took. `author` is `you` where a person wrote or mended the summary (`model` drafted it then), and the agent
    whose pass it was in an imported session. `evidence` is the ledger of facts as text, `lost` are the facts that the view no
    longer held after the compaction, a line each. `tools`, `memory` and `recent_calls` say what there was at that moment, for
    whoever reads the archive; what a resumed session is told of changes follows from its head.
    """

    id: str
    reason: Reason
    strategy: str
    outcome: Outcome
    at: str = ""
    steps: tuple[StepGain, ...] = ()
    model: str = ""
    before: SideUsage = SideUsage(0, 0)
    after: SideUsage = SideUsage(0, 0)
    folded: tuple[str, ...] = ()
    folded_messages: int = 0
    shortened: int = 0
    keep_recent: int = 0
    facts: FactCount = FactCount(0, 0)
    seconds: float = 0.0
    cost_usd: float = 0.0
    booked_usd: float = 0.0
    attempts: int = 0
    filled: float = 0.0
    summary: str = ""
    author: str = ""
    evidence: str = ""
    lost: tuple[str, ...] = ()
    detail: str = ""
    missed: str = ""
    tools: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    recent_calls: tuple[str, ...] = ()
    back: PutBack = PutBack()

    @property
    def stands(self) -> int:
        """Tokens in use after the compaction, had it been made as it stands now: without what came back since."""
        return self.after.used + self.back.tokens

    @property
    def from_originals(self) -> bool:
        """Its summary was written by a model that had read what it stands for, or is a person's word on it: neither code's nor
        another agent's."""
        return self.author == YOU or bool(self.model and not self.author)

    @property
    def folded_groups(self) -> int:
        """Groups that are out of the view by it."""
        return len(self.folded)

    @property
    def freed(self) -> int:
        """Tokens that are out of the view by it; negative where it grew."""
        return self.before.used - self.stands

    def as_json(self) -> dict[str, object]:
        """What `ctxchat compact --json`, event streams and hooks say of it."""
        return {name: msgspec.to_builtins(getattr(self, name)) for name in TOLD}
