"""Lines of an MCP server's standard output: whole ones are handed over, one that is too long costs its own answer."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.tools.mcp.stream_guard import with_line_limit

LIMIT = 200


class Pieces:
    """Text as it comes out of a pipe, in any pieces."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self.__post_init__()

    def __post_init__(self) -> None: ...

    async def receive(self) -> str:
        if not self.pieces:
            raise EOFError
        return self.pieces.pop(0)


@given(st.lists(st.integers(0, 3 * LIMIT), max_size=8), st.lists(st.integers(1, 400), max_size=40))
async def test_each_line_comes_as_it_is_or_as_a_refusal_under_its_own_number(
    lengths: list[int], cuts: list[int]
) -> None:
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, "result": "x" * length}) for n, length in enumerate(lengths)]
    text, pieces = "".join(f"{line}\n" for line in lines), list[str]()
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]
    stream = with_line_limit(Pieces, LIMIT)([piece for piece in (*pieces, text) if piece])
    got = ""
    try:
        while True:
            got += await stream.receive()
    except EOFError:
        pass
    answers = [json.loads(line) for line in got.splitlines()]
    assert [answer["id"] for answer in answers] == list(range(len(lines)))
    for line, answer in zip(lines, answers, strict=True):
        assert answer == json.loads(line) or (len(line) > LIMIT and "longer than" in answer["error"]["message"])


async def test_a_line_that_belongs_to_no_answer_ends_the_connection() -> None:
    stream = with_line_limit(Pieces, LIMIT)(["x" * 150, "x" * 150])
    assert set(await stream.receive()) == {"\n"}
