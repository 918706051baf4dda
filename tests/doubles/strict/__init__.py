"""Model servers on loopback that check of every request what their documentation demands: what a thought is bound to, what stands
in which order, and what a cache reads and writes.

    async with StrictClaude([calls(thought("hm"), use("read_file", path="a.txt")), says("Done.")]) as server:
        ... server.root, server.exchanges, server.read_share()

`claude.StrictClaude` speaks Anthropic's Messages, `gpt.StrictOpenAI` OpenAI's Responses and Chat. Both keep every request as the
bytes it came in (`Exchange.raw`), and `appended` says where one does not begin with the one before.
"""

from tests.doubles.strict.claude import StrictClaude
from tests.doubles.strict.gpt import StrictOpenAI
from tests.doubles.strict.script import Answer, Redacted, Said, Thought, Use, answers, calls, says, thought, use
from tests.doubles.strict.server import Exchange, Refused, StrictServer, appended, pieces

__all__ = [
    "Answer",
    "Exchange",
    "Redacted",
    "Refused",
    "Said",
    "StrictClaude",
    "StrictOpenAI",
    "StrictServer",
    "Thought",
    "Use",
    "answers",
    "appended",
    "calls",
    "pieces",
    "says",
    "thought",
    "use",
]
