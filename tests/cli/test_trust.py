"""`ctxchat trust`: what a folder holds, trusted without a screen, and no longer."""

from __future__ import annotations

from .conftest import Cli, Home


def test_a_folder_is_shown_trusted_and_trusted_no_longer(cli: Cli, home: Home) -> None:
    assert cli("trust", "--json").json["state"] == "nothing"
    skill = home.work / ".claude/skills/ship/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: ship\ndescription: how\x1b[31m to ship\n---\nGo.")
    (home.work / ".claude/settings.json").write_text("{broken")
    shown = cli("trust")
    assert shown.code == 0 and "skill /ship" in shown.out and "\x1b" not in shown.out
    assert "not trusted" in shown.err and "left out" in shown.err and "not valid JSON" in shown.err
    assert "1 skill" in cli("run", "hello").err
    assert (
        cli("trust", "--yes", "--json").json["state"] == "trusted" and cli("trust", "--json").json["state"] == "trusted"
    )
    assert "1 skill" not in cli("run", "hello").err
    assert cli("trust", "--list", "--json").json[0]["folder"] == str(home.work.resolve())
    skill.write_text(skill.read_text() + "Now!")
    assert cli("trust", "--json").json["state"] == "changed"
    assert cli("trust", "--remove").code == 0 and cli("trust", "--remove").code == 2
    assert cli("trust", "--json").json["state"] == "not trusted" and cli("trust", "--yes", "--list").code == 2
