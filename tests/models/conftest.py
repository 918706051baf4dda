"""One worker for all tests here: loading litellm costs seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from ctxchat.models.process import Worker


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def worker(tmp_path_factory) -> AsyncIterator[Worker]:
    log: Path = tmp_path_factory.mktemp("worker") / "worker.log"
    worker = Worker(log)
    await worker.ready()
    yield worker
    await worker.close()
