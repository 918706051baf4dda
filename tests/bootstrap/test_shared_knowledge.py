"""What a program keeps from session to session, and what it keeps from whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.agent.model_knowledge import Known
from ctxchat.agent.turn.permissions import judge
from ctxchat.bootstrap.extensions import Extensions
from ctxchat.bootstrap.model_choice import Overrides, price
from ctxchat.bootstrap.program import Program
from ctxchat.bootstrap.remembered import StoredModelKnowledge
from ctxchat.bootstrap.session_settings import Configuring
from ctxchat.config.effective import load_settings
from ctxchat.core.calibration import level
from ctxchat.core.guarded import guarded
from ctxchat.core.journal import WindowLearned
from ctxchat.core.permissions import AccessRequest
from ctxchat.models.offline.assistant import OfflineAssistant
from ctxchat.models.offline.summary import OfflineSummariser
from ctxchat.storage.database import Database


async def test_what_is_known_of_a_model_outlives_the_program(tmp_path: Path):
    known = Known(calibration=level(1.5, band=0.02, samples=7))
    with Database(tmp_path) as database:
        await StoredModelKnowledge(database).save("openai/x", known)
    with Database(tmp_path) as database:
        assert StoredModelKnowledge(database).load("openai/x") == known
        assert StoredModelKnowledge(database).load("openai/y") == Known()
        with database.transaction() as connection:
            connection.execute("UPDATE meta SET value = 'broken'")
        assert StoredModelKnowledge(database).load("openai/x") == Known()


async def test_the_list_of_models_says_which_window_a_refusal_taught(tmp_path: Path):
    tmp_path.joinpath("config.toml").write_text('[models."openai/harbour"]\napi_base = "http://127.0.0.1:9/v1"\n')
    made = program(tmp_path)
    (before,) = [row for row in await made.models() if row.name == "openai/harbour"]
    await StoredModelKnowledge(made.database).save("openai/harbour", Known(WindowLearned("openai/harbour", 8192)))
    (row,) = [row for row in await made.models() if row.name == "openai/harbour"]
    await made.close()
    assert before.window_source == "assumed"
    assert (row.window, row.window_source) == (8192, "learned")


def program(tmp_path: Path) -> Program:
    from ctxchat.bootstrap.flags import Flags

    loaded = load_settings(tmp_path, environ={"CTXCHAT_CONFIG_DIR": str(tmp_path), "CTXCHAT_DATA_DIR": str(tmp_path)})
    return Program(Flags(), loaded, tmp_path, Database(tmp_path / "data"))


async def test_summaries_are_written_by_the_model_one_talks_to(tmp_path: Path):
    made = program(tmp_path)
    summariser_of = Configuring(made, Extensions(), lasting=False)(None, "").summariser_of
    assert isinstance(summariser_of(OfflineAssistant()), OfflineSummariser)
    assert summariser_of(made.model("openai/gpt-4o")).model == "openai/gpt-4o"
    await made.close()


@pytest.mark.parametrize("path", ["/w/.ctxchat/config.toml", "/w/.git/config", "/w/sub/.git/hooks/pre-commit"])
def test_writing_what_decides_about_permissions_always_asks(path: str):
    assert judge("write_file", AccessRequest("write", path, guarded=guarded(path)), "auto-edit", ()).verdict == "ask"
    assert judge("write_file", AccessRequest("write", "/w/src/main.py"), "auto-edit", ()).verdict == "allow"


def test_a_summary_has_a_price_where_the_list_knows_one():
    assert price("gpt-4o", 1_000_000, 0) > 0
    assert price("openai/my-own", 1_000_000, 1_000) == 0


async def test_effort_and_the_longest_reply_are_the_agents_else_the_models_else_everybodys(tmp_path: Path):
    from ctxchat.bootstrap.model_choice import settings_of

    tmp_path.joinpath("config.toml").write_text(
        'context.max_output = 20000\n[models."openai/gpt-6.2-sol"]\neffort = "high"\nmax_output = 64000\n'
        '[agents.quick]\neffort = "low"\n[agents.quick.context]\nmax_output = 9000\n[agents.plain]\ndescription = "x"\n'
    )
    made = program(tmp_path)
    configuring = Configuring(made, Extensions(), lasting=False)
    sol, other = "openai/gpt-6.2-sol", "openai/gpt-6-luna"
    efforts = {
        (agent, model): configuring(agent, model).effort for agent in ("", "quick", "plain") for model in (sol, other)
    }
    assert efforts == {
        ("", sol): "high",
        ("", other): "",
        ("quick", sol): "low",
        ("quick", other): "low",
        ("plain", sol): "high",
        ("plain", other): "",
    }
    limits = [
        settings_of(model, configuring.settings(agent)[0], Overrides()).max_output
        for agent in ("", "quick")
        for model in (sol, other)
    ]
    assert limits == [64_000, 20_000, 64_000, 9_000]
    await made.close()
