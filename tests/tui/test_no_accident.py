"""No accident answers a question: nothing in its first half second, nothing while keys are still coming, and no key is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot

from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.core.events import ApprovalRequested, CompactionSuggested, QuestionAsked
from ctxchat.core.permissions import Answer, Grant
from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.chat.asked import AFTER_TAB_S, KEY_PAUSE_S, Asked
from ctxchat.tui.panels.panel import CONFIRM_PAUSE_S, Confirm
from ctxchat.tui.panels.trust import TrustScreen
from ctxchat.tui.transcript.blocks import CompactionMark
from tests.tui.chatting import blocks, chatting, focus_on, sure, until, words
from tests.tui.fakes import FakeSession, Pause, reply

ASK = ApprovalRequested("c1", "shell", "run make", "run", "make deploy", ("shell: make deploy",))
NEXT = ApprovalRequested("c2", "shell", "run rm", "run", "rm -rf build", ("shell: rm -rf build",))
OPEN = QuestionAsked("q1", "Which port?", ("8080", "9090"))


class Watch:
    """Time that moves when the test says so."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def asks(*asked: ApprovalRequested | QuestionAsked) -> FakeSession:
    steps = [step for each in asked for step in (each, Pause(f"answer:{each.call_id}"))]
    return FakeSession(lambda text: [Pause("ask"), *steps, *reply("ok")] if text == "x" else reply("ok"))


async def appear(app: CtxchatApp, pilot: Pilot[int], session: FakeSession) -> Asked:
    await pilot.press("x", "enter")
    await until(pilot, lambda: app.controller.busy)
    session.approvals("ask").set()
    await until(pilot, lambda: app.query(Asked))
    return app.query_one(Asked)


async def wait(app: CtxchatApp, pilot: Pilot[int], watch: Watch, seconds: float) -> None:
    watch.time += seconds
    app.chat.questions._release_held()
    await pilot.pause()


@pytest.mark.parametrize("asked", [ASK, OPEN])
@pytest.mark.parametrize("typed", ["also", "yes", "n", "say", "run"])
async def test_letters_under_flying_fingers_are_the_draft(
    tmp_path: Path, asked: ApprovalRequested | QuestionAsked, typed: str
) -> None:
    session, watch = asks(asked), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        panel = await appear(app, pilot, session)
        for letter in typed:
            watch.time += KEY_PAUSE_S * 0.9  # slow fingers, and never a pause
            await pilot.press(letter)
        assert app.chat.composer.draft == typed and not session.answers and not session.replies
        await wait(app, pilot, watch, KEY_PAUSE_S)
        assert not panel.held and app.focused is app.chat.composer.prompt, "someone is writing: the focus stays"


async def test_after_a_pause_the_question_takes_keys_where_nobody_writes(tmp_path: Path) -> None:
    session, watch = asks(ASK, NEXT), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        panel = await appear(app, pilot, session)
        assert panel.held and "a moment" in words(app)
        await wait(app, pilot, watch, KEY_PAUSE_S)
        assert not panel.held and panel.has_focus and "a moment" not in words(app)
        for _ in range(5):
            app.post_message(Key("y", "y"))  # held down: it is one answer, and the second question is not meant
        await pilot.pause()
        assert not session.answers
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await until(pilot, lambda: len(session.answers) == 1 and app.query(Asked) and app.query_one(Asked).held)
        await wait(app, pilot, watch, KEY_PAUSE_S * 0.9)
        await pilot.press("y")
        assert [call for call, _ in session.answers] == ["c1"] and app.chat.composer.draft.endswith("y")
        session.approvals("answer:c2").set()


ROOM = CompactionSuggested(9_000, 10_000, 0.9, 3_000)
WIDE = ApprovalRequested("c1", "shell", "run make", "run", "make", ("shell: make",), Grant(network=True))
SENTENCES = (
    "all good",
    "yes please",
    "so be it",
    "1 more thing",
    "edit it",
    "now",
    "is it done?",
    "also 2",
    "aaay",
    "no, do not",
)


@pytest.mark.parametrize("asked", [WIDE, ROOM])
async def test_a_sentence_typed_at_a_question_is_the_draft_and_approves_nothing(
    tmp_path: Path, asked: ApprovalRequested | CompactionSuggested
) -> None:
    session, watch = FakeSession(lambda _: [asked, Pause("answer:c1"), *reply("ok")]), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(Asked))
        panel = app.query_one(Asked)
        for sentence in SENTENCES:
            watch.time += 60  # it is open for long, and nobody has written anything
            app.chat.questions._release_held()
            panel.focus()
            await until(pilot, lambda: panel.has_focus)
            for letter in sentence:
                await pilot.press("space" if letter == " " else letter)
                watch.time += KEY_PAUSE_S * 0.9
                app.chat.questions._release_held()
            assert app.chat.composer.draft == sentence and not panel.has_focus
            await wait(app, pilot, watch, 60)
            app.chat.composer.set_draft("")
            assert not session.answers and not session.agreed and not session.snoozed
        assert "[x]" not in words(app), "what a digit ticked is not ticked any more"
        session.approvals("answer:c1").set()


async def test_what_holds_from_now_on_is_confirmed_with_enter(tmp_path: Path) -> None:
    session, watch = asks(ASK), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        panel = await appear(app, pilot, session)
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await pilot.press("a", "enter")
        await wait(app, pilot, watch, KEY_PAUSE_S)
        assert "enter allow it from now on" in words(app) and "deny" not in words(app)
        await pilot.press("enter")
        assert not session.answers, "the line that is typed may end here"
        await pilot.press("l")
        assert "deny" in words(app) and app.chat.composer.draft == "l"
        await pilot.press("backspace", "tab")
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await until(pilot, lambda: panel.has_focus)
        await pilot.press("a")
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await pilot.press("enter")
        await until(pilot, lambda: [answer.verdict for _, answer in session.answers] == ["always"])


async def test_no_answer_is_taken_from_the_mouse_at_once(tmp_path: Path) -> None:
    session, watch = asks(ASK), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        panel = await appear(app, pilot, session)
        always = next(a for a in panel.query(".answer") if "always" in str(a.render()))
        await pilot.click(always)
        assert not session.answers
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await pilot.click(always)
        confirm = next(a for a in panel.query(".answer") if "from now on" in str(a.render()))
        await pilot.click(confirm)
        assert not session.answers, "a second click is no second thought"
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await pilot.click(confirm)
        await until(pilot, lambda: [a.verdict for _, a in session.answers] == ["always"])


@pytest.mark.parametrize(
    "keys", [["enter"], ["escape"], ["tab", "y"], ["tab", "enter"], ["a", "backspace", "tab", "s"]]
)
async def test_no_other_key_answers_before_it_may(tmp_path: Path, keys: list[str]) -> None:
    for asked in (ASK, OPEN):
        session, watch = asks(asked), Watch()
        async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
            await appear(app, pilot, session)
            await pilot.press(*keys)
            assert not session.answers and not session.replies


async def test_a_paste_is_the_draft_and_an_unmarked_one_too(tmp_path: Path) -> None:
    session, watch = asks(ASK), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        panel = await appear(app, pilot, session)
        app.post_message(Paste("yes"))
        await until(pilot, lambda: app.chat.composer.draft == "yes")
        await wait(app, pilot, watch, 60)
        for key in ("tab", "y", "e", "s"):  # keys as a terminal sends them that cannot mark a paste
            app.post_message(Key(key, None if key == "tab" else key))
        await until(pilot, lambda: app.chat.composer.draft == "yesyes")
        await wait(app, pilot, watch, 60)
        await pilot.press("tab")
        await wait(app, pilot, watch, AFTER_TAB_S)
        await until(pilot, lambda: panel.has_focus)
        app.post_message(Paste("no"))
        await until(pilot, lambda: app.chat.composer.draft == "yesyesno")
        assert not session.answers


async def test_tab_goes_to_the_question_as_soon_as_it_may_be_answered(tmp_path: Path) -> None:
    session, watch = asks(ASK), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        panel = await appear(app, pilot, session)
        await pilot.press(*"wait", "tab")
        assert not panel.has_focus
        await wait(app, pilot, watch, KEY_PAUSE_S)
        assert panel.has_focus
        await pilot.press("y")
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await until(pilot, lambda: session.answers == [("c1", Answer("once"))])
        assert app.chat.composer.draft == "wait"


async def test_the_suggestion_to_make_room_waits_as_well(tmp_path: Path) -> None:
    suggested = CompactionSuggested(9_000, 10_000, 0.9, 3_000)
    session, watch = FakeSession(lambda _: [suggested, Pause(), *reply("ok")]), Watch()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(Asked))
        await pilot.press("tab", "n")
        assert not session.agreed and app.chat.composer.draft == "n"
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await pilot.press("tab")
        await wait(app, pilot, watch, AFTER_TAB_S)
        await pilot.press("n")
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await until(pilot, lambda: session.agreed == [("now", "")])


async def test_that_it_is_held_is_said_whole_and_the_way_to_it_once(tmp_path: Path) -> None:
    watch = Watch()
    async with chatting(tmp_path, FakeSession(), (80, 24), runtime=Runtime(now=watch)) as (app, pilot):
        await app.chat.questions.unreached("m/x", "http://x", waiting=True)
        await until(
            pilot, lambda: "esc not now  a moment" in words(app) and "tab" not in words(app).replace("shift+tab", "")
        )
        await wait(app, pilot, watch, KEY_PAUSE_S)
        await until(pilot, lambda: "tab first" in words(app))
        assert "tab to answer" not in words(app)


async def test_the_mode_in_which_nothing_asks_is_confirmed_with_enter_after_a_pause(tmp_path: Path) -> None:
    session, watch = FakeSession(), Watch()
    mode = session.permissions
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        await pilot.press(*["shift+tab"] * 4)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert mode.mode == "ask" and "Mode all?" in words(app), "what stands at the composer is what a no leaves"
        assert "]ask " in str(app.chat.query_one("#frame").border_title)
        await pilot.press("shift+tab", "enter")
        assert isinstance(app.screen, Confirm), "enter came with the keys before it"
        await pilot.press(*"wait", "enter")
        await until(pilot, lambda: session.sent == ["wait"] and mode.mode == "ask")
        await pilot.press(*["shift+tab"] * 4)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        watch.time += CONFIRM_PAUSE_S
        await pilot.press("enter")
        await until(pilot, lambda: mode.mode == "all" and "ALL: nothing asks" in words(app))
        assert app.query_one("#frame").styles.border.top[1].hex == app.theme_variables["error"].upper()
        await pilot.press("shift+tab")
        await until(pilot, lambda: mode.mode == "ask")


async def test_an_agent_whose_mode_is_all_is_confirmed_and_one_that_asks_is_not(tmp_path: Path) -> None:
    session = FakeSession()
    settings = Settings(agents={"bold": AgentSettings(permissions="all"), "shy": AgentSettings(permissions="plan")})
    async with chatting(tmp_path, session, settings=settings) as (app, pilot):
        await pilot.press(*"/agent shy", "enter")
        await until(pilot, lambda: session.agent == "shy")
        await pilot.press(*"/agent bold", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "The agent bold works in mode all." in words(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert session.agent == "shy"
        await pilot.press(*"/agent bold", "enter")
        await sure(pilot)
        await until(pilot, lambda: session.agent == "bold")


async def test_trust_is_given_with_enter_after_a_pause_and_by_no_letter(tmp_path: Path) -> None:
    session, watch, said = FakeSession(), Watch(), list[bool | None]()
    async with chatting(tmp_path, session, runtime=Runtime(now=watch)) as (app, pilot):
        for pressed, answer in ((["y"], False), (["y", "enter"], False), (["escape"], False), (["enter"], True)):
            app.push_screen(TrustScreen(tmp_path, ["hook at error: runs make"]), said.append)
            shown = ("Trust", "hook at error: runs make", "trust it")
            await until(pilot, lambda shown=shown: all(word in words(app) for word in shown))
            await pilot.press("enter")
            assert isinstance(app.screen, TrustScreen), "enter was on its way before it could be read"
            watch.time += CONFIRM_PAUSE_S
            await pilot.press(*pressed)
            await until(pilot, lambda: app.screen is app.chat)
            assert said.pop() is answer


async def test_a_word_typed_at_a_compaction_is_the_draft_and_changes_nothing(tmp_path: Path) -> None:
    session, watch = FakeSession(), Watch()
    async with chatting(tmp_path, session, (120, 36), runtime=Runtime(now=watch)) as (app, pilot):
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
            await until(pilot, lambda: not app.controller.busy and not app.chat.composer.queued.drafts)
        session.fold()
        await app.chat.refresh_session()
        await until(pilot, lambda: blocks(app, CompactionMark))
        before = session.state.ledger
        for word in ("use the", "be it"):
            focus_on(app, *blocks(app, CompactionMark))
            await pilot.press(*["space" if letter == " " else letter for letter in word])
            await until(pilot, lambda word=word: app.screen is app.chat and app.chat.composer.draft == word[1:])
            app.chat.composer.set_draft("")
        assert session.state.ledger is before
