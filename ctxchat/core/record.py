"""The record of a compaction as a value: why it was made, how, what it freed, and the exact facts it kept.

`CompactionRecord` is the event that a compaction has ended, is stored in the journal (inside the change, where the compaction
made one), and is what screens and exports read. Also here are the values it shares with summaries: `Fact`, `Evidence`, `Digest`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal[
    "manual", "auto", "reactive_micro", "reactive_full", "context_overflow", "model_switch", "hook", "offline"
]
Outcome = Literal["compacted", "noop", "rejected", "failed"]


class StepGain(msgspec.Struct, frozen=True):
    """One step of a compaction: its name, the tokens it freed, and how many groups (messages that stay together) it changed."""

    name: str
    tokens_freed: int
    groups: int


class SideUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """How full the window was before or after a compaction: tokens in use, messages that the model sees, and tokens by section
    (a named part of the window, such as `tools`)."""

    used: int
    messages: int
    sections: dict[str, int] = {}


FactKind = Literal[
    "rule", "decision", "changed", "command", "error", "symbol", "number", "read", "path", "url", "identifier"
]

Speaker = Literal["user", "assistant", "tool", ""]
"""Who said or did something; `tool`: it was only found in a result. Empty where that is not known."""


class Fact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One exact thing that was said or done, short enough for a line.

    `key` is what it is about (a path, a command line, the name of a number) and `value` what was last known of it: an exit code,
    an amount; of an error the command that caused it, of a symbol its file. Of two facts with the same kind and key only the
    newer is kept. `seq` is the number of the message it was last seen in, `turn` that message's turn, `turns` in how many turns
    it came up, and `by` the most important of those who brought it up. `times` is how often a command was run in this form.
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
    """Something that the message `seq` made untrue, so that facts about it are dropped and do not come back.

    `key` depends on the kind. `file`: a path that was removed, or moved to `now`. `name`: a symbol that was taken out of the file
    `where` (empty: of all files). `rewritten`: a file all of whose earlier symbols are void. `value`: a name that no longer has
    the value `where`. `edit`: a file whose edits were discarded (empty: all files). `commit`: edits before it are not discarded.
    `said`: the sentence that withdrew a request. `proposal`: the message, in the turn `turn`, that declined what the agent had
    proposed in the turn before.
    """

    kind: Literal["file", "name", "said", "rewritten", "value", "edit", "commit", "proposal"]
    key: str
    seq: int
    where: str = ""
    now: str = ""
    turn: int = 0


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The exact facts of all that was folded, each once, the ones seen last at the end. `dropped` counts facts that were found
    and left out for want of room. `gone` lists what a later mention must not bring back."""

    facts: tuple[Fact, ...] = ()
    dropped: int = 0
    gone: tuple[Gone, ...] = ()


class Digest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a summary, kept as values, so that the next compaction can merge them without parsing the summary's text.

    `summary` was written by a summariser, `recap` by code; either may be empty. `evidence` is carried over from compaction to
    compaction. `files` are the paths of the files that are shown beside it as they were on disk then. `back` are the numbers of
    messages that `summary` describes although they are in view again.
    """

    summary: str = ""
    recap: str = ""
    evidence: Evidence = Evidence()
    files: tuple[str, ...] = ()
    back: tuple[int, ...] = ()


class FactCount(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many facts were found in what a compaction changed, and how many of them the model can still find: in the view, or
    (`near` of them) in a saved text that the view points to."""

    found: int
    kept: int
    near: int = 0


class PutBack(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an undo in part has put back into the view since: how many messages, and the tokens they take there."""

    messages: int = 0
    tokens: int = 0


YOU = "you"
"""The `author` of a summary that the person wrote or edited."""

TOLD = (
    *("outcome", "id", "reason", "strategy", "steps", "before", "after", "folded_messages", "folded_groups"),
    *("facts", "seconds", "cost_usd", "detail", "missed"),
)
"""The fields of a record that programs are given as JSON: no texts of the conversation, and no ids of messages."""


class CompactionRecord(msgspec.Struct, frozen=True, omit_defaults=True, tag="compaction_finished"):
    """The record of one compaction, and the event that it has ended.

    `steps` are what was done, in order; `before` and `after` how full the window was. `seconds` is wall time. `cost_usd` is in US
    dollars; `booked_usd` is the part of it that the session had paid before, for a summary that was prepared or drafted.

    `folded` are the ids of the groups that it took out of the view or shortened, `folded_messages` how many messages these have,
    and `shortened` how many of those were only shortened; `back` is what has been put back since. `keep_recent` is the number of
    newest messages that it kept. `detail` is a sentence for people, `missed` another where the target was not reached.

    `model` wrote the summary, in so many `attempts`; `filled` is the share of the allowed length that the summary took. `author`
    is `you` where a person wrote or edited it (then `model` drafted it), and in an imported session the agent that had made it.
    `evidence` is the list of exact facts as text, `lost` the facts that the view no longer held afterwards, a line each.

    `tools`, `memory` and `recent_calls` describe the moment for those who read the archive; nothing is restored from them.
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
        """Tokens in use after the compaction, counting as in use what has been put back since."""
        return self.after.used + self.back.tokens

    @property
    def from_originals(self) -> bool:
        """True where its summary was written by a model that had read the original messages, or by a person; false for one by
        code or by another agent."""
        return self.author == YOU or bool(self.model and not self.author)

    @property
    def folded_groups(self) -> int:
        """How many groups it took out of the view or shortened."""
        return len(self.folded)

    @property
    def freed(self) -> int:
        """Tokens that it freed, as far as they have not been put back; negative where the view grew."""
        return self.before.used - self.stands

    def as_json(self) -> dict[str, object]:
        """The record as `ctxchat compact --json`, event streams and hooks give it: the fields in `TOLD`."""
        return {name: msgspec.to_builtins(getattr(self, name)) for name in TOLD}
