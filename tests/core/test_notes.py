"""Notes: what has changed is told once, line by line or whole; what was told can be told apart from what stands around now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.grouping import seal_round, single
from ctxchat.core.head import ContextBlock, Head, ToolSpec
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.notes import (
    TOOLS,
    change_note,
    context_note,
    difference,
    known_context,
    tools_block,
    tools_change,
    without_tool_told,
)
from ctxchat.core.tool_share import CALL_TOOL

lines = st.lists(st.sampled_from(["main", "one file changed", "be brief", "M a.py", "", "- x", "+ y"]), max_size=8)
texts = lines.map("\n".join)
sources = st.dictionaries(st.sampled_from(["workspace", "AGENTS.md", "identity", "skills"]), texts, max_size=4)


def blocks(said: dict[str, str]) -> tuple[ContextBlock, ...]:
    return tuple(ContextBlock(source, text) for source, text in said.items())


@given(st.lists(sources, min_size=1, max_size=6))
def test_whatever_changes_the_model_knows_it_after_the_note_and_is_told_nothing_twice(
    states: list[dict[str, str]],
) -> None:
    head = Head(context=blocks(states[0]))
    ledger = Ledger().with_head(head)
    for now in states[1:]:
        text, context = change_note(known_context(head, ledger), blocks(now), ledger)
        known = {source: said for source, said in known_context(head, ledger).items() if said}
        assert bool(text) == (known != {source: said for source, said in now.items() if said})
        if text:
            ledger = ledger.append(context_note(ledger.next_seq, "", 1, text, context))
        assert {s: t for s, t in known_context(head, ledger).items() if t} == {s: t for s, t in now.items() if t}
        assert change_note(known_context(head, ledger), blocks(now), ledger) == ("", ())


def _applied(before: str, told: str) -> list[str]:
    """The lines after a change that was told line by line, as a multiset."""
    left = before.splitlines()
    for line in told.splitlines():
        if line.startswith("- "):
            left.remove(line[2:])
        else:
            left.append(line[2:])
    return sorted(left)


@given(texts, texts)
def test_a_difference_says_what_came_and_went_or_the_whole(before: str, after: str) -> None:
    if before == after:
        return
    kind, told = difference(before, after)
    if not before or not after:
        assert (kind, told) == (("new", after) if after else ("gone", ""))
    elif kind == "lines":
        assert _applied(before, told) == sorted(after.splitlines()) and len(told) < len(after)
    else:
        assert (kind, told) == ("whole", after)


def test_one_line_more_in_a_long_file_costs_a_line() -> None:
    memory = "\n".join(f"rule {n}: measure before you believe" for n in range(200))
    assert difference(memory, f"{memory}\nrule 200: be kind") == ("lines", "+ rule 200: be kind")


def test_what_a_call_of_that_name_wrote_is_not_said_again_while_it_stands_in_view() -> None:
    head = Head(context=(ContextBlock("todo", "your list\n[ ] look"),))
    listed = ContextBlock("todo", "your list\n[x] look\n[ ] mend")
    call = Message(
        1,
        "assistant",
        "",
        (ToolCall("c", "todo", '{"items": [{"text": "look", "status": "done"}, {"text": "mend"}]}'),),
    )
    refused = Message(3, "assistant", "", (ToolCall("d", "todo", '{"items": 1}'),))
    ledger = Ledger().with_head(head)
    ledger = ledger.append(seal_round(call, [Message(2, "tool", "Kept: 1 of 2 done.", call_id="c", name="todo")], 1))
    ledger = ledger.append(seal_round(refused, [Message(4, "tool", "wrong", call_id="d", name="todo", failed=True)], 1))
    for now in ((listed,), ()):
        assert change_note(known_context(head, ledger), now, ledger) == ("", ())
    assert without_tool_told(Head(context=(listed,)), ledger) == Head()
    gone = ledger.apply(Change("d1", "drop", edits=(Edit("drop", (ledger.groups[0].id,)),)))
    assert "[ ] mend" in change_note(known_context(head, gone), [listed], gone)[0]
    assert without_tool_told(Head(context=(listed,)), gone) == Head(context=(listed,))


def test_a_note_that_left_the_view_is_known_no_longer() -> None:
    head = Head(memory=(ContextBlock("AGENTS.md", "be brief"),))
    note = context_note(2, "", 1, "changed", (ContextBlock("AGENTS.md", "be long"),))
    ledger = Ledger().with_head(head).append(single("user", Message(1, "user", "hi"), 1), note)
    assert known_context(head, ledger) == {"AGENTS.md": "be long"}
    gone = ledger.apply(Change("d1", "drop", edits=(Edit("drop", (note.id,)),)))
    assert known_context(head, gone) == {"AGENTS.md": "be brief"}
    assert known_context(head, gone.undo("d1")) == {"AGENTS.md": "be long"}


def spec(name: str, what: str = "does it") -> ToolSpec:
    return ToolSpec(name, what, {"type": "object"})


names = st.dictionaries(st.sampled_from(["read", "files__list", "files__put", "db__ask"]), st.sampled_from("ab"))


@given(names, st.lists(names, min_size=1, max_size=5))
def test_tools_that_come_and_go_are_told_each_time_and_once(first: dict[str, str], later: list[dict[str, str]]) -> None:
    head = [spec(name, what) for name, what in first.items()]
    told = ""
    for now in later:
        block = tools_block(head, [spec(name, what) for name, what in now.items()])
        said = tools_change(told, block.text)
        assert block.source_id == TOOLS and bool(said) == (sorted(told.splitlines()) != sorted(block.text.splitlines()))
        told = block.text
        assert tools_change(told, told) == ""


def test_a_new_tool_is_told_whole_and_how_it_is_called() -> None:
    said = tools_change("", tools_block([spec("read")], [spec("files__put")]).text)
    assert CALL_TOOL in said and spec("files__put").schema in said and "no longer there: read" in said
    assert "there again: read" in tools_change(tools_block([spec("read")], []).text, "")
