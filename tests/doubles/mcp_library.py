"""A real MCP server of the official SDK, over standard input and output, with resources, and a tool that says how far it is."""

import asyncio
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Resolve
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams
from pydantic import BaseModel, Field

server = MCPServer("library")


@server.resource("book://tides", description="When the water comes")
def tides() -> str:
    return "high water at six"


@server.resource("book://{name}/page/{number}", description="A page of a book")
def page(name: str, number: str) -> str:
    return f"page {number} of {name}"


@server.resource("book://cover", mime_type="image/png")
def cover() -> bytes:
    import base64

    return base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )


@server.tool()
async def bind(context: Context) -> str:
    """Takes three steps."""
    for step in range(1, 4):
        await context.report_progress(step, 3, f"step {step}")
    return "bound"


class Loan(BaseModel):
    book: str
    days: int = Field(description="How long")
    sign: bool


def wanted() -> Elicit[Loan]:
    return Elicit("What do you want to lend?", Loan)


@server.tool()
async def lend(answer: Annotated[ElicitationResult[Loan], Resolve(wanted)]) -> str:
    """Asks which book."""
    return f"{answer.action}: {answer.data}" if answer.action == "accept" else answer.action


class Name(BaseModel):
    name: str


READERS: set[str] = set()
TWO = asyncio.Event()


async def two_there(desk: str) -> Elicit[Name]:
    READERS.add(desk)
    if len(READERS) > 1:
        TWO.set()
    await TWO.wait()
    return Elicit(f"Who stands at desk {desk}?", Name)


@server.tool()
async def meet(desk: str, answer: Annotated[Name, Resolve(two_there)]) -> str:
    """Asks who is there, once it is called at two desks at the same time."""
    return f"{answer.name} at {desk}"


@server.tool()
async def reserve(context: Context) -> str:
    """Asks in the form of before 2026-07-28, for which there is no way in the new one."""
    said = await context.elicit("Who wants it?", Name)
    return f"for {said.data.name}" if said.action == "accept" else said.action


OPENED: list[str] = []


@server.tool()
async def pay() -> str:
    """Begins once a page was opened."""
    if OPENED:
        return "paid"
    OPENED.append("shown")
    page = ElicitRequestURLParams(message="Pay here", url="https://pay.example.org/1", elicitation_id="e1")
    raise UrlElicitationRequiredError([page])


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
