"""Both ways to a model, each once for all tests here: loading litellm costs seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from tests.models.served import STRAIGHT, Way


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker(tmp_path_factory) -> AsyncIterator[ModelProcess]:
    """Through litellm, which is loaded with the first call."""
    log: Path = tmp_path_factory.mktemp("worker") / "worker.log"
    worker = ModelProcess(log)
    yield worker
    await worker.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def connections() -> AsyncIterator[Connections]:
    """Straight to the server."""
    connections = Connections()
    yield connections
    await connections.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=["litellm", "straight"])
async def way(request: pytest.FixtureRequest, worker: ModelProcess, connections: Connections) -> Way:
    """Both, one after the other; for a family that only litellm knows the one."""
    return worker if request.param == "litellm" else connections


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the straight way to families it does not lead to."""
    leads = [_leads(getattr(item, "callspec", None)) for item in items]
    config.hook.pytest_deselected(items=[item for item, stays in zip(items, leads, strict=True) if not stays])
    items[:] = [item for item, stays in zip(items, leads, strict=True) if stays]


def _leads(call: object) -> bool:
    chosen = getattr(call, "params", {})
    return chosen.get("way") != "straight" or chosen.get("family", "openai") in STRAIGHT
