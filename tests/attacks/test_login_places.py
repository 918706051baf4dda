"""Where a login may be sent to, and where it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.tools.mcp.http_transport import may_send_to
from ctxchat.tools.mcp.login_store import LoginStore, StoredLogin


@pytest.mark.parametrize(
    ("where", "server", "said"),
    [
        ("https://login.example/token", "https://mcp.example/mcp", True),
        ("https://login.example/token", "http://mcp.example/mcp", True),
        ("http://mcp.example:99/token", "http://mcp.example/mcp", True),
        ("http://localhost:99/token", "http://127.0.0.1:5/mcp", True),
        ("http://10.0.0.2/token", "http://10.0.0.2:5/mcp", True),
        ("http://mcp.example/token", "https://mcp.example/mcp", False),
        ("http://login.example/token", "http://mcp.example/mcp", False),
        ("http://localhost:99/token", "https://mcp.example/mcp", False),
        ("https://localhost/token", "https://mcp.example/mcp", False),
        ("http://127.1/token", "https://mcp.example/mcp", False),
        ("https://[::ffff:127.0.0.1]/token", "https://mcp.example/mcp", False),
        ("http://169.254.169.254/latest", "https://mcp.example/mcp", False),
        ("https://192.168.1.1/token", "https://mcp.example/mcp", False),
        ("https://[fd00::1]/token", "https://mcp.example/mcp", False),
        ("https://192.168.1.1/token", "http://192.168.1.2:5/mcp", True),
        ("file:///etc/passwd", "http://127.0.0.1/mcp", False),
        ("javascript:alert(1)", "http://127.0.0.1/mcp", False),
        ("ftp://127.0.0.1/x", "http://127.0.0.1/mcp", False),
        ("https://[", "https://mcp.example/mcp", False),
    ],
)
def test_a_server_sends_nobody_to_where_only_this_machine_reaches(where: str, server: str, said: bool) -> None:
    assert may_send_to(where, server) == said


def test_a_login_is_readable_by_its_owner_alone_whatever_was_there(tmp_path: Path) -> None:
    store, url = LoginStore(tmp_path / "logins"), "https://mcp.example"
    (tmp_path / "logins").mkdir(mode=0o755)
    (tmp_path / "logins").chmod(0o777)
    store.path(url).write_text("{}")
    store.path(url).chmod(0o666)
    store.write(url, StoredLogin("secret"))
    assert store.path(url).stat().st_mode & 0o777 == 0o600
    assert store.path(url).parent.stat().st_mode & 0o777 == 0o700


def test_a_login_is_written_through_no_link(tmp_path: Path) -> None:
    store, url, elsewhere = LoginStore(tmp_path / "logins"), "https://mcp.example", tmp_path / "elsewhere"
    (tmp_path / "logins").mkdir()
    elsewhere.write_text("mine")
    store.path(url).symlink_to(elsewhere)
    store.write(url, StoredLogin("secret"))
    assert elsewhere.read_text() == "mine" and store.read(url) == StoredLogin("secret")
