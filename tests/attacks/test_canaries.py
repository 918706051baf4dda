"""Keys that exist nowhere else are planted wherever a tool may come upon them. One turn of the real program over a real model
server brings them all back; then everything that was sent, written, printed and exported is searched for them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ctxchat.cli import ending
from ctxchat.core.secrets import masked
from ctxchat.presentation.export import as_markdown
from ctxchat.storage import loading
from ctxchat.storage.database import Database
from ctxchat.storage.markdown import flight_recorder
from tests.cli.conftest import Cli, Home
from tests.doubles.http_model import ModelDouble
from tests.doubles.planted import Planted, planted
from tests.doubles.replies import Call, Reply, refuses, says

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
            "Docker",
            "Hugging Face",
            "Perplexity",
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
    typed = canaries.text("typed").replace("\n", " ")
    refusal = canaries.text("refusal").replace("\n", " ")
    async with ModelDouble(lambda body: next(replies), {"/page": page}) as double:
        replies = iter([calls(home, double.root), says("Done."), *[refuses(401, f"Wrong key: {refusal}")] * 9])
        settings = (
            'model = "openai/double"\n[permissions]\nmode = "all"\nsandbox = false\n[tools]\nmcp_wait = 60\n'
            f'[models."openai/double"]\napi_base = "{double.base_url}"\nwindow = 60000\n'
            '[[hooks]]\nevent = "tool_finished"\naction = "run"\nshow_output = true\n'
            'command = "cat >>heard.txt; cat hooked.txt"\n'
        )
        server = f"[mcp.harbour]\ncommand = {sys.executable!r}\nargs = [{str(SERVER)!r}]\n"
        home.settings.joinpath("config.toml").write_text(settings + server)
        ran = await asyncio.to_thread(
            home.start,
            "run",
            "--json",
            f"{typed} look at @named.txt",
            HARBOUR_NOTE=environment,
            OPENAI_API_KEY="unused",
        )
        assert ran.code == 0, ran.err
        printed = [ran.out + ran.err]
        home.settings.joinpath("config.toml").write_text(settings)  # its start would only take time from now on
        for failing in (("run", "--continue", "more"), ("run", "--continue", "--json", "more"), ("doctor", "--json")):
            ran = await asyncio.to_thread(home.start, *failing, OPENAI_API_KEY="unused")
            assert ran.code == 1 and "refusal before" in ran.out + ran.err, ran.err
            printed.append(ran.out + ran.err)
    session = next(home.data.joinpath("sessions").iterdir()).name
    for view in ("record", "model"):
        for form in ("openai", "jsonl", "markdown"):
            done = await asyncio.to_thread(cli, "sessions", "export", session, "--view", view, "--format", form)
            assert done.code == 0 and "output before" in done.out and "typed before" in done.out, done.err
            printed.append(done.out + done.err)
    for command in (
        ("compact", session, "--strategy", "truncate", "--keep-recent", "1"),
        ("archive", "search", "before", "--json"),
        ("archive", "show", f"{session}-c1", "--json"),
        ("archive", "export", str(home.data / "exported")),
        ("context", session, "--json"),
        ("sessions", "list", "--json"),
        ("sessions", "show", session, "--json"),
        ("run", f"--session={typed}", "x"),
        ("archive", "show", typed),
    ):
        done = await asyncio.to_thread(cli, *command)
        printed.append(done.out + done.err)
    assert sum("typed before" in text for text in printed) >= 9, "what was typed is to be seen where it may leak"
    printed.append(ending.written_down(ValueError(f"odd value {typed}")))
    database = Database(home.data)
    state = (await database.run(loading.load_state, database, session)).state
    database.close()
    printed += [flight_recorder(state), masked(as_markdown(state))]
    sent = "\n".join(str(seen.body) for seen in double.requests)
    assert "environment before" not in sent, "a variable whose value is a secret is handed to no command"
    for place in set(canaries.placed) - {"large", "refusal", "environment"}:
        assert f"{place} before" in sent and f"{place} after" in sent, f"{place} was not brought back"
    assert set(canaries.found(sent.encode())) == {"typed"} and sent.count("[masked ") >= len(canaries.placed) - 2
    assert [text[:2_000] for text in printed if canaries.found(text.encode())] == []
    heard = home.work.joinpath("heard.txt").read_bytes()
    assert b"output before" in heard and canaries.found(heard) == []
    written = {path: path.read_bytes() for path in home.data.rglob("*") if path.is_file()}
    for name in ("tool-results", "exported", "errors.log"):
        assert any(b" before" in data for path, data in written.items() if name in str(path)), f"no {name}"
    found = {path: found for path, data in written.items() if (found := canaries.found(data))}
    assert {place for places in found.values() for place in places} <= {"typed"}, found
    names = {path.name for path in found}  # the record, its index, its daily copy
    assert all(name.startswith(("ctxchat.db", "index-", "daily-")) for name in names), names
    assert all(path.stat().st_mode & 0o077 == 0 for path in written)


def test_what_was_imported_comes_out_as_it_was_and_what_is_said_since_masked(
    home: Home, canaries: Canaries, cli: Cli
) -> None:
    first, second = canaries.text("imported"), canaries.text("typed")
    before = [{"role": "user", "content": first}, {"role": "assistant", "content": f"You said: {first}"}]
    session = cli("sessions", "import", home.put("chat.json", before), "--json").json["id"]
    fork = cli("sessions", "fork", session, "--json").json["id"]
    for id in (session, fork):
        ran = home.start("run", "--session", id, "--model", "offline", second)
        assert ran.code == 0, ran.err
        exported = cli("sessions", "export", id).json
        assert exported[:2] == before
        assert "typed before" in str(exported[2:]) and canaries.found(str(exported[2:]).encode()) == []
