"""Handing a job to a worker process and taking its answers as they come; the process ends when nobody listens any more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.own_processes import module_command
from ctxchat.tools.processes import child, environment, lines
from ctxchat.tools.search_worker import Answer, Job, JobRefused


class TimeUp(Exception):
    """The job took longer than it may; what was found until then stands."""


async def answers(job: Job, seconds: float) -> AsyncGenerator[Answer, None]:
    """The worker's answers. Raises TimeUp, or ToolError where the job makes no sense."""
    try:
        told = msgspec.json.encode(job)
    except UnicodeEncodeError as error:
        raise ToolError("It holds characters that no text has.") from error
    argv = module_command("ctxchat.tools.search_worker")
    pipe = asyncio.subprocess.PIPE
    async with child(argv, stdin=pipe, stderr=pipe, env=environment(os.environ)) as process:
        assert process.stdout
        sending = asyncio.create_task(_send(process, told))
        try:
            async for line in lines(process.stdout, asyncio.get_running_loop().time() + seconds):
                answer: Answer = msgspec.json.decode(line, type=Answer)
                if isinstance(answer, JobRefused):
                    raise ToolError(answer.why)
                yield answer
        except TimeoutError as error:
            raise TimeUp from error
        finally:
            sending.cancel()
        if await process.wait():
            said = (await process.stderr.read()).decode("utf-8", "replace") if process.stderr else ""
            raise ToolError(f"The search ended unexpectedly. {said.strip().splitlines()[-1] if said.strip() else ''}")


async def _send(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin
    try:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended early; its exit code says more
