"""Three sayings in three processes, each with tool rounds, while memory and folder change in between: strict servers refuse none
of them and read nearly all of each request from their cache."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.conftest import Home
from tests.doubles.strict import Answer, StrictClaude, StrictOpenAI, StrictServer, appended, calls, says, thought, use

SCRIPT = [
    answer
    for n in range(3)
    for answer in (
        calls(thought(f"look {n}"), f"I look {n}.", thought("and more"), use("list_dir", path=".")),
        calls(thought(""), use("grep", pattern="tide"), use("read_file", path=f"note{n}.txt")),
        says(f"Seen {n}.", think="well"),
    )
]


async def three(home: Home, server: StrictServer, model: str, base: str = "") -> None:
    memory = "".join(f"- rule {n}: measure before you believe\n" for n in range(300))
    for number in range(3):
        memory += f"- and a new rule {number}\n"
        home.put("AGENTS.md", memory)
        home.put(f"note{number}.txt", "the tide reports every ninety seconds\n")
        again = ("--continue",) if number else ()
        ran = await asyncio.to_thread(
            home.start,
            "run",
            f"question {number}",
            *again,
            *("--model", model, "--api-base", f"{server.root}{base}", "--api-key-env", "SOME_KEY"),
            SOME_KEY="sk-test",
        )
        assert ran.code == 0, ran.err
    assert not [exchange for exchange in server.exchanges if exchange.refused]
    assert len(server.exchanges) == len(SCRIPT)
    assert appended(server.exchanges) == ""
    assert server.read_share() >= 0.9


@pytest.mark.parametrize("model", ["anthropic/claude-fable-5-2", "anthropic/claude-opus-5-5"])
async def test_claude_refuses_nothing_and_reads_its_cache(home: Home, model: str) -> None:
    script: list[Answer] = list(SCRIPT)
    async with StrictClaude(script) as server:
        await three(home, server, model)


async def test_openais_responses_read_their_cache(home: Home) -> None:
    async with StrictOpenAI(list(SCRIPT)) as server:
        await three(home, server, "openai/responses/gpt-6.2-sol", "/v1")
