"""The guard: a request that goes on with the one before is no break; any other is told with its place, cause and cost."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.grouping import group_messages, single
from ctxchat.core.head import Head, ToolSpec
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.prefix_break import UNKNOWN_PLACE
from ctxchat.core.prefix_guard import BY_REFERENCE, PrefixGuard, SentRequest, request_of
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.tool_share import FIND_TOOL
from ctxchat.core.view import compile

words = st.lists(st.sampled_from(["hello", "the tide", "and the moon \ud800", "日本語"]), max_size=8)


def request(said: list[str], tools: tuple[str, ...] = (), **explanations: str) -> SentRequest:
    messages = (Message(n, "user", text, reasoning=Reasoning("why")) for n, text in enumerate(said, 1))
    ledger = Ledger(groups=tuple(single("user", message, message.seq) for message in messages))
    head = Head("You are a test.", tuple(ToolSpec(name, name, {}) for name in tools))
    return request_of(compile(ledger, head, TokenCounter(), keep_reasoning=True), explanations)


@given(words, words)
def test_a_request_that_goes_on_is_no_break_also_after_a_restart(first: list[str], more: list[str]) -> None:
    backoff = PrefixGuard({})
    assert backoff.check("m", request(first)) is None
    kept = backoff.remember("m", request(first))
    assert backoff.check("m", request(first + more)) is None
    assert PrefixGuard({"m": kept}).check("m", request(first + more)) is None
    assert backoff.remember("m", request(first + more)) == PrefixGuard({}).remember("m", request(first + more))


@given(words, words, st.booleans())
def test_any_other_request_is_told_with_its_place_and_what_is_read_anew(
    first: list[str], second: list[str], after_restart: bool
) -> None:
    backoff = PrefixGuard({})
    kept = backoff.remember("m", request(first, a="1"))
    if after_restart:
        backoff = PrefixGuard({"m": kept})
    broke = backoff.check("m", request(second, a="2"))
    same = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    assert (broke is None) == (second[: len(first)] == first)
    if broke is None:
        return
    assert broke.cause == "a"
    if after_restart:
        assert broke.place == UNKNOWN_PLACE
        return
    assert broke.place == same + 2  # tools are counted as the first, the system prompt as the next
    assert broke.kept == sum(request(second).tokens[: broke.place])
    sent_before = {n for n, _ in enumerate(first)}
    assert broke.lost == sum(t for n, t in enumerate(request(second).tokens[2:]) if n >= same and n in sent_before)


def test_the_end_taken_back_costs_nothing() -> None:
    backoff = PrefixGuard({})
    backoff.remember("m", request(["one", "two", "three"]))
    broke = backoff.check("m", request(["one", "two"], rewind=""))
    assert broke and broke.lost == 0 and broke.cause == "rewind"


def test_other_tools_cost_everything_and_each_model_has_its_own_beginning() -> None:
    backoff = PrefixGuard({})
    backoff.remember("m", request(["one"], ("read",)))
    broke = backoff.check("m", request(["one"], ("read", "write")))
    assert broke and broke.place == 0 and not broke.cause
    assert broke.lost == sum(request(["one"], ("read", "write")).tokens)
    assert backoff.check("another", request(["one"])) is None


def test_what_stood_and_stands_no_more_is_named_so() -> None:
    backoff = PrefixGuard({})
    backoff.remember("m", request(["one"], **{"compaction c1": "", "the head": "x"}))
    broke = backoff.check("m", request(["two"], **{"the head": "y", "pin p1": ""}))
    assert broke and broke.cause == "compaction c1 taken back, the head, pin p1"
    assert msgspec.json.decode(msgspec.json.encode(broke), type=type(broke)) == broke


def test_another_effort_is_read_anew_and_leaves_the_reasoning() -> None:
    backoff = PrefixGuard({})
    first = request(["one", "two"])
    backoff.remember("m", first)
    other = msgspec.structs.replace(request(["one", "two", "three"]), effort="high")
    broke = backoff.check("m", other)
    assert broke and broke.cause == "effort high" and broke.thoughts == 0
    assert broke.lost == sum(first.tokens) and broke.kept == 0
    later = PrefixGuard({"m": backoff.remember("m", other)})
    assert backoff.check("m", other) is None
    again = later.check("m", msgspec.structs.replace(other, effort=""))
    assert again and again.cause == "effort as usual" and again.lost == sum(other.tokens), (
        "told after a restart as well"
    )


def test_several_breaks_are_one_sum() -> None:
    backoff = PrefixGuard({})
    first = request(["one", "two", "three"])
    backoff.remember("m", first)
    changed = msgspec.structs.replace(request(["one", "other", "three"], **{"pin p1": ""}), effort="high")
    broke = backoff.check("m", changed)
    assert broke and broke.cause == "pin p1, effort high"
    assert (broke.kept, broke.lost) == (0, sum(changed.tokens))


def test_tools_that_were_found_and_are_told_in_another_form_are_a_break_with_its_cause() -> None:
    """The same model at another address: what it was sent in words would go as references, or the other way round."""
    said = (
        Message(1, "user", "Put it there."),
        Message(2, "assistant", "", (ToolCall("c", FIND_TOOL, "{}"),)),
        Message(3, "tool", "what was found", call_id="c", name=FIND_TOOL),
    )
    ledger = Ledger(groups=group_messages(said))
    view = compile(ledger, Head("You are a test."), TokenCounter())
    in_words, referred = request_of(view, {}), request_of(view, {}, by_reference=True)
    for first, then, cause in ((in_words, referred, BY_REFERENCE), (referred, in_words, f"{BY_REFERENCE} taken back")):
        guard = PrefixGuard({})
        kept = guard.remember("m", first)
        assert guard.check("m", first) is None and PrefixGuard({"m": kept}).check("m", first) is None
        for each in (guard, PrefixGuard({"m": kept})):
            broke = each.check("m", then)
            assert broke is not None and broke.cause == cause
