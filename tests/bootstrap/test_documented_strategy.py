"""The strategy of a package of one's own, as docs/compaction.md shows it, through the registry a session uses."""

from __future__ import annotations

import re
from pathlib import Path

from ctxchat.bootstrap.extensions import with_plugins
from ctxchat.core import Ledger, TokenCounter, compile
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.openai import from_wire
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.view import problems
from ctxchat.plugins import Plugins

PAGE = Path(__file__).parents[2] / "docs" / "compaction.md"


def called(name: str, id: str) -> list[dict[str, object]]:
    function = {"name": name, "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": "src/\ntests/\n" * 40},
    ]


def test_the_documented_strategy_plans_and_applies():
    code = re.findall(r"```python\n# my_package/forget_lists.py\n(.*?)```", PAGE.read_text(), re.S)[0]
    space: dict[str, object] = {}
    exec(compile_(code), space)
    wires = [{"role": "user", "content": "look"}, *called("list_files", "a"), *called("read_file", "b")]
    wires += [{"role": "user", "content": "and now?"}, *called("list_files", "c")]
    ledger = Ledger().append(*group_messages([from_wire(w, i) for i, w in enumerate(wires, 1)]))
    options = PlanOptions(counter=TokenCounter())
    registry = with_plugins(Plugins({"forget_lists": space["ForgetLists"]}))(options)  # type: ignore[dict-item]
    view = compile(ledger, Head("system"), options.counter)
    strategy = registry["forget_lists"]
    plan = strategy.plan(view, ledger, make_budget(Window(8000, "configured"), 500, 0.75, 0.5))
    assert plan is not None and len(plan.covers) == 1
    after = ledger.apply(apply_plan(ledger, plan, "c1", options))
    smaller = compile(after, Head("system"), options.counter)
    assert not problems(smaller) and smaller.raw == plan.after
    assert strategy.plan(smaller, after, make_budget(Window(8000, "configured"), 500, 0.75, 0.5)) is None


def compile_(code: str):
    import builtins

    return builtins.compile(code, str(PAGE), "exec")
