"""After a compaction the files that the work stands on are shown as they are on disk now, within their share, and undone with
it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.budget import Window
from ctxchat.core.events import Failed
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.options import Options
from ctxchat.core.ports import ToolPort
from ctxchat.core.record import CompactionRecord, Digest
from ctxchat.core.strategies.planning import PlanOptions, fold_edit
from ctxchat.core.tokens import TokenCounter, rough_count
from ctxchat.core.working_set import (
    CLOSING,
    CurrentFile,
    EditPlace,
    edits_in,
    newest,
    not_in_view,
    touched,
    worked_on,
    working_set,
)
from ctxchat.tools.edit_file import EditFile, WriteFile
from ctxchat.tools.read_file import ReadFile, ReadNow
from ctxchat.tools.seen import SeenFiles
from tests.agent.desk import Desk
from tests.agent.test_long_turns import Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, calls, says

FILLER = "The keeper walks round the harbour and writes down what she sees. "


def reads(*paths: str) -> list[Reply]:
    return [*(calls(("read_file", {"path": path})) for path in paths), says("seen")]


def at_work(folder: Path, script: list[Reply], seen: SeenFiles, *more: ToolPort, **options: object) -> Desk:
    model = ScriptedModel([*script, *(says(FILLER * 60) for _ in range(9))], window=Window(16_000, "loaded"))
    return Desk(
        model,
        tools=[ReadFile(seen), WriteFile(seen), *more],
        workspace=folder,
        mode="all",
        options=Options(keep_recent=4, prepare=False, **options),  # type: ignore[arg-type]
        summariser=Writer(),
        files_now=ReadNow(
            seen, str(folder), lambda access_request: access_request.inside, lambda text: text.replace("hunter2", "***")
        ),
    )


def shown(desk: Desk) -> str:
    return "\n".join(i.message.text for i in desk.session.view.items if i.section == "summary")


async def test_a_file_that_was_read_stands_there_as_it_is_now_and_goes_with_an_undo(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old = 1\n")
    (tmp_path / "b.py").write_text("password = 'hunter2'\n")
    (tmp_path / "gone.py").write_text("x")
    seen = SeenFiles()
    desk = at_work(tmp_path, reads("a.py", "./b.py", "gone.py", "missing.py"), seen, working_set=0.1)
    for text in ("look", *[FILLER * 20] * 3):
        await desk.say(text)
    (tmp_path / "a.py").write_text("new = 2\n")
    (tmp_path / "gone.py").unlink()
    before = desk.session.context_usage.used
    preview = await desk.session.preview()
    assert preview.files == ("b.py", "a.py")
    done = of(await desk.free_up(), CompactionRecord)[0]
    assert done.outcome == "compacted" and "2 files shown as on disk" in done.detail
    text = shown(desk)
    assert "a.py (changed by somebody else since you last saw it):\n1\tnew = 2" in text
    assert "b.py:\n1\tpassword = '***'" in text and "hunter2" not in text and "gone.py:" not in text
    assert abs(done.after.used - preview.after.used) < desk.session.context_usage.limit * 0.08
    assert desk.folded() == desk.state
    await desk.session.changes.undo(desk.state.ledger.compactions[-1].id)
    assert shown(desk) == "" and desk.session.context_usage.used == pytest.approx(before, rel=0.05)
    await desk.session.close()


async def test_what_is_still_in_view_is_not_shown_twice_and_nothing_where_none_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    for share in (0.1, 0.0):
        desk = at_work(tmp_path, [says(FILLER * 60)] * 4 + reads("a.py"), SeenFiles(), working_set=share)
        for text in [FILLER * 20] * 5:
            await desk.say(text)
        await desk.free_up()
        assert "<files_now>" not in shown(desk)
        await desk.session.close()


async def test_the_target_is_met_with_the_files(tmp_path: Path) -> None:
    for n in range(6):
        (tmp_path / f"{n}.py").write_text(f"value_{n} = {n}\n" * 25)
    desk = at_work(tmp_path, reads(*(f"{n}.py" for n in range(6))), SeenFiles(), working_set=0.1)
    passes: list[CompactionRecord] = []
    for text in ["read them", *[FILLER * 30] * 6]:
        events = await desk.say(text)
        assert not of(events, Failed)
        passes += of(events, CompactionRecord)
    limit = desk.session.context_usage.limit
    assert passes and all(p.after.used <= limit * 0.55 for p in passes)
    assert any("shown as on disk" in p.detail for p in passes)
    await desk.session.close()


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=8), st.integers(0, 3_000))
def test_never_more_than_the_room_there_is_and_the_last_touched_first(sizes: list[tuple[int, bool]], room: int) -> None:
    texts = ["".join(f"{n:>5}\tline {n}\n" for n in range(1, size + 1)) for size, _ in sizes]
    files = [
        CurrentFile(f"f{place}.py", (f"f{place}.py",), text, changed, rough_count(text))
        for place, (text, (_, changed)) in enumerate(zip(texts, sizes, strict=True))
    ]
    text, paths = working_set(files, room, rough_count)
    assert rough_count(text) <= room
    assert list(paths) == sorted(paths) and bool(paths) == text.endswith(CLOSING)
    for file in files:
        assert (f"{file.path}:\n" in text or f"{file.path} (changed" in text) == (file.path in paths)


def test_of_a_large_file_the_place_that_was_worked_on_is_shown() -> None:
    lines = "\n".join(f"{n:>5}\tgauge {n} = {n * 7}" for n in range(1, 900))
    edit = '{"path": "pier.py", "old": "gauge 700 = 1", "new": "gauge 700 = 4900"}'
    made = (
        ToolCall("a", "edit_file", edit),
        ToolCall("b", "write_file", '{"path": "pier.py", "content": "gauge 3 = 21"}'),
    )
    done = (Message(2, "tool", "done", call_id="a"), Message(3, "tool", "done", call_id="b"))
    near = worked_on([Group("g1", "round", (Message(1, "assistant", calls=made), *done), 1)])
    assert near == {"pier.py": (("gauge 700 = 4900",),)}
    text, shown = working_set(
        [CurrentFile("pier.py", ("pier.py",), lines, False, rough_count(lines), edits_in(lines, near["pier.py"]))],
        900,
        rough_count,
    )
    assert shown == ("pier.py",) and "gauge 700 = 4900" in text and "gauge 20 =" not in text


def test_an_import_added_last_does_not_hide_the_place_that_was_worked_on() -> None:
    text = "\n".join(f"{n:>5}\tgauge {n} = {n * 7}" for n in range(1, 900))
    edits = (("gauge 4 = 28",), ("gauge 700 = 4900", "gauge 701 = 4907", "gauge 702 = 4914"), ("gauge 690 = 4830",))
    file = CurrentFile("pier.py", ("pier.py",), text, tokens=rough_count(text), edited=edits_in(text, edits))
    shown, _ = working_set([file], 900, rough_count)
    assert "gauge 690 =" in shown and "gauge 702 =" in shown and "gauge 4 =" not in shown


def test_of_a_large_file_that_was_only_written_whole_the_beginning_is_shown() -> None:
    text = "\n".join(["/**", " * The tide.", *(f"gauge {n} = {n * 7}" if n % 9 else "/**" for n in range(1, 900))])
    written = ToolCall("a", "write_file", json.dumps({"path": "pier.ts", "content": text}))
    done = Message(2, "tool", "done", call_id="a")
    near = worked_on([Group("g1", "round", (Message(1, "assistant", calls=(written,)), done), 1)])["pier.ts"]
    lines = "\n".join(f"{n:>5}\t{line}" for n, line in enumerate(text.split("\n"), 1))
    file = CurrentFile("pier.ts", ("pier.ts",), lines, tokens=9_999, edited=edits_in(lines, near))
    shown, _ = working_set([file], 900, rough_count)
    assert "The tide." in shown and "gauge 898 =" not in shown


def test_it_says_after_what_the_files_were_looked_at() -> None:
    """A call that stays in view would be reckoned a second time on top of them."""
    edit = ToolCall("a", "edit_file", '{"path": "pier.py", "old": "gauge = 1", "new": "gauge = 4"}')
    said = [Message(1, "user", "Raise the gauge.\nNow."), Message(2, "assistant", calls=(edit,))]
    ledger = Ledger(groups=group_messages([*said, Message(3, "tool", "Changed.", call_id="a")]))
    assert newest(ledger, ["g1"]) == "the call edit_file pier.py" and newest(ledger, ["g2"]) == ""
    assert newest(Ledger(groups=ledger.groups[:1]), ()) == "the message «Raise the gauge.»"
    file = CurrentFile("pier.py", ("pier.py",), "    1\tgauge = 4", tokens=9)
    options = PlanOptions(counter=TokenCounter(), files=(file,), files_tokens=500)
    told = fold_edit(ledger, ["g1"], Digest("S"), 500, options).replacement
    assert (
        told
        and "after the call edit_file pier.py below; what was changed up to there is in them." in told.messages[1].text
    )


def test_large_files_that_were_worked_on_share_the_room() -> None:
    """The one changed last is often a list of what changed, and never all that the work stands on."""
    files = [
        CurrentFile(name, (name,), text, tokens=rough_count(text), edited=edits_in(text, edited))
        for name, edited in (
            ("CHANGES", (("gauge 2 = 14",),)),
            ("read.py", ()),
            ("pier.py", (("gauge 700 = 4900", "gauge 701 = 4907", "gauge 2 = 14"),)),
            ("mole.py", (("gauge 400 = 2800",),)),
        )
        for text in ["\n".join(f"{n:>5}\tgauge {n} = {n * 7}" for n in range(1, 900))]
    ]
    text, shown = working_set(files, 1_200, rough_count)
    assert shown == ("CHANGES", "pier.py", "mole.py") and all(f.edited[0].lines[0] in text for f in files if f.edited)
    parts = [rough_count(part) for part in text.split("\n\n")[1:-1]]
    assert max(parts) < 1.3 * min(parts)


def test_what_was_changed_in_the_newest_turn_comes_first_then_other_changes_then_what_was_read() -> None:
    def call(place: int, name: str, path: str) -> list[Message]:
        arguments = f'{{"path": "{path}", "old": "1", "new": "2"}}' if name == "edit_file" else f'{{"path": "{path}"}}'
        made = Message(place, "assistant", calls=(ToolCall("a", name, arguments),))
        return [made, Message(place + 1, "tool", "done", call_id="a")]

    messages = [Message(1, "user", "one"), *call(2, "edit_file", "old.py"), *call(4, "read_file", "far.py")]
    messages += [Message(6, "user", "two"), *call(7, "edit_file", "a.py"), *call(9, "edit_file", "b.py")]
    messages += [*call(11, "read_file", "near.py"), *call(13, "read_file", "a.py")]
    assert touched(group_messages(messages)) == ("b.py", "a.py", "old.py", "near.py", "far.py")
    messages += [*call(15, "edit_file", "a.py"), *call(17, "edit_file", "CHANGES.md")]
    assert touched(group_messages(messages))[:3] == ("a.py", "CHANGES.md", "b.py"), "what is worked on most, not last"


def test_what_was_read_in_part_or_edited_in_view_is_shown_and_what_was_read_whole_is_not() -> None:
    def ledger(name: str, arguments: str) -> Ledger:
        call = Message(3, "assistant", calls=(ToolCall("a", name, arguments),))
        before = [Message(1, "user", "one"), Message(2, "assistant", "ok")]
        return Ledger(groups=group_messages([*before, call, Message(4, "tool", "done", call_id="a")]))

    file = CurrentFile("a.py", ("a.py",), "    1\tx", tokens=9, edited=(EditPlace(0, ("x",)),))
    for name, arguments, left in (
        ("read_file", '{"path": "a.py"}', ()),
        ("write_file", '{"path": "a.py", "content": "x"}', ()),
        ("read_file", '{"path": "a.py", "start_line": 3}', (file,)),
        ("edit_file", '{"path": "a.py", "old": "y", "new": "x"}', (file,)),
    ):
        assert not_in_view([file], ledger(name, arguments), ["g1", "g2"]) == left, name


async def test_names_that_stand_in_a_file_no_more_are_no_facts(tmp_path: Path) -> None:
    """Whatever took them out: here nothing that the session saw."""
    (tmp_path / "a.py").write_text("class OldGauge: ...\nclass Harbour: ...\n")
    desk = at_work(tmp_path, reads("a.py"), SeenFiles(), working_set=0.1)
    for text in ("look", *[FILLER * 20] * 3):
        await desk.say(text)
    (tmp_path / "a.py").write_text("class Harbour: ...\n")
    await desk.free_up()
    facts = {f.key for c in desk.state.ledger.compactions for e in c.edits if e.digest for f in e.digest.evidence.facts}
    assert "Harbour" in facts and "OldGauge" not in facts
    await desk.session.close()


async def test_the_place_is_shown_whatever_names_the_file_was_called_by(tmp_path: Path) -> None:
    (tmp_path / "pier.py").write_text("".join(f"gauge {n} = {n * 7}\n" for n in range(1, 900)))
    edit = {"path": "pier.py", "old": "gauge 700 = 4900", "new": "gauge 700 = 1"}
    seen = SeenFiles()
    script = [
        *(calls(("read_file", {"path": "./pier.py", "start_line": 699, "end_line": 701})), says("seen")),
        *(calls(("edit_file", edit)), says("done"), *reads("./pier.py")),
    ]
    desk = at_work(tmp_path, script, seen, EditFile(seen), working_set=0.1)
    for text in ("look", "edit", "look again", *[FILLER * 20] * 4):
        await desk.say(text)
    await desk.free_up()
    assert "gauge 700 = 1\n" in shown(desk) and "gauge 20 =" not in shown(desk)
    await desk.session.close()


def test_a_place_whose_edit_stays_in_view_gives_way_to_others() -> None:
    """What a call below shows as it is now is not worth the room of a place that nothing shows."""
    text = "\n".join(f"{n:>5}\tgauge {n} = {n * 7}" for n in range(1, 900))

    def edit(place: int, path: str, line: int, many: int = 1) -> list[Message]:
        put = "\n".join(f"gauge {n} = {n * 7}" for n in range(line, line + many))
        arguments = json.dumps({"path": path, "old": "x", "new": put})
        made = Message(place, "assistant", calls=(ToolCall(f"c{place}", "edit_file", arguments),))
        return [made, Message(place + 1, "tool", "done", call_id=f"c{place}")]

    messages = [Message(1, "user", "one"), *edit(2, "a.py", 700), *edit(4, "c.py", 300), *edit(6, "b.py", 560)]
    ledger = Ledger(groups=group_messages([*messages, *edit(8, "a.py", 40), *edit(10, "b.py", 510, many=40)]))
    near = worked_on(ledger.groups)
    files = [
        CurrentFile(p, (p,), text, tokens=rough_count(text), edited=edits_in(text, near[p]))
        for p in ("b.py", "a.py", "c.py")
    ]
    left = not_in_view(files, ledger, ["g1", "g2", "g4", "g6"])
    assert [(file.path, file.edited) for file in left] == [
        ("a.py", (EditPlace(699, ("gauge 700 = 4900",)),)),
        ("c.py", (EditPlace(299, ("gauge 300 = 2100",)),)),
        ("b.py", edits_in(text, near["b.py"])),
    ]
