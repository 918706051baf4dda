"""How often the offline assistant answers from the right place: 40 questions about three published projects, and what a newcomer
asks first about seven more.

Fetches the projects' source packages with pip, asks over the real tools, and counts an answer as right where it quotes the file
that holds it together with the words that are the answer. Among them are the questions that an empty chat suggests.

    uv run python benchmarks/offline_questions.py [FOLDER]      (where the packages are kept; a temporary one if left out)
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ctxchat.tui.unsent.workspace_files import examples, files_of
from tests.models.offline_talk import Talk

QUESTIONS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "flask==3.0.3": (
        ("what does this project do?", "README.md", "WSGI"),
        ("how do I install this?", "README.md", "pip install -U Flask"),
        ("which port does the development server use by default?", "src/flask/", "5000"),
        ("how long does a permanent session last?", "", "31 days"),
        ("where is the Blueprint class defined?", "src/flask/", "class Blueprint"),
        ("what is the default session cookie name?", "", "'session'|\"session\""),
        ("where is `url_for` implemented?", "src/flask/", "def url_for"),
        ("how large may a cookie be?", "", "4093"),
        ("which Python versions are supported?", "", "3.8"),
        ("what license is this under?", "", "BSD"),
        ("what are the dependencies?", "pyproject.toml", "Werkzeug"),
        ("how are the tests run?", "", "pytest"),
    ),
    "httpx==0.27.2": (
        ("what does this project do?", "README.md", "HTTP client"),
        ("What is the default timeout?", "httpx/_config.py", "timeout=5.0"),
        ("how many redirects are followed at most?", "httpx/_config.py", "DEFAULT_MAX_REDIRECTS = 20"),
        ("what is the default connection limit?", "httpx/_config.py", "max_connections=100"),
        ("how do I install http2 support?", "README.md", "httpx[http2]"),
        ("where is DigestAuth defined?", "httpx/_auth.py", "class DigestAuth"),
        ("which decoders are there for brotli?", "httpx/_decoders.py", "class BrotliDecoder"),
        ("where is the user agent set?", "httpx/", "python-httpx"),
        ("which version is this?", "httpx/__version__.py", "0.27.2"),
        ("what happened in 0.27.1?", "CHANGELOG.md", "0.27.1"),
        ("welche Ausnahme gibt es für zu viele Umleitungen (TooManyRedirects)?", "httpx/_exceptions.py", "TooManyRedirects"),
    ),
    "click==8.1.7": (
        ("what is this project about?", "README.rst", "command line interfaces"),
        ("what is the exit code of a usage error?", "src/click/exceptions.py", "exit_code = 2"),
        ("why is it not based on argparse?", "docs/why.rst", "nesting of commands"),
        ("where is echo_via_pager defined?", "src/click/termui.py", "def echo_via_pager"),
        ("which shells support completion?", "", "Fish|fish"),
        ("how do I hide the input of a password prompt?", "", "hide_input"),
        ("where is `BadParameter` defined?", "src/click/exceptions.py", "class BadParameter"),
        ("how do I test a command line application?", "", "CliRunner"),
    ),
    "requests==2.32.3": (
        ("what is this project about?", "README.md", "HTTP library"),
        ("how do I install this?", "README.md", "pip install requests"),
        ("which license is it under?", "", "Apache"),
        ("which Python versions are supported?", "setup.py", ">=3.8"),
        ("what are the dependencies?", "setup.py", "install_requires"),
        ("which version is this?", "src/requests/__version__.py", "2.32.3"),
        ("how are the tests run?", "", "pytest"),
        ("where is the Session class defined?", "src/requests/sessions.py", "class Session"),
        ("how many redirects are followed at most?", "src/requests/models.py", "DEFAULT_REDIRECT_LIMIT = 30"),
    ),
    "attrs==24.2.0": (
        ("what is this project about?", "README.md", "writing classes"),
        ("which license is it under?", "pyproject.toml", "MIT"),
        ("which Python versions are supported?", "pyproject.toml", ">=3.7"),
        ("what are the dependencies?", "pyproject.toml", "importlib_metadata"),
        ("which version is this?", "CHANGELOG.md", "24.2.0"),
        ("how are the tests run?", "tox.ini", "pytest"),
        ("where is `asdict` implemented?", "src/attr/_funcs.py", "def asdict"),
        ("what is the difference between a namedtuple and attrs?", "docs/why.md", "namedtuple"),
    ),
    "jinja2==3.1.4": (
        ("what is this project about?", "README.md", "templating engine"),
        ("how do I install this?", "docs/intro.rst", "pip install Jinja2"),
        ("which license is it under?", "pyproject.toml", "BSD"),
        ("which Python versions are supported?", "pyproject.toml", ">=3.7"),
        ("what are the dependencies?", "pyproject.toml", "MarkupSafe"),
        ("which version is this?", "src/jinja2/__init__.py", "3.1.4"),
        ("how are the tests run?", "tox.ini", "pytest"),
        ("where is the Environment class defined?", "src/jinja2/environment.py", "class Environment"),
    ),
    "rich==13.9.4": (
        ("what is this project about?", "README.md", "Python library for _rich_ text"),
        ("how do I install this?", "README.md", "pip install rich"),
        ("which license is it under?", "pyproject.toml", "MIT"),
        ("which Python versions are supported?", "pyproject.toml", ">=3.8"),
        ("what are the dependencies?", "pyproject.toml", "tool.poetry.dependencies"),
        ("which version is this?", "pyproject.toml", "13.9.4"),
        ("where is the Console class defined?", "rich/console.py", "class Console"),
        ("how do I print a table?", "README.md", "console.print(table)"),
    ),
    "tqdm==4.67.0": (
        ("what is this project about?", "pyproject.toml", "Progress Meter"),
        ("how do I install this?", "README.rst", "pip install tqdm"),
        ("which license is it under?", "pyproject.toml", "MPL-2.0"),
        ("which Python versions are supported?", "pyproject.toml", ">=3.7"),
        ("what are the dependencies?", "pyproject.toml", "colorama"),
        ("how are the tests run?", "", "pytest"),
        ("where is the tqdm class defined?", "tqdm/std.py", "class tqdm"),
        ("how do I use it with pandas?", "README.rst", "pandas"),
    ),
    "scrapy==2.11.2": (
        ("what is this project about?", "README.rst", "web scraping framework"),
        ("how do I install this?", "README.rst", "pip install scrapy"),
        ("which license is it under?", "setup.py", "BSD"),
        ("which Python versions are supported?", "setup.py", ">=3.8"),
        ("what are the dependencies?", "setup.py", "Twisted"),
        ("which version is this?", "scrapy/VERSION", "2.11.2"),
        ("how are the tests run?", "", "tox"),
        ("what is the default download timeout?", "scrapy/settings/default_settings.py", "DOWNLOAD_TIMEOUT = 180"),
        ("where is the Spider class defined?", "scrapy/spiders/__init__.py", "class Spider"),
    ),
    "fastapi==0.115.0": (
        ("what is this project about?", "README.md", "FastAPI is a modern"),
        ("how do I install this?", "README.md", "fastapi[standard]"),
        ("which license is it under?", "pyproject.toml", "MIT"),
        ("which Python versions are supported?", "pyproject.toml", ">=3.8"),
        ("what are the dependencies?", "README.md", "Pydantic and Starlette"),
        ("which version is this?", "pyproject.toml", "0.115.0"),
        ("how are the tests run?", "", "pytest"),
        ("where is the Depends function defined?", "fastapi/param_functions.py", "def Depends"),
        ("which library is it built on for the web parts?", "README.md", "Starlette</a> for the web parts"),
    ),
}  # fmt: skip
"""Question, the beginning of the path that answers (empty for any), and the words of the answer (`|` between alternatives)."""


def unpacked(package: str, folder: Path) -> Path:
    """The package's source, fetched once."""
    root = folder / package.replace("==", "-")
    if not root.is_dir():
        pip = ["uv", "run", "--no-project", "--with", "pip"] if shutil.which("uv") else []
        command = [*pip, "python", "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*command, "-d", str(folder), package], check=True)
        with tarfile.open(next(folder.glob(f"{package.replace('==', '-')}.tar.gz"))) as packed:
            packed.extractall(folder, filter="data")
    return root


def right(answer: str, path: str, words: str) -> bool:
    return any(w in answer for w in words.split("|")) and (not path or f"`{path}" in answer)


async def main(folder: Path) -> None:
    asked = good = 0
    for package, questions in QUESTIONS.items():
        root = unpacked(package, folder)
        wrong: list[str] = []
        first = [(q, _mentioned(q), "") for q in examples(files_of(root))]
        for question, path, words in (*questions, *first):
            answer = await Talk(root).ask(question)
            asked += 1
            if right(answer, path, words):
                good += 1
            else:
                wrong.append(f"    {question}\n        {answer[:150]!r}")
        print(
            f"{package}: {len(questions) + len(first) - len(wrong)} of {len(questions) + len(first)}", *wrong, sep="\n"
        )
    print(f"right: {good} of {asked} ({good / asked:.2f})")


def _mentioned(question: str) -> str:
    return next((word[1:].rstrip("?.") for word in question.split() if word.startswith("@")), "")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(main(Path(place)))
