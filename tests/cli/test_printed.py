"""What a turn without a screen prints of the calls a model wants: secrets in them masked, the lines whole."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.events import ApprovalRequested, Stamped, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.secrets import Masking, marks_in
from ctxchat.headless import run
from tests.agent.desk import Desk
from tests.agent.test_masking import Says
from tests.doubles.planted import planted
from tests.doubles.scripted import ScriptedModel, calls, fails, says

KEYS = {each.kind: each.secret for each in planted(9)}
PEM, KEY = KEYS["PEM"], KEYS["OpenAI, project"]


@pytest.mark.parametrize("as_json", [True, False])
async def test_what_a_model_wants_done_is_printed_without_secrets(as_json: bool) -> None:
    arguments = {"command": f"send {KEY}", "content": f"before\n{PEM}\nafter"}
    model = ScriptedModel([calls(("says", arguments)), says("Done.")])
    desk = Desk(model, tools=[Says("said", access="run")], mode="read-only")
    desk.session.attachments.mask = Masking(bytes(32))
    out, err = io.StringIO(), io.StringIO()
    await run(desk.session, "send it", as_json=as_json, out=out, err=err)
    printed = out.getvalue() + err.getvalue()
    assert KEY[:24] not in printed and PEM.splitlines()[1][:24] not in printed
    if as_json:
        started = next(line for line in map(json.loads, out.getvalue().splitlines()) if line["type"] == "tool_started")
        assert marks_in(started["arguments"]["command"]) and started["arguments"]["content"].endswith("\nafter")
    else:
        assert "says send [masked" in err.getvalue()


async def test_what_a_person_would_judge_a_call_by_is_printed_without_secrets() -> None:
    async def send(text: str, attachments: object):
        diff = f"--- a\n+++ b\n+{PEM}\n+token = '{KEY}'\n"
        yield Stamped(
            "s", 1, "now", ApprovalRequested("c1", "write_file", "write a", "write", diff, ("write_file: a",))
        )
        yield Stamped("s", 2, "now", TurnFinished("done", "", 1, 0.1))

    session = SimpleNamespace(send=send, attachments=SimpleNamespace(mask=Masking(bytes(32))))
    out = io.StringIO()
    assert await run(session, "go", as_json=True, out=out, err=io.StringIO()) == 0  # type: ignore[arg-type]
    asked = json.loads(out.getvalue().splitlines()[0])
    assert len(marks_in(asked["preview"])) == 2 and asked["preview"].startswith("--- a\n+++ b\n+[masked")


@pytest.mark.parametrize("as_json", [True, False])
async def test_where_nobody_is_there_the_model_and_the_flags_that_ask_another_one_are_named(as_json: bool) -> None:
    away = ModelError("Cannot connect to 127.0.0.1:9: nobody listens there.", "Check it.", kind="connection")
    desk = Desk(ScriptedModel([fails(away)]), options=Options(retries=0))
    out, err = io.StringIO(), io.StringIO()
    assert await run(desk.session, "hello", as_json=as_json, out=out, err=err) == 1
    said = out.getvalue() + err.getvalue()
    assert all(
        word in said for word in ("scripted/model: Cannot connect to 127.0.0.1:9", "--model offline", "Check it.")
    )
