"""Keys that exist nowhere else are planted wherever a tool may come upon them. One turn of the real program over a real model
server brings them all back; then everything that was sent, written, printed and exported is searched for them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ctxchat.storage import loading
from ctxchat.storage.database import Database
from ctxchat.storage.markdown import flight_recorder
from ctxchat.tui.reading.export import as_markdown
from tests.cli.conftest import Cli, Home
from tests.doubles.http_model import ModelDouble
from tests.doubles.planted import Planted, planted
from tests.doubles.replies import Call, Reply, says

SERVER = Path(__file__).parents[1] / "doubles" / "mcp_server.py"


class Canaries:
    """One for each place, each of another kind, between words by which its text is known again."""

    def __init__(self) -> None:
        kinds = [
            "OpenAI, project",
            "Anthropic",
            "GitHub, classic",
            "PEM",
            "Stripe",
            "Groq",
            "xAI",
            "Slack, bot",
            "JWT",
            "npm",
            "Google",
        ]
        keys = {each.kind: each for each in planted(77)}
        self._left = [keys[kind] for kind in kinds]
        self.placed: dict[str, Planted] = {}

    def text(self, place: str) -> str:
        """The words of a place with a key of its own in them."""
        key = self.placed[place] = self._left.pop(0)
        return f"{place} before\n{key.secret}\n{place} after\n"

    def found(self, data: bytes) -> list[str]:
        """The places whose key, or a good part of it, is in this."""
        return [place for place, key in self.placed.items() if any(piece in data for piece in _pieces(key.secret))]


def _pieces(secret: str) -> list[bytes]:
    body = "".join(line for line in secret.splitlines() if "-----" not in line)
    return [body[at : at + 14].encode() for at in range(8, len(body) - 14, 7)]  # in a run of 21 is one


def calls(home: Home, site: str) -> Reply:
    work = home.work
    return Reply(
        calls=(
            Call("read_file", f'{{"path": "{work}/settings.txt"}}'),
            Call("shell", '{"command": "printenv HARBOUR_NOTE; cat output.txt; cat failing.txt >&2; exit 3"}'),
            Call("shell", '{"command": "cat large.txt"}'),
            Call("harbour__read", f'{{"path": "{work}/served.txt"}}'),
            Call("web_fetch", f'{{"url": "{site}/page"}}'),
            Call("harbour__fail_over", f'{{"path": "{work}/wrong.txt"}}'),
        )
    )


@pytest.fixture
def canaries(home: Home) -> Canaries:
    made = Canaries()
    for place in ("settings", "output", "failing", "served", "wrong", "hooked", "named"):
        home.put(f"{place}.txt", made.text(place))
    home.put("large.txt", "a line of a long text\n" * 9_000 + made.text("large") + "and more of it\n" * 9_000)
    home.put("AGENTS.md", made.text("memory"))
    return made


async def test_no_key_that_a_tool_came_upon_is_sent_written_printed_or_exported(
    home: Home, canaries: Canaries, cli: Cli
) -> None:
    environment = canaries.text("environment").replace("\n", " ")
    page = canaries.text("page").splitlines()
    async with ModelDouble(lambda body: next(replies), {"/page": page}) as double:
        replies = iter([calls(home, double.root), *[says("Done.")] * 3])
        home.settings.joinpath("config.toml").write_text(
            'model = "openai/double"\n[permissions]\nmode = "all"\nsandbox = false\n[tools]\nmcp_wait = 60\n'
            f'[models."openai/double"]\napi_base = "{double.base_url}"\nwindow = 60000\n'
            f"[mcp.harbour]\ncommand = {sys.executable!r}\nargs = [{str(SERVER)!r}]\n"
            '[[hooks]]\nevent = "tool_finished"\naction = "run"\ncommand = "cat hooked.txt"\nshow_output = true\nmax_fires = 1\n'
        )
        ran = await asyncio.to_thread(
            home.start, "run", "--json", "look at @named.txt", HARBOUR_NOTE=environment, OPENAI_API_KEY="unused"
        )
        assert ran.code == 0, ran.err
        printed = [ran.out + ran.err]
    session = next(home.data.joinpath("sessions").iterdir()).name
    for view, form in (("record", "openai"), ("record", "jsonl"), ("record", "markdown"), ("model", "jsonl")):
        done = await asyncio.to_thread(cli, "sessions", "export", session, "--view", view, "--format", form)
        assert done.code == 0 and "output before" in done.out, done.err
        printed.append(done.out + done.err)
    for command in (
        ("compact", session, "--strategy", "truncate", "--keep-recent", "1"),
        ("archive", "search", "before", "--json"),
        ("context", session, "--json"),
    ):
        done = await asyncio.to_thread(cli, *command)
        printed.append(done.out + done.err)
    database = Database(home.data)
    state = (await database.run(loading.load, database, session)).state
    database.close()
    printed += [flight_recorder(state), as_markdown(state)]
    sent = "\n".join(str(seen.body) for seen in double.requests)
    for place in (
        "settings",
        "output",
        "failing",
        "served",
        "wrong",
        "hooked",
        "named",
        "memory",
        "environment",
        "page",
    ):
        assert f"{place} before" in sent and f"{place} after" in sent, f"{place} was not brought back"
    assert canaries.found(sent.encode()) == [] and sent.count("[masked ") >= len(canaries.placed) - 1
    assert canaries.found("\n".join(printed).encode()) == []
    written = {path: path.read_bytes() for path in home.data.rglob("*") if path.is_file()}
    assert any(b"large before" in data for path, data in written.items() if "tool-results" in str(path)), (
        "none was spilled"
    )
    assert {str(path): found for path, data in written.items() if (found := canaries.found(data))} == {}
    assert all(path.stat().st_mode & 0o077 == 0 for path in written)
