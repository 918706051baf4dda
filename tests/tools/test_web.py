"""web_fetch against real servers on loopback, and the judgement of addresses."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.fetching import MAX_BYTES, Fetcher
from ctxchat.tools.markdown import to_markdown
from ctxchat.tools.web import WebFetch

HTML = {"Content-Type": "text/html; charset=utf-8"}


class Site:
    """A web server that says what it was told to, and remembers which hosts it was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.heads = ""
        self.left: list[str] = []
        self.port = 0

    def page(self, path: str, body: bytes | str = b"", status: int = 200, **headers: str) -> str:
        """Add a page; its address by name."""
        named = {name.replace("_", "-"): value for name, value in headers.items()} or HTML
        self.pages[path] = (status, named, body.encode() if isinstance(body, str) else body)
        return f"http://site.test:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        self.heads += head.lower()
        self.asked.append(next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: ")))
        status, headers, body = self.pages.get(path, (404, HTML, b"<p>nothing here"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}Connection: close\r\n\r\n".encode())
        with suppress(ConnectionError):  # closed with something unread, which is as good
            writer.write(body)
            await writer.drain()
            if path == "/slow":
                await reader.read()  # until the other side closes
        if path == "/slow":
            self.left.append(path)
        writer.close()


@asynccontextmanager
async def serving(site: Site) -> AsyncIterator[Site]:
    async with await asyncio.start_server(site.serve, "127.0.0.1", 0) as server:
        site.port = server.sockets[0].getsockname()[1]
        yield site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving(Site()) as running:
        yield running


async def names(host: str, port: int) -> list[str]:
    """A resolver that knows three names."""
    known = {"site.test": "127.0.0.1", "www.site.test": "127.0.0.1", "inner.test": "127.0.0.2"}
    try:
        return [known.get(host) or str(ipaddress.ip_address(host))]
    except ValueError as error:
        raise OSError("unknown") from error


def only_first(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """For these tests 127.0.0.1 is the public network and everything else private."""
    return str(address) == "127.0.0.1"


@pytest.fixture
def fetch(call: Callable) -> Callable:
    tool = WebFetch(Fetcher(resolve=names, allowed=only_first, seconds=60))

    async def run(url: str) -> ToolOutput:
        return await call(tool, url=url)

    return run


async def test_a_page_becomes_markdown(fetch: Callable, site: Site) -> None:
    url = site.page("/a/b", "<title>T</title><h1>Größe</h1><p>see <a href='../c'>this</a><script>alert(1)</script>")
    found = await fetch(url)
    assert found.text == f"{url}\n\n# T\n\n# Größe\n\nsee [this](http://site.test:{site.port}/c)"
    assert site.asked == [f"site.test:{site.port}"]


async def test_other_text_stays_as_it_is(fetch: Callable, site: Site) -> None:
    assert (await fetch(site.page("/j", '{"a": "<b>"}', Content_Type="application/json"))).text.endswith(
        '\n\n{"a": "<b>"}'
    )
    latin = site.page("/l", "grün".encode("latin-1"), Content_Type="text/plain; charset=ISO-8859-1")
    assert (await fetch(latin)).text.endswith("grün")
    odd = site.page("/o", "grün", Content_Type="text/plain; charset=punycode")
    assert (await fetch(odd)).text.endswith("grün")
    meta = site.page("/m", '<meta charset="shift_jis"><p>日本'.encode("shift_jis"), Content_Type="text/html")
    assert (await fetch(meta)).text.endswith("日本")


async def test_binaries_are_refused(fetch: Callable, site: Site) -> None:
    with pytest.raises(ToolError, match="PNG image, image/png"):
        await fetch(site.page("/p", b"\x89PNG\r\n\x1a\n\0", Content_Type="image/png"))


async def test_too_much_is_cut_and_said(fetch: Callable, site: Site) -> None:
    found = await fetch(site.page("/big", b"x" * (MAX_BYTES + 500_000), Content_Type="text/plain"))
    assert "[cut after 2.0 MB]" in found.text
    bomb = gzip.compress(b"x" * 100_000_000)
    found = await fetch(site.page("/bomb", bomb, Content_Type="text/plain", Content_Encoding="gzip"))
    assert "[cut after 2.0 MB]" in found.text


async def test_what_is_packed_in_layers_is_unpacked_no_further_than_wanted(fetch: Callable, site: Site) -> None:
    kinds = {"gzip": gzip.compress, "deflate": zlib.compress, "x-gzip, identity": gzip.compress}
    for kind, pack in kinds.items():
        page = site.page("/p", pack("grün".encode()), Content_Type="text/plain", Content_Encoding=kind)
        assert (await fetch(page)).text.endswith("\n\ngrün")
    raw = zlib.compress(b"raw")[2:-4]
    page = site.page("/r", raw, Content_Type="text/plain", Content_Encoding="deflate")
    assert (await fetch(page)).text.endswith("\n\nraw")
    two = gzip.compress(b"one, ") + gzip.compress(b"two")
    page = site.page("/t", two, Content_Type="text/plain", Content_Encoding="gzip")
    assert (await fetch(page)).text.endswith("\n\none, two")
    padded = site.page("/g", gzip.compress(b"body") + b"\0" * 9, Content_Type="text/plain", Content_Encoding="gzip")
    assert (await fetch(padded)).text.endswith("\n\nbody")
    many = site.page("/m", gzip.compress(b"") * 90_000, Content_Type="text/plain", Content_Encoding="gzip")
    assert "holds no text" in (await fetch(many)).text
    layers = gzip.compress(gzip.compress(b"x" * 20_000_000))
    tracemalloc.start()
    found = await fetch(site.page("/l", layers, Content_Type="text/plain", Content_Encoding="gzip, gzip"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "[cut after 2.0 MB]" in found.text and most < 20_000_000
    for kind in ("br", "gzip"):
        with pytest.raises(ToolError, match="packed"):
            await fetch(site.page("/b", b"no such thing", Content_Type="text/plain", Content_Encoding=kind))


async def test_a_long_page_is_whole_and_short_links_stay_short(fetch: Callable, site: Site) -> None:
    long = site.page("/w", "word " * 300_000, Content_Type="text/plain")
    assert (await fetch(long)).text == f"{long}\n\n{'word ' * 299_999}word"
    found = await fetch(site.page(f"/{'p' * 5000}/", "<a href='b'>x</a> " * 10_000))
    assert len(found.text) < 50_000 and "x x x" in found.text
    assert (await fetch(site.page("/z", "a" * 9000 + "\0b", Content_Type="text/plain"))).text.endswith("a\ufffdb")


async def test_an_error_page_is_an_error_with_its_text(fetch: Callable, site: Site) -> None:
    found = await fetch(f"http://site.test:{site.port}/none")
    assert found.status == "error"
    assert "[HTTP status 404]" in found.text
    assert "nothing here" in found.text


async def test_redirects_on_the_same_host_are_followed(fetch: Callable, site: Site) -> None:
    site.page("/there", "<p>arrived")
    site.page("/hop", status=302, Location=f"http://www.site.test:{site.port}/there")
    found = await fetch(site.page("/start", status=301, Location="/hop"))
    assert found.text.endswith("arrived")


async def test_no_cookie_goes_back_to_who_set_it(fetch: Callable, site: Site) -> None:
    site.page("/there", "<p>arrived")
    url = site.page("/start", status=302, Location="/there", Set_Cookie="seen=1; Path=/")
    for _ in range(2):
        assert (await fetch(url)).text.endswith("arrived")
    assert site.heads.count("get ") == 4 and "cookie" not in site.heads


async def test_another_host_is_another_call(fetch: Callable, site: Site) -> None:
    found = await fetch(site.page("/away", status=302, Location="http://other.test/x"))
    assert "redirects to another host: http://other.test/x" in found.text
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://site.test/", "http://user:pw@site.test/", "javascript:x", "http://"]
)
async def test_redirects_that_are_not_followed(target: str, fetch: Callable, site: Site) -> None:
    with pytest.raises(ToolError):
        await fetch(site.page("/bad", status=302, Location=target))


async def test_a_redirect_to_a_private_address_is_refused(site: Site, call: Callable) -> None:
    answers = iter(["127.0.0.1", "127.0.0.2"])

    async def turning(host: str, port: int) -> list[str]:
        return [next(answers)]

    site.page("/two", "<p>inner")
    tool = WebFetch(Fetcher(resolve=turning, allowed=only_first))
    with pytest.raises(ToolError, match=r"127\.0\.0\.2, an address of this machine"):
        await call(tool, url=site.page("/one", status=302, Location="/two"))
    assert len(site.asked) == 1


async def test_a_redirect_loop_ends(fetch: Callable, site: Site) -> None:
    with pytest.raises(ToolError, match="more than 5 times"):
        await fetch(site.page("/loop", status=302, Location="/loop"))


async def test_the_judged_address_is_the_one_connected_to(site: Site, call: Callable) -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    tool = WebFetch(Fetcher(resolve=rebinding, allowed=only_first))
    # The name resolves nowhere but here: a second look-up by the client would fail.
    found = await call(tool, url=site.page("/r", "<p>pinned").replace("site.test", "no-such-name.invalid"))
    assert found.text.endswith("pinned")
    assert asked == ["no-such-name.invalid"]


async def test_one_private_address_among_public_ones_is_enough(call: Callable) -> None:
    async def mixed(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "127.0.0.2"]

    with pytest.raises(ToolError, match="not fetched"):
        await call(WebFetch(Fetcher(resolve=mixed, allowed=only_first)), url="http://mixed.test/")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "a.localhost"])
async def test_who_allows_an_address_that_is_near_knows_it_and_gets_it(host: str, call: Callable, site: Site) -> None:
    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    site.page("/", "<p>near")
    tool = WebFetch(Fetcher(resolve=here))
    url = f"http://{host}:{site.port}/"
    access_request = tool.access_request({"url": url}, ToolContext("c", "/"))
    assert access_request.access == "network" and "an address of this machine or its network" in access_request.summary
    assert (await call(tool, url=url)).text.endswith("near")


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "inner.test", "wiki.corp"])
async def test_a_name_that_hides_where_it_leads_is_refused_with_the_way_to_ask(
    host: str, call: Callable, site: Site
) -> None:
    async def inner(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    tool = WebFetch(Fetcher(resolve=inner))
    assert "this machine" not in tool.access_request({"url": f"http://{host}/"}, ToolContext("c", "/")).summary
    with pytest.raises(ToolError, match=r"is 127\.0\.0\.1, .* the user is asked"):
        await call(tool, url=f"http://{host}:{site.port}/")
    assert site.asked == []


async def test_one_near_address_is_leave_for_no_other(call: Callable, site: Site) -> None:
    async def elsewhere(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    for host in ("localhost", "127.0.0.2"):
        with pytest.raises(ToolError, match="not fetched"):
            await call(WebFetch(Fetcher(resolve=elsewhere)), url=f"http://{host}:{site.port}/")


async def test_a_proxy_of_the_environment_is_used_and_said(
    call: Callable, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "no_proxy", "all_proxy", "https_proxy", "NO_PROXY", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{site.port}")
    monkeypatch.setenv("no_proxy", "direct.test")
    site.pages["http://far.test/x"] = (200, HTML, b"<p>through")

    async def nobody(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    tool = WebFetch(Fetcher(resolve=nobody))
    access_request = tool.access_request({"url": "http://far.test/x"}, ToolContext("c", "/"))
    assert (
        f"through the proxy http://127.0.0.1:{site.port}" in access_request.summary
        and "secret" not in access_request.summary
    )
    assert (await call(tool, url="http://far.test/x")).text.endswith("through")
    for host in ("direct.test", "localhost"):
        with pytest.raises(ToolError, match="cannot be found"):
            await call(tool, url=f"http://{host}/x")


async def test_a_slow_page_ends(call: Callable, site: Site) -> None:
    tool = WebFetch(Fetcher(resolve=names, allowed=only_first, seconds=0.5))
    with pytest.raises(ToolError, match=r"within 0\.5 s|could not be read"):
        await call(tool, url=site.page("/slow", "begun"))


async def test_nobody_there(fetch: Callable, site: Site) -> None:
    with pytest.raises(ToolError, match="cannot be found"):
        await fetch("http://unknown.test/")
    async with serving(Site()) as gone:
        port = gone.port
    with pytest.raises(ToolError, match="cannot be reached"):
        await fetch(f"http://site.test:{port}/")


async def test_cancelling_closes_the_connection(site: Site, context: ToolContext) -> None:
    tool = WebFetch(Fetcher(resolve=names, allowed=only_first))
    url = site.page("/slow", "begun")

    async def consume() -> None:
        async for _ in tool.run({"url": url}, context):
            pass

    task = asyncio.create_task(consume())
    for _ in range(6000):
        if site.asked:
            break
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(6000):
        if site.left:
            break
        await asyncio.sleep(0.01)
    assert site.left == ["/slow"]


@pytest.mark.parametrize(
    ("url", "target", "pattern"),
    [
        ("https://Example.com", "https://example.com/", "https://example.com/**"),
        ("https://münchen.de:443?q=1", "https://xn--mnchen-3ya.de/?q=1", "https://xn--mnchen-3ya.de/**"),
        ("http://x.org:8080/a#part", "http://x.org:8080/a", "http://x.org:8080/**"),
    ],
)
def test_demands(url: str, target: str, pattern: str, context: ToolContext) -> None:
    access_request = WebFetch().access_request({"url": url}, context)
    assert (access_request.access, access_request.inside, access_request.target, access_request.patterns) == (
        "network",
        False,
        target,
        (target, pattern),
    )
    assert urlsplit(access_request.target).path.startswith("/")


def test_markdown_of_a_page_with_everything() -> None:
    page = """<html><head><title>A &amp; B</title><style>x{}</style></head><body><h2>H <em>e</em></h2>
    <p>One <b>two</b> <code>c</code><br>next <img src=x alt=pic><a href="#x">top</a></p>
    <ul><li>a<ul><li>b</li></ul></li><li><p>c</p></li></ul><ol start=3><li>x<li>y</ol>
    <pre><code>def f():
    return 1
</code></pre><blockquote><p>q</p></blockquote><hr>
    <table><tr><th>h<th>i</tr><tr><td>1<td>2|3</table><a href="javascript:x">js</a><svg><title>no</title></svg></body>"""
    assert to_markdown(page, "https://e.org/") == (
        "# A & B\n\n## H *e*\n\nOne **two** `c`\nnext [image: pic]top\n\n- a\n  - b\n- c\n3. x\n4. y\n\n"
        "```\ndef f():\n    return 1\n```\n\n> q\n\n---\n\n| h | i |\n| --- | --- |\n| 1 | 2\\|3 |\n\njs"
    )


@pytest.mark.parametrize(
    "page", ["", "plain", "</p></ul></td>", "<td>x", "<li>a", "<pre>x", "<a>b", "<![x", "<table><tr>", "<select><p>x"]
)
def test_broken_pages_do_not_break_it(page: str) -> None:
    assert isinstance(to_markdown(page), str)
