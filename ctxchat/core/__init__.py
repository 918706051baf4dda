"""ctxchat's core: what a conversation is, what a model sees of it, and how to make room. Pure values, no files, no network.

`compact` does it for a plain list of OpenAI-style messages (docs/library.md). Its pieces, one by one:

    from ctxchat.core import Budget, Head, Ledger, PlanOptions, TokenCounter, Window, compile, group_messages
    from ctxchat.core import apply_plan, builtin_strategies, make_budget

    ledger = Ledger(groups=group_messages(messages))
    options = PlanOptions(counter=TokenCounter())
    view = compile(ledger, Head(system="You are helpful."), options.counter)
    budget = make_budget(Window(8192, "configured"), reserved=1024, trigger=0.75, target=0.5)
    plan = builtin_strategies(options)["truncate"].plan(view, ledger, budget)
    if plan:
        ledger = ledger.apply(apply_plan(ledger, plan, "pass-1", options))

A `Ledger` holds everything that ever happened and the changes in force; a `View` is exactly what the next request holds; a
`Strategy` turns a view into a `Plan`; `apply_plan` makes of a plan the `Change` a ledger takes, and `Ledger.undo` takes back.
"""

TYPE_CHECKING = False  # without the import: a part of this is loaded before anything heavy
if TYPE_CHECKING:
    from ctxchat.core.applying import apply_plan
    from ctxchat.core.budget import Budget, Window, make_budget
    from ctxchat.core.calibration import Anchor, Calibration, Mix
    from ctxchat.core.chat_lists import compact
    from ctxchat.core.chat_messages import Shortened, Summary, from_json, originals, to_json
    from ctxchat.core.compilers import (
        Compiler,
        all_sections,
        current_tool_trace,
        limited,
        redacted,
        selected_sections,
    )
    from ctxchat.core.context_usage import ContextUsage, Counting, Past, measure
    from ctxchat.core.errors import CtxchatError, LedgerError, UnpairedCall
    from ctxchat.core.facts import collect, render, survival
    from ctxchat.core.grouping import close_round, group_messages, seal_round, single
    from ctxchat.core.head import ContextBlock, Head, ToolSpec
    from ctxchat.core.ledger import Change, Edit, Entry, Ledger
    from ctxchat.core.messages import Group, Image, Message, Opaque, Reasoning, Text, ToolCall
    from ctxchat.core.openai import ImportProblem, from_wire, to_wire, wire
    from ctxchat.core.overflow import is_context_overflow
    from ctxchat.core.record import CompactionRecord, Digest, Evidence, Fact, FactCount
    from ctxchat.core.strategies.base import Plan, Spill, Step, Strategy
    from ctxchat.core.strategies.builtin import builtin_strategies
    from ctxchat.core.strategies.pipeline import Pipeline
    from ctxchat.core.strategies.planning import PlanOptions
    from ctxchat.core.tokens import TokenCounter, rough_count
    from ctxchat.core.view import Item, View, compile, problems

_HOMES = {
    "applying": "apply_plan",
    "budget": "Budget Window make_budget",
    "calibration": "Anchor Calibration Mix",
    "chat_lists": "compact",
    "chat_messages": "Shortened Summary from_json originals to_json",
    "compilers": "Compiler all_sections current_tool_trace limited redacted selected_sections",
    "errors": "CtxchatError LedgerError UnpairedCall",
    "facts": "collect render survival",
    "context_usage": "ContextUsage Counting Past measure",
    "head": "ContextBlock Head ToolSpec",
    "grouping": "close_round group_messages seal_round single",
    "ledger": "Change Edit Entry Ledger",
    "messages": "Group Image Message Opaque Reasoning Text ToolCall",
    "openai": "ImportProblem from_wire to_wire wire",
    "overflow": "is_context_overflow",
    "record": "CompactionRecord Digest Evidence Fact FactCount",
    "strategies.base": "Plan Spill Step Strategy",
    "strategies.builtin": "builtin_strategies",
    "strategies.planning": "PlanOptions",
    "strategies.pipeline": "Pipeline",
    "tokens": "TokenCounter rough_count",
    "view": "Item View compile problems",
}
"""Where each public name lives. Loaded when asked for: most who import a part of the core need little of the rest."""

STABLE = (
    "compact Summary Shortened originals to_json from_json ImportProblem is_context_overflow Ledger View Strategy"
    " Pipeline Plan PlanOptions Head Window make_budget compile group_messages from_wire to_wire apply_plan"
    " builtin_strategies rough_count"
)
"""The names that stay as they are until 1.0 but for additions (docs/library.md)."""

__all__ = [
    "Anchor",
    "Budget",
    "Calibration",
    "Change",
    "CompactionRecord",
    "Compiler",
    "ContextBlock",
    "ContextUsage",
    "Counting",
    "CtxchatError",
    "Digest",
    "Edit",
    "Entry",
    "Evidence",
    "Fact",
    "FactCount",
    "Group",
    "Head",
    "Image",
    "ImportProblem",
    "Item",
    "Ledger",
    "LedgerError",
    "Message",
    "Mix",
    "Opaque",
    "Past",
    "Pipeline",
    "Plan",
    "PlanOptions",
    "Reasoning",
    "Shortened",
    "Spill",
    "Step",
    "Strategy",
    "Summary",
    "Text",
    "TokenCounter",
    "ToolCall",
    "ToolSpec",
    "UnpairedCall",
    "View",
    "Window",
    "all_sections",
    "apply_plan",
    "builtin_strategies",
    "close_round",
    "collect",
    "compact",
    "compile",
    "current_tool_trace",
    "from_json",
    "from_wire",
    "group_messages",
    "is_context_overflow",
    "limited",
    "make_budget",
    "measure",
    "originals",
    "problems",
    "redacted",
    "render",
    "rough_count",
    "seal_round",
    "selected_sections",
    "single",
    "survival",
    "to_json",
    "to_wire",
    "wire",
]


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names.split():
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
