"""A whole program whose model follows a script."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

from ctxchat.agent.session import Session
from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config.effective import load_settings
from ctxchat.core.events import Event
from ctxchat.core.ports import ModelPort
from ctxchat.storage.database import Database
from tests.doubles.scripted import Reply, ScriptedModel


class Scripted(Program):
    """A program whose model follows a script."""

    script: ScriptedModel

    def model(self, *_: object, **__: object) -> ModelPort:
        return self.script


def program(folder: Path, config: Path, *script: Reply) -> Scripted:
    environ = {"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(config / "data")}
    flags = Flags(permissions="all")
    made = Scripted(
        flags,
        load_settings(folder, environ=environ, flags={"permissions.mode": "all"}),
        folder,
        Database(config / "data"),
    )
    made.script = ScriptedModel(script)
    return made


async def say(session: Session, text: str) -> list[Event]:
    async with aclosing(session.send(text)) as stream:
        return [stamped.event async for stamped in stream]
