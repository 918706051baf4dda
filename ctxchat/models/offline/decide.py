"""The whole assistant as one function: a view in, a reply out. The same view gives the same reply; nothing outside it counts."""

from __future__ import annotations

import msgspec

from ctxchat.core.messages import ToolCall
from ctxchat.core.view import View
from ctxchat.models.offline import intents as wish
from ctxchat.models.offline import phrases
from ctxchat.models.offline.actions import act
from ctxchat.models.offline.language import detect
from ctxchat.models.offline.overview import overview
from ctxchat.models.offline.reply import Decision
from ctxchat.models.offline.research import research
from ctxchat.models.offline.transcript import Tools, Transcript, read


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer in words, or calls of tools that were offered with `reasoning` about them; never both empty."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


def decide(view: View) -> Reply:
    """What to say or do next. Never raises; ends every turn after at most three rounds with tools."""
    seen = read(view)
    tools = Tools(view.tools)
    made = _decide(seen, tools)
    calls = tuple(
        ToolCall(f"{seen.next_id}-{i}", w.name, msgspec.json.encode(w.arguments).decode())
        for i, w in enumerate(made.wanted, 1)
        if w.name in tools
    )
    if calls:
        return Reply(made.text, calls, made.thought)
    return Reply(made.text or phrases.NO_QUESTION)


def _decide(seen: Transcript, tools: Tools) -> Decision:
    if not seen.question.strip():
        return Decision(phrases.NO_QUESTION)
    language = detect(seen.question, *seen.earlier[:3])
    wanted = wish.intent(seen.question)
    match wanted:
        case wish.Talk(about="who"):
            own = "" if language == "en" else "\n\n" + phrases.say(language, "limits")
            return Decision(phrases.WHO + own)
        case wish.Talk(about=about):
            words = {
                "help": phrases.HELP,
                "window": phrases.WINDOW,
                "hello": phrases.GREETING,
                "thanks": phrases.THANKS,
                "told": phrases.TOLD,
            }
            return Decision(words[about])
        case wish.Overview():
            return overview(seen, tools, language)
        case wish.Ask():
            return research(seen, tools, language)
        case wish.Recall():
            return research(seen, tools, language, about_talk=True)
        case _:
            return act(wanted, seen, tools, language)
