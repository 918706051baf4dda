"""The words of a message as people read them."""

from __future__ import annotations

from ctxchat.core.messages import Message, readable_words


def test_a_command_that_another_agent_wrote_down_in_tags_is_read_as_it_was_typed() -> None:
    tags = "<command-message>review is running</command-message>\n<command-name>/review</command-name>"
    typed = Message(seq=1, role="user", content=f"{tags}\n<command-args>src/a.py</command-args>\nAnd be brief.")
    assert readable_words(typed) == "/review src/a.py\nAnd be brief."


def test_nothing_else_that_the_model_reads_is_hidden() -> None:
    text = "What is <system-reminder>x</system-reminder>?"
    assert readable_words(Message(seq=1, role="user", content=text)) == text
