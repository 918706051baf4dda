"""A real MCP server of the official SDK, over standard input and output, with resources, and a tool that says how far it is."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Resolve
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


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
