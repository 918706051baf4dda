"""How a command would be judged in a small project with rules as a person has them."""

from __future__ import annotations

from pathlib import Path

from ctxchat.agent.turn.permissions import Judgement, judge, offers
from ctxchat.core.permissions import Demand, Mode, Rule, parse_rule
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


def demand(command: str, root: Path, *, shut_in: bool = True) -> Demand:
    return Demand("run", command, parts=parts_of(command, str(root)), shut_in=shut_in)


def verdict(
    command: str, root: Path, mode: Mode = "ask", texts: tuple[str, ...] = RULES, *, shut_in: bool = True
) -> Judgement:
    return judge("shell", demand(command, root, shut_in=shut_in), mode, rules(*texts), str(root))


def offered(command: str, root: Path, texts: tuple[str, ...] = (), *, shut_in: bool = True) -> tuple[str, ...]:
    return offers("shell", demand(command, root, shut_in=shut_in), "ask", rules(*texts), str(root))
