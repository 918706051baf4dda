"""How a command would be judged in a small project with rules as a person has them."""

from __future__ import annotations

import re
from pathlib import Path

from ctxchat.agent.turn.permissions import Judgement, judge, offers
from ctxchat.core.permissions import AccessRequest, Mode, Rule, parse_rule
from ctxchat.tools.command_line import parts_of

RULES = (
    "shell: uv run pytest **",
    "shell: git commit **",
    "shell: git add **",
    "shell: make",
    "shell: cp **",
    "shell: ruff check *",
    "write_file: src/*",
    "write_file: out.txt",
    "shell+network: uv sync **",
)


def rules(*texts: str) -> list[Rule]:
    found = [parse_rule(text) for text in texts]
    assert all(found), texts
    return [rule for rule in found if rule]


def access_request(command: str, root: Path, *, shut_in: bool = True) -> AccessRequest:
    return AccessRequest("run", command, parts=parts_of(command, str(root)), shut_in=shut_in)


def verdict(
    command: str, root: Path, mode: Mode = "ask", texts: tuple[str, ...] = RULES, *, shut_in: bool = True
) -> Judgement:
    return judge("shell", access_request(command, root, shut_in=shut_in), mode, rules(*texts), str(root))


def offered(command: str, root: Path, texts: tuple[str, ...] = (), *, shut_in: bool = True) -> tuple[str, ...]:
    return offers("shell", access_request(command, root, shut_in=shut_in), "ask", rules(*texts), str(root))


def ten_commands() -> list[tuple[str, str, str, str]]:
    """The commands of a day that the page about permissions counts: each with whether it asks, asked before, asks again."""
    page = (Path(__file__).parents[2] / "docs/permissions.md").read_text().partition("## Ten commands")[2]
    lines = [line for line in page.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [(named[1:].partition("`")[0].replace("\\|", "|"), *said) for named, *said in rows]  # type: ignore[misc]
