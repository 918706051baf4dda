"""The process that models are called from: killed, stopped, broken or talked into, it is an error and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ctxchat.core.errors import ModelError
from ctxchat.models.process import ModelProcess
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import breaks, says
from tests.doubles.requests import asks, listen
from tests.models.served import model_at

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mortal(tmp_path_factory) -> AsyncIterator[ModelProcess]:
    """A worker that tests may kill."""
    worker = ModelProcess(tmp_path_factory.mktemp("mortal") / "worker.log")
    yield worker
    await worker.close()


async def test_a_worker_killed_in_mid_stream_is_an_error_and_comes_back(mortal: ModelProcess) -> None:
    async with ModelDouble([says("words " * 1000, delay=0.01), says("again")]) as double:
        model = model_at(double, mortal)
        with pytest.raises(ModelError) as caught:
            async for _ in model.stream(asks("hi")):
                os.kill(mortal.pid, signal.SIGKILL)
        assert caught.value.kind == "worker" and caught.value.transient
        assert (await listen(model, asks("hi"))).text == "again"


async def test_a_worker_that_does_not_obey_is_ended(mortal: ModelProcess) -> None:
    async with ModelDouble([breaks("stall")]) as double:
        stream = model_at(double, mortal).stream(asks("hi"))
        await anext(stream)
        stuck = mortal.pid
        os.kill(stuck, signal.SIGSTOP)
        await stream.aclose()
        await asyncio.wait_for(double.requests[0].ended.wait(), 60)
        assert double.requests[0].dropped
    await mortal.start()
    assert mortal.pid not in {0, stuck}


DEAF = """
import ctypes
ctypes.PyDLL(None).usleep(1_500_000)  # nothing else of the process runs meanwhile

async def acompletion(model, **_):
    raise RuntimeError("asked")
"""
"""Stands in for a library whose import takes longer than a cancel may, on a busy machine."""


async def test_a_call_cancelled_while_litellm_is_loading_costs_no_second_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # what a process of ours may import from comes from here
    (tmp_path / "litellm.py").write_text(DEAF)
    own = ModelProcess(None, dict(os.environ))
    try:
        await own.start()
        started = own.pid
        call = asyncio.create_task(first_failure(own, "hi"))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert "asked" in (await first_failure(own, "hi")).text
        assert own.pid == started
    finally:
        await own.close()


async def test_a_broken_litellm_is_an_error_that_names_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # what a process of ours may import from comes from here
    (tmp_path / "litellm.py").write_text("raise ImportError('torn apart')")
    log = tmp_path / "worker.log"
    own = ModelProcess(log, dict(os.environ))
    error = await first_failure(own, "hi")
    assert error.kind == "worker" and str(log) in error.hint
    assert "torn apart" in log.read_text()
    await own.close()


ODD_LITELLM = """
import asyncio, os, stat

def pipes():
    for number in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                yield number
        except OSError:
            continue

async def acompletion(model, **_):
    if model.endswith("/warm"):
        raise RuntimeError("refused")
    for number in pipes():
        try:
            os.close(number) if model == "closes" else os.write(number, model.encode() + b"\\n")
        except OSError:
            continue
    await asyncio.sleep(60)
"""
"""Stands in for a library that breaks into what the process says: the "model" is the line."""


@pytest_asyncio.fixture(loop_scope="session")
async def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelProcess]:
    (tmp_path / "litellm.py").write_text(ODD_LITELLM)
    monkeypatch.syspath_prepend(tmp_path)
    worker = ModelProcess(None, dict(os.environ))
    yield worker
    await worker.close()


async def first_failure(worker: ModelProcess, line: str) -> ModelError:
    async with asyncio.timeout(60):
        with pytest.raises(ModelError) as caught:
            async for _ in worker.stream({"model": line}, timeout=60):
                pass
    return caught.value


async def test_a_line_that_cannot_be_read_fails_its_own_call_only(odd: ModelProcess) -> None:
    silent = asyncio.create_task(first_failure(odd, '{"type":"done","id":0}'))
    await asyncio.sleep(0)
    error = await first_failure(odd, '{"type":"piece","id":2,"piece":{"type":"end","cost":null}}')
    assert error.kind == "worker" and "cannot be read" in error.text
    assert not silent.done()
    everybody = await first_failure(odd, "no json \xff")
    assert "cannot be read" in everybody.text and "cannot be read" in (await silent).text
    assert odd.pid, "the process lives on"


async def test_a_process_that_falls_silent_for_good_is_ended_and_replaced(odd: ModelProcess) -> None:
    await odd.start()
    deaf = odd.pid
    error = await first_failure(odd, "closes")
    assert error.kind == "worker" and "ended" in error.text
    await odd.start()
    assert odd.pid not in {0, deaf}
    async with asyncio.timeout(60):
        await asyncio.to_thread(_wait_for_end, deaf)


async def test_closing_waits_for_a_process_on_its_way_and_ends_it() -> None:
    worker = ModelProcess()
    starting = asyncio.create_task(worker.start())
    await asyncio.sleep(0)
    await worker.close()
    await starting
    assert worker.pid == 0


async def test_the_worker_ends_with_its_parent() -> None:
    code = (
        "import asyncio, os\n"
        "from ctxchat.models.process import ModelProcess\n"
        "async def main():\n"
        "    worker = ModelProcess(); await worker.start(); print(worker.pid, flush=True); os._exit(1)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    await parent.wait()
    async with asyncio.timeout(60):
        await asyncio.to_thread(_wait_for_end, pid)


def _wait_for_end(pid: int) -> None:
    while _runs(pid):
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:  # ended, but nobody has collected it yet
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return True
