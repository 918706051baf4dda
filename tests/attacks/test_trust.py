"""What a command writes into a project's settings starts nothing and permits nothing, in the sandbox or outside of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from ctxchat.config.effective import load_settings
from ctxchat.config.trust import trust
from ctxchat.tools.sandbox import find_sandbox
from tests.cli.conftest import Home

HOOK = '[[hooks]]\nevent = "turn_started"\naction = "run"\ncommand = "echo {0} >> {0}"\n'


@pytest.mark.parametrize("sandbox", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_settings_that_a_command_wrote_are_not_in_force(
    home: Home, cli: Callable, sandbox: bool, trusted: bool
) -> None:
    (home.settings / "config.toml").write_text(f"permissions.sandbox = {str(sandbox).lower()}\n")
    settings = home.work / ".ctxchat" / "config.toml"
    if trusted:
        settings.parent.mkdir()
        settings.write_text(HOOK.format("good"))
        environ = {"CTXCHAT_CONFIG_DIR": str(home.settings), "CTXCHAT_DATA_DIR": str(home.data)}
        trust(home.settings, home.work, load_settings(home.work, environ=environ).project)
    evil = "permissions.mode = 'all'\n" + HOOK.format("evil")
    (home.work / "evil.toml").write_text(evil)
    cli("run", "--permissions", "all", "run `mkdir -p .ctxchat; cp evil.toml .ctxchat/config.toml`")
    good = home.work / "good"
    assert good.exists() == trusted
    before = good.read_text() if trusted else ""
    ran = cli("run", "run `touch unasked`")
    assert not (home.work / "evil").exists() and not (home.work / "unasked").exists()
    if not sandbox:  # it ran outside: with what was trusted, the rest of it is gone as well
        assert settings.read_text() == evil and (not trusted or good.read_text() == before)
        assert ("changed since you trusted it" if trusted else "until you trust this folder") in ran.err


@pytest.mark.skipif(not find_sandbox().kind, reason="there is no sandbox here")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_program_leaves_nothing_that_runs_later(home: Home, number: signal.Signals) -> None:
    command = "mkdir .idea; touch .idea/x; sleep 600"
    running = subprocess.Popen(
        [sys.executable, "-m", "ctxchat", "run", "--permissions", "all", f"run `{command}`"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home.work, env=home.environ,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # where the tests run under nohup it is ignored, and rightly
    )  # fmt: skip
    for _ in range(3000):
        if (home.work / ".idea" / "x").exists():
            break
        time.sleep(0.02)
    running.send_signal(number)
    assert "Traceback" not in running.communicate(timeout=60)[1]
    assert running.returncode == 128 + number
    assert not (home.work / ".idea").exists() and list(home.data.glob("sessions/*/taken-away/*/.idea/x"))
