"""Commands are bent at random, and those that pass unasked are run by the real bash: none may run what it only quotes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .judging import verdict

QUOTING = [
    "echo 'touch CANARY'",
    'echo "a; touch CANARY"',
    "echo a # touch CANARY\nls",
    "echo \\; touch CANARY",
    "cat <<EOF\ntouch CANARY\nEOF",
    "cat <<'EOF'\n$(touch CANARY)\nEOF\nls",
    "cat <<-EOF | grep x\n\ttouch CANARY\n\tEOF\nls",
    "ls | grep 'touch CANARY' && echo \"x `echo y` touch CANARY\"",
    "case a in 'touch CANARY') ls;; esac",
    "for x in 'touch CANARY'; do echo \"$x\"; done",
    "bash -c 'echo \"touch CANARY\"'",
    "timeout 1 echo 'touch CANARY' 2>&1 >/dev/null",
    "echo '' '#' touch CANARY ''",
    "echo \"'\" 'touch CANARY' \"'\"",
    "ls <(echo 'touch CANARY')",
]
SIGNS = [*"'\"\\\n;&|(){}$# `<>\t!*=~[]-", "EOF", "$(", "\\\n", "<<", "''", "#'", "$'", "\nEOF\n", "touch CANARY"]
BENDING = st.tuples(st.integers(0, 60), st.one_of(st.sampled_from(SIGNS), st.none()))


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.sampled_from(QUOTING), bending=st.lists(BENDING, max_size=4))
def test_what_passes_unasked_runs_nothing_that_was_only_quoted(
    command: str, bending: list[tuple[int, str | None]], tmp_path: Path
):
    for at, sign in bending:
        at = min(at, len(command))
        command = command[:at] + sign + command[at:] if sign else command[:at] + command[at + 1 :]
    if verdict(command.strip(), tmp_path, texts=("shell: echo **",)).verdict == "allow":
        subprocess.run(
            ["bash", "-c", command.strip()], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=20
        )
        assert not list(tmp_path.iterdir()), command
