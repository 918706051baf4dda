"""Three hundred tools of ten servers: what the head costs, and whether the right one is found.

    python -m benchmarks.tools_on_demand

A hundred plain-language questions are put to `find_tools`, each with one right answer; found means among the first five. Tools
and questions are made up (`tools_on_demand.txt`), and the word list of the ranking is by the same hand: every second question was
looked at while it was mended, the others were only counted.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ctxchat.core.head import ToolSpec
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.tool_search import best_tools
from ctxchat.core.tool_share import Afforded, afford

SHOWN = 5
"""Tools that one call of `find_tools` describes."""


class Question(msgspec.Struct, frozen=True):
    """What is wanted, the tool that does it, and its place among those found, from 1; 0 where it is not."""

    wanted: str
    tool: str
    place: int = 0


def load() -> tuple[list[ToolSpec], list[Question]]:
    """The tools and the questions."""
    tools: list[ToolSpec] = []
    questions: list[Question] = []
    part = ""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("["):
            part = line.strip("[]")
        elif part == "questions":
            questions.append(Question(*line.split(" | ")))
        elif part:
            name, about, arguments = line.split(" | ")
            properties = {argument: {"type": "string"} for argument in arguments.split(", ")}
            tools.append(ToolSpec(f"{part}__{name}", about, {"type": "object", "properties": properties}))
    return tools, questions


def share(window: int) -> tuple[Afforded, int]:
    """What a window of so many tokens is sent of them, and its tokens."""
    tools, counter = load()[0], TokenCounter()
    weigh = lambda tool: counter.tool(tool.schema)  # noqa: E731
    sent = afford(tools, weigh, counter.count_text, window)
    return sent, sum(map(weigh, sent.tools)) + counter.count_text(sent.on_demand)


def run() -> list[Question]:
    """Each question with the place of its answer."""
    tools, questions = load()
    answered: list[Question] = []
    for question in questions:
        names = [tool.name for tool in best_tools(question.wanted, tools, len(tools))]
        place = names.index(question.tool) + 1 if question.tool in names else 0
        answered.append(msgspec.structs.replace(question, place=place))
    return answered


def main() -> None:
    tools, counter = load()[0], TokenCounter()
    whole = sum(counter.tool(tool.schema) for tool in tools)
    print(f"{len(tools)} tools, {whole:,} tokens with their descriptions; in the head of a window of")
    for window in (8_000, 32_000, 128_000, 200_000, 1_000_000):
        sent, tokens = share(window)
        print(f"  {window:>9,}: {len(sent.tools)} described, {tokens:,} tokens")
    answered = run()
    found = [each for each in answered if 0 < each.place <= SHOWN]
    print(
        f"right tool among the first {SHOWN}: {len(found)} of {len(answered)}; first: {sum(e.place == 1 for e in answered)}"
    )
    for parity, name in ((0, "looked at"), (1, "only counted")):
        half = answered[parity::2]
        print(f"  {name}: {sum(0 < e.place <= SHOWN for e in half)} of {len(half)}")
    for each in answered[::2]:
        if each not in found:
            print(f"  not: {each.wanted} ({each.tool} is at {each.place or 'none'})")


if __name__ == "__main__":
    main()
