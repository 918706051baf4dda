"""acpx, a client of the Agent Client Protocol that others use, drives the real program: one question, a session, an end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.replies import call, calls, says
from tests.e2e.serving import model_options, serving

pytestmark = pytest.mark.peer

BUILT = Path(__file__).resolve().parents[2] / "peers/acpx/node_modules/.bin/acpx"

ACPX = os.environ.get("CTXCHAT_ACPX") or (str(BUILT) if BUILT.exists() else shutil.which("acpx"))

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[tuple[Path, list[Any], Run]]:
    """A folder, what the model says next, and acpx with a home of its own."""
    if not ACPX:
        pytest.skip("acpx is not here: see tests/peers/README.md")
    folder, script = tmp_path / "work", list[Any]()
    for each in (folder, tmp_path / "home", tmp_path / "config"):
        each.mkdir()
    (folder / "tide.txt").write_text("High water is at seven.\n")
    environ = os.environ | {
        "HOME": str(tmp_path / "home"),
        "CTXCHAT_CONFIG_DIR": str(tmp_path / "config"),
        "CTXCHAT_DATA_DIR": str(tmp_path / "data"),
        "OPENAI_API_KEY": "none",
    }
    with serving(lambda body: script.pop(0)) as double:
        agent = " ".join([sys.executable, "-m", "ctxchat", "acp", *model_options(double)])

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            command = [ACPX, "--agent", agent, "--cwd", str(folder), "--ttl", "20", *words]
            return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120)

        yield folder, script, run
        run("sessions", "close")


def test_one_question_reads_through_the_client_and_a_session_goes_on_in_another_process(harbour) -> None:
    folder, script, acpx = harbour
    script[:] = [calls(call("read_file", path="tide.txt")), says("At seven.")]
    once = acpx("--approve-all", "exec", "when is high water?")
    assert once.returncode == 0 and "fs/read_text_file" in once.stdout and "High water is at seven." in once.stdout
    assert "At seven." in once.stdout and "[done] end_turn" in once.stdout

    begun = acpx("sessions", "new")
    session = begun.stdout.strip()
    script[:] = [says("First answer.")]
    assert "First answer." in acpx("--approve-all", "prompt", "one").stdout
    script[:] = [calls(call("write_file", path="new.txt", content="x\n")), says("It was not allowed.")]
    refused = acpx("--deny-all", "prompt", "two")
    assert "The user did not allow this." in refused.stdout and not (folder / "new.txt").exists()
    script[:] = [calls(call("write_file", path="new.txt", content="x\n")), says("Written.")]
    written = acpx("--format", "json", "--approve-all", "prompt", "three")
    assert (folder / "new.txt").read_text() == "x\n"
    assert "fs/write_text_file" in written.stdout and '"sessionUpdate":"usage_update"' in written.stdout

    assert "mode set: plan" in acpx("set-mode", "plan").stdout
    assert f"session: {session}" in acpx("status").stdout
    listed = acpx("sessions").stdout
    assert session in listed and "when is high water?" in listed
