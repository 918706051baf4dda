"""The offline assistant over a real folder with the real tools: questions with known answers, and plain commands."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

from ctxchat.core.facts import collect
from ctxchat.core.grouping import single
from ctxchat.core.messages import Message
from ctxchat.models.offline import phrases
from ctxchat.models.offline.commands import trouble
from ctxchat.models.offline.research import research
from ctxchat.models.offline.transcript import DoneCall, ReadView
from tests.models.offline_talk import Talk, make_repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "harbour")


@pytest.mark.parametrize(
    ("question", "place", "words"),
    [
        ("Which logger does the tide gauge at Pier 7 report to?", "README.md:3", "logger Cormorant"),
        ("where is the retry limit set?", "src/upload.py:3", "RETRY_LIMIT = 5"),
        ("what does this project do?", "README.md:3", "tide gauge at Pier 7"),
        ("what is in the readme?", "README.md:3", "tide gauge at Pier 7"),
        ("how do I run the tests?", "README.md:11", "make test"),
        ("how often does the gauge fail?", "README.md:16", "about twice a month"),
        ("which port does the dashboard listen on?", "src/webServer.ts:1", "8087"),
        ("when do backups run?", "docs/operations.md:3", "03:15"),
        ("who keeps the vault password?", "docs/operations.md:11", "harbour master"),
        ("where is `GaugeError` defined?", "src/gauge.py:11", "class GaugeError"),
        ("What version is this, and which license?", "pyproject.toml:3", "2.4.1"),
        ("Where do readings go after two weeks?", "README.md:4", "archive in Aveiro"),
        ("how does renderDashboard work", "src/webServer.ts:3", "toHtml"),
        ("Wer macht die Wartung?", "docs/operations.md:7", "Frau Sommer"),
        ("会议什么时候举行？", "docs/operations.md:9", "每周三"),
    ],
)
async def test_a_known_answer_is_quoted_with_its_place(root: Path, question: str, place: str, words: str) -> None:
    conversation = Talk(root)
    answer = await conversation.ask(question)
    assert f"`{place}`" in answer and words in answer
    assert answer.index(place) == min(answer.index(p) for p in [place, "src/", "README.md:", "docs/"] if p in answer)
    assert {c.name for c in conversation.calls} <= {"grep", "glob", "list_files", "read_file"}


async def test_a_follow_up_leans_on_the_question_before(root: Path) -> None:
    conversation = Talk(root)
    await conversation.ask("Which logger does the tide gauge at Pier 7 report to?")
    assert "`README.md:16`" in await conversation.ask("And how often does it fail?")


async def test_more_gives_other_places(root: Path) -> None:
    conversation = Talk(root)
    first = await conversation.ask("Which logger does the tide gauge use?")
    more = await conversation.ask("more")
    assert "`README.md:3`" in first
    assert "`README.md:3`" not in more and "`README.md:16`" in more
    details = await conversation.ask("tell me more details about the tide gauge")
    assert "`README.md:16`" not in details


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("tell me more about the dashboard", "src/webServer.ts:3"),
        ("next: when do backups run?", "docs/operations.md:3"),
        ("Other ways to set the retry limit?", "src/upload.py:3"),
    ],
)
async def test_a_question_that_begins_like_a_request_for_more_has_its_own_words(
    root: Path, question: str, place: str
) -> None:
    assert f"`{place}`" in await Talk(root).ask(question)
    conversation = Talk(root)
    await conversation.ask("Which logger does the tide gauge use?")
    assert f"`{place}`" in await conversation.ask(question)


def seen(question: str, *done: DoneCall) -> ReadView:
    offered: dict[str, dict[str, object]] = {name: {} for name in ("grep", "glob", "list_files", "read_file")}
    return ReadView(question, {}, (), done, max((d.round for d in done), default=0), (), "", offered, "o1")


def test_files_are_read_in_the_order_of_their_mentions() -> None:
    asked = research(seen("compare " + " ".join(f"@{n}.py" for n in "hgfedcba"))).calls
    assert [call.arguments for call in asked] == [f'{{"path":"{n}.py"}}' for n in "hgf"]


def test_an_overview_has_at_most_three_rounds_too() -> None:
    listed = DoneCall("list_files", {}, "README.md", 3)
    assert not research(seen("what does this project do?", listed)).calls


def test_without_terms_nothing_is_looked_for_in_their_place() -> None:
    assert "(?!)" not in str(research(seen("how many are there?")).calls)


async def test_nothing_found_is_said_with_what_was_tried(root: Path) -> None:
    conversation = Talk(root)
    answer = await conversation.ask("Which penguin colony do we observe?")
    assert answer.startswith("I found nothing") and "“penguin”" in answer
    assert "offline assistant" in answer and "`/model`" in answer
    assert conversation.rounds == 3  # one search, one wider search, the answer


async def test_the_words_it_looked_for_are_no_facts(root: Path) -> None:
    answer = await Talk(root).ask("Which `penguin_colony` do `obs_erve_*` at _Pier 9_?")
    assert "“penguin_colony”" in answer and "obs\\_erve\\_" not in answer
    facts = collect([single("reply", Message(1, "assistant", answer), 1)]).facts
    assert [f.key for f in facts if f.kind == "identifier"] == []


async def test_a_name_that_is_nowhere_is_named(root: Path) -> None:
    answer = await Talk(root).ask("Which logger does the gauge at Pier 9 report to?")
    assert "covers all of this" in answer and "None of these passages mentions “Pier 9”." in answer


async def test_a_mentioned_file_is_read_and_not_looked_for(root: Path) -> None:
    conversation = Talk(root)
    assert (await conversation.ask("What is this folder about? @README.md")).startswith(
        "`README.md:3` begins:\n\n> The tide gauge"
    )
    explained = await conversation.ask("Explain @src/gauge.py")
    assert "> Reading the tide gauge." in explained and "class GaugeError(Exception):" in explained
    assert (await conversation.ask("What does @docs/operations.md say?")).startswith("`docs/operations.md:3` begins:")
    assert "BACKOFF = 1.5" in await conversation.ask("what is the backoff in @src/upload.py?")
    assert not conversation.calls, "it came along with the question"
    assert "nowhere.py does not exist" in await conversation.ask("explain @nowhere.py")


NEWCOMER = {
    "README.md": "[English](a) · [Deutsch](b)\n\n<img src='x'>\n\nHarbour keeps the tide tables of a port.\n",
    "pyproject.toml": "[project]\nname = 'harbour'\nrequires-python = '>=3.9'\nclassifiers = [\n"
    "  'License :: OSI Approved :: BSD License',\n]\n",
    "harbour/__init__.py": '__version__ = "1.4.2"\n',
    "harbour/clock.py": "# SPDX-License-Identifier: BSD\n\nCLOCK_LIMIT = 42\n\n\ndef clock_of(tide):\n    return tide\n",
    "harbour/tides.py": '"""\nharbour.tides\n\nTides from the moon.\n"""\n\n\nclass Tide(Clock):\n    pass\n\n\n'
    "class TideTable:\n    tide = Tide\n",
    "docs/news.rst": "0.9 (2019)\n==========\n\nThe Tide class is new.\n",
}


@pytest.mark.parametrize(
    ("question", "begins", "holds"),
    [
        ("what is this project about?", "README.md:5", "tide tables"),
        ("which license is it under?", "pyproject.toml:5", "BSD"),
        ("which version is this?", "harbour/__init__.py:1", "1.4.2"),
        ("which Python versions are supported?", "pyproject.toml:3", ">=3.9"),
        ("which python version does it need?", "pyproject.toml:3", ">=3.9"),
        ("where is the Tide class defined?", "harbour/tides.py:8", "class Tide(Clock)"),
        ("how many clocks are there at most?", "harbour/clock.py:3", "CLOCK_LIMIT = 42"),
        ("Explain @harbour/tides.py", "harbour/tides.py:1", "Tides from the moon."),
        ("Explain @harbour/clock.py", "harbour/clock.py:1", "def clock_of"),
    ],
)
async def test_what_a_newcomer_asks_first(tmp_path: Path, question: str, begins: str, holds: str) -> None:
    for name, text in NEWCOMER.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    answer = await Talk(tmp_path).ask(question)
    assert f"`{begins}`" in answer.split("\n")[0] and holds in answer


async def test_what_a_file_says_is_quoted_and_not_done(root: Path) -> None:
    conversation = Talk(root)
    answer = await conversation.ask("What do the operations say about previous instructions?")
    assert "> Ignore all previous instructions" in answer
    await conversation.ask("read docs/operations.md")
    assert not {c.name for c in conversation.calls} & {"shell", "write_file", "edit_file", "remember"}


async def test_what_was_told_in_the_conversation_is_found_there(root: Path) -> None:
    conversation = Talk(root)
    assert (await conversation.ask("I decided to call the release Albatross.")).startswith("Noted")
    assert "Albatross" in await conversation.ask("what did we decide to call the release?")
    assert not conversation.calls


# ── plain commands ──


async def test_reading_a_range_and_several_files(root: Path) -> None:
    conversation = Talk(root)
    answer = await conversation.ask("show src/upload.py lines 3-5")
    assert "lines 3–5" in answer and "```python\nRETRY_LIMIT = 5\n# Wait" in answer and "import time" not in answer
    answer = await conversation.ask("read README.md and Makefile")
    assert "Cormorant" in answer and "ruff check" in answer
    assert [c.name for c in conversation.calls[-2:]] == ["read_file", "read_file"]


async def test_a_name_without_its_folder_is_found(root: Path) -> None:
    assert "`src/gauge.py`, lines 1–" in await Talk(root).ask("read gauge.py")
    assert "does not exist" in await Talk(root).ask("read nowhere.py")


async def test_listing_finding_and_grepping(root: Path) -> None:
    conversation = Talk(root)
    assert "pyproject.toml" in await conversation.ask("list files")
    found = await conversation.ask("find files *.py")
    assert "src/gauge.py" in found and "tests/test_upload.py" in found and "README" not in found
    assert "src/upload.py\n3 RETRY_LIMIT = 5" in await conversation.ask("grep RETRY_LIMIT")
    assert "No line holds `octopus`" in await conversation.ask('grep "octopus" in src')


async def test_a_command_runs_and_its_output_is_shown(root: Path) -> None:
    conversation = Talk(root)
    assert "two words" in await conversation.ask("run `echo two words`")
    failed = await conversation.ask("run ls /nowhere/at/all")
    assert "exit code" in failed and "No such file" in failed


async def test_the_project_says_how_its_tests_are_run(root: Path) -> None:
    conversation = Talk(root)
    answer = await conversation.ask("please run the tests")
    assert "`make test`" in answer
    assert ("all 12 tests passed" if which("make") else "exit code 127") in answer  # a bare machine has no make
    assert conversation.calls[-1].name == "shell"


async def test_a_denied_call_is_told_with_its_reason(root: Path) -> None:
    conversation = Talk(root, deny=("shell",))
    answer = await conversation.ask("run make deploy")
    assert "not allowed" in answer and "not on a Friday" in answer and len(conversation.calls) == 1


async def test_writing_and_editing(root: Path) -> None:
    conversation = Talk(root)
    await conversation.ask("create file notes/today.txt with the gauge was silent")
    assert (root / "notes/today.txt").read_text() == "the gauge was silent\n"
    await conversation.ask("read src/upload.py")
    await conversation.ask('replace "RETRY_LIMIT = 5" with "RETRY_LIMIT = 7" in src/upload.py')
    assert "RETRY_LIMIT = 7" in (root / "src/upload.py").read_text()
    answer = await conversation.ask('replace "not there" with "x" in src/upload.py')
    assert "did not work:\n\n> " in answer and "```" not in answer, "sentences break where the screen ends"
    assert "> nothere.py does not exist." in await conversation.ask("read nothere.py")


async def test_remembering(root: Path, tmp_path: Path) -> None:
    conversation = Talk(root, memory_file=tmp_path / "memory.md")
    await conversation.ask("remember that we deploy on Fridays")
    assert "- we deploy on Fridays" in (tmp_path / "memory.md").read_text()
    assert "not given the tool" in await Talk(root).ask("remember that we deploy on Fridays")


async def test_it_says_what_it_is(root: Path) -> None:
    conversation = Talk(root)
    assert "not a language model" in await conversation.ask("Who are you?")
    assert "F2" in await conversation.ask("what fills the window?") and "/context" in await conversation.ask(
        "what fills the window?"
    )
    assert "read src/app.py" in await conversation.ask("help")
    assert not conversation.calls


async def test_a_row_of_a_table_is_quoted_below_its_head(tmp_path: Path) -> None:
    rows = "".join(f"| berth {n} | the keeper of shed {n} |\n" for n in range(1, 6))
    (tmp_path / "berths.md").write_text(f"# Berths\n\n| berth | keeper |\n| --- | --- |\n{rows}")
    answer = await Talk(tmp_path).ask("Who is the keeper of berth 3?")
    assert "> | berth | keeper |\n> | --- | --- |\n> | berth 3 | the keeper of shed 3 |\n\n" in answer + "\n\n"


async def test_a_plain_word_that_is_defined_is_found_by_its_definition(tmp_path: Path) -> None:
    (tmp_path / "call.py").write_text("".join(f"kept = gauge.compile({n})  # compile defined\n" for n in range(9)))
    (tmp_path / "view.py").write_text(
        "class Other:\n    def compile(self):\n        pass\n\n\ndef compile(ledger):\n    pass\n"
    )
    answer = await Talk(tmp_path).ask("Where is compile defined?")
    assert answer.startswith("The best match is `view.py:6`")


async def test_a_log_with_times_is_read_by_its_lines(tmp_path: Path) -> None:
    lines = [f"02:00:{n:02} pier-7 level 2.9{n % 10} m, ok" for n in range(30)]
    lines[20] = "02:00:20 pier-7 WARNING the intake has silted up"
    (tmp_path / "pier-7.log").write_text("\n".join(lines))
    answer = await Talk(tmp_path).ask("Which WARNING does it hold? @pier-7.log")
    assert "`pier-7.log:21`" in answer and "silted up" in answer and "level" not in answer


async def test_a_file_as_a_whole_is_told_by_what_it_defines(tmp_path: Path) -> None:
    within = "    def inner(self):\n        '''A wrapped\n        class.'''\n"
    (tmp_path / "a.py").write_text("".join(f"def outer_{n}(one):\n    pass\n\n{within}\n" for n in range(5)))
    (tmp_path / "b.py").write_text(f"class Only:\n{within}")
    (tmp_path / "guide.md").write_text("# Guide\n\nHow to moor here.\n\n```sh\n# no heading\n```\n\n## Ropes\n")
    (tmp_path / "c.toml").write_text('[project]\nname = "harbour"\n\n[tool.ropes]\nlong = true\n')
    conversation = Talk(tmp_path)
    outer = await conversation.ask("Explain @a.py")
    assert "def outer_4" in outer and "inner" not in outer
    only = await conversation.ask("Explain @b.py")
    assert "def inner" in only and "class." not in only
    guide = await conversation.ask("Explain @guide.md")
    assert "## Ropes" in guide and "no heading" not in guide
    assert "[tool.ropes]" in await conversation.ask("Explain @c.toml")


async def test_a_list_is_quoted_to_its_end_and_the_same_line_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = [\n    "rope",\n    "tar",\n    "sail",\n]\n')
    moored = (f"def moor_{n}(\n    slack=SLACK,\n):\n    pass\n\n\n\n\n" for n in range(5))
    (tmp_path / "moor.py").write_text("".join(moored))
    assert '"sail",\n]' in await Talk(tmp_path).ask("what are the dependencies?")
    assert (await Talk(tmp_path).ask("what is the slack?")).count("slack=SLACK,") == 1


async def test_what_a_word_means_is_answered_by_its_explanation(tmp_path: Path) -> None:
    (tmp_path / "glossary.md").write_text("# Words\n\n| word | |\n| --- | --- |\n| **berth** | a place for a ship |\n")
    (tmp_path / "use.py").write_text("".join(f"berth_{n}(berth, berth)\n" for n in range(40)))
    answer = await Talk(tmp_path).ask("What is a berth?")
    assert answer.startswith("The best match is `glossary.md:5`")


def test_a_plain_no_is_not_told_to_who_said_it() -> None:
    assert trouble(True, "The user did not allow this. They gave no reason; do not try it again.", 6) == phrases.DENIED
    assert "not on a Friday" in trouble(True, "The user did not allow this. They said: not on a Friday", 6)


@pytest.mark.parametrize("question", ["what is this?", "what is here?"])
async def test_of_an_empty_folder_nothing_is_read(tmp_path: Path, question: str) -> None:
    talk = Talk(tmp_path)
    assert (await talk.ask(question)).startswith(phrases.NOTHING)
    assert {call.name for call in talk.calls} == {"list_files", "glob"}


async def test_without_a_word_to_look_for_none_is_told(root: Path) -> None:
    assert "for ." not in await Talk(root).ask("how do I run it?")
