"""An MCP server of the official SDK that serves skills (SEP-2640), as `wrong` also some that are none. Its tool `edit` changes a
file of one, and with `told` what the server says of it; a skill that it does not list is found by its address."""

import hashlib
import sys
from functools import partial
from typing import Any

from mcp.server import MCPServer
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, RequestParams
from skill_texts import FILES, NOTES, OTHER, REFUNDS

LISTED = dict(FILES)
"""What the list says that they are."""


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def entry(uri: str) -> dict[str, Any]:
    name, about = uri.split("/")[-2], LISTED[uri].split("description: ")[1].partition("\n")[0]
    given = {"name": name, "description": about, "metadata": {"version": 2.1, "since": "2026-01-05"}}
    root = uri.removesuffix("SKILL.md")
    files = [{"uri": each, "digest": digest(text)} for each, text in LISTED.items() if each.startswith(root)]
    return {"uri": uri, "frontmatter": given, "resources": files}


def wrong() -> list[Any]:
    """Entries that are none."""
    good = entry(OTHER)
    return [
        "nothing",
        {**good, "uri": "skill://team/others/SKILL.md"},
        {key: value for key, value in good.items() if key != "resources"},
        {**good, "resources": [{"uri": NOTES, "digest": digest("")}]},
        {**good, "resources": [{"uri": OTHER, "digest": "md5:1"}]},
        {**good, "resources": [*good["resources"], {"uri": "skill://team/../secret", "digest": digest("")}]},
    ]


class Asked(RequestParams):
    uri: str = ""


async def listed(_: Any, __: Asked) -> dict[str, Any]:
    more = [entry(OTHER), *wrong()] if "wrong" in sys.argv else []
    return {"skills": [entry(REFUNDS), *more], "resultType": "complete"}


async def found(_: Any, asked: Asked) -> dict[str, Any]:
    if asked.uri not in LISTED:
        raise MCPError(INVALID_PARAMS, "There is no such skill")
    return {"skill": entry(asked.uri), "resultType": "complete"}


class Skills(Extension):
    identifier = "io.modelcontextprotocol/skills"

    def methods(self) -> list[MethodBinding]:
        return [
            MethodBinding(method="skills/list", params_type=Asked, handler=listed),
            MethodBinding(method="skills/get", params_type=Asked, handler=found),
        ]


server = MCPServer("office", extensions=[Skills()])


def file_at(address: str) -> str:
    return FILES[address]


for each in FILES:
    server.resource(each, name=each, mime_type="text/markdown")(partial(file_at, each))


@server.tool()
def edit(uri: str, text: str, told: bool) -> str:
    """Changes a file of a skill."""
    FILES[uri] = text
    if told:
        LISTED[uri] = text
    return "changed"


if __name__ == "__main__":
    server.run("stdio")
