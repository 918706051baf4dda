import pytest
from ctxchat.core.events import ApprovalRequested
from ctxchat.core.permissions import Allowance
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeSession, Pause, reply
from ctxchat.tui.widgets.approval import ApprovalPanel

LONG = "cd /home/me/projects/harbour && uv run pytest tests/gauge tests/logger -x -q --maxfail=3 && rm -rf build/dist"
CASES = {
    "broad": ApprovalRequested(
        "c1",
        "shell",
        "run make deploy",
        "run",
        "make deploy",
        ("shell: make deploy", "shell: make deploy **", "shell: make **"),
        Allowance(network=True, folders=("/home/me/.cache/uv",), outside=True),
    ),
    "long": ApprovalRequested(
        "c1",
        "shell",
        "run " + LONG,
        "run",
        LONG,
        ("shell: " + LONG, "shell: cd **\nshell: uv run pytest **\nshell: rm **"),
        Allowance(network=True, folders=("/home/me/.cache/uv",), outside=True),
    ),
    "write": ApprovalRequested(
        "c1",
        "write_file",
        "write src/gauge.py (+3 -1)",
        "write",
        "--- a/src/gauge.py\n+++ b/src/gauge.py\n@@ -1,3 +1,5 @@\n LOGGER = 1\n-INTERVAL = 90\n+INTERVAL = 60\n+X = 1\n+Y = 2\n",
        ("write_file: src/**",),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [(40, 20), (40, 12), (60, 20)])
async def test_x(tmp_path, name, size):
    session = FakeSession(lambda _: [CASES[name], Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, size) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        print("@@", name, size)
        print(words(app))
        await pilot.press("n")
    assert 0
