"""Finds symbols in text: names that programs give to functions, classes, settings and ids.

A word that looks like such a name is taken for one wherever it stands, except names that every program of a language has.
"""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Iterator

from ctxchat.core.expressions import expression
from ctxchat.core.facts.shared import some
from ctxchat.core.tooluse import NO_PROSE

MAX_SYMBOLS = 400
"""The most symbols that are taken from one call or message; the most frequent are preferred."""

MAX_USED_NAMES = 60
"""The most names that are taken from one read of a file because the file uses them more than once."""

SYMBOL = expression(
    r"(?<![\w$#])(?<!\w/)(?:[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"
    r"|_?[A-Za-z]\w*_\w+|[A-Z]{2}[A-Z0-9]{2,})(?![\w$]|/\w|\.(?:py|go|rs|tsx?|m?jsx?|md|json|toml|ya?ml|sh|txt|css|sql)\b(?!\())"
)
"""`applyTheme`, `ThemeBg`, `keep_recent`, `ANSI`: what programs name, and words do not look like; no part of a path."""
ESCAPE = expression(r"(?<!:)\\(?:[nrt](?=[A-Za-z\d\s])|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
"""An escape sequence for a line end, a tab or another character, which is no part of the word after it; `C:\\new` has none."""
SHOUT = expression(r"[A-Z]+")
_NO_NAME = expression(r"(?:[A-Za-z_]*\d){5}|[a-z]+[A-Z]\Z")
"""An id that a machine made, a date, a slip of the shift key: nobody works with it by name."""
_IN_CODE = expression(r"\s*=|[(\[]|\.\w+\(")
_OWNER = expression(r"(?<![\w.])\w+\.\Z")
_MODULES = frozenset(
    re.findall(
        r"\w+",
        "fmt os io ioutil bufio bytes strings strconv errors filepath json exec sort slices maps sync atomic regexp unicode utf8 "
        "reflect runtime signal syscall hex base64 sha256 rand httptest t b assert require "
        "sys re subprocess shutil itertools functools asyncio argparse datetime pathlib contextlib dataclasses collections "
        "unittest mock pytest monkeypatch textwrap tempfile traceback "
        "fs process console Math JSON Object Array Promise Number String Date Buffer window document vi jest expect",
    )
)
"""Modules and objects of the languages themselves: a name after them (`os.MkdirAll`) is none of the project's."""
_OF_THE_LANGUAGE = frozenset(filter(SYMBOL.fullmatch, dir(builtins))) | frozenset(
    re.findall(
        r"\w+",
        "indexOf lastIndexOf toFixed toString startsWith endsWith padEnd padStart localeCompare toLowerCase toUpperCase "
        "setTimeout clearTimeout setInterval clearInterval setImmediate parseInt parseFloat isNaN isArray hasOwnProperty "
        "forEach findIndex flatMap charCodeAt charAt codePointAt fromCharCode replaceAll addEventListener "
        "removeEventListener querySelector getElementById innerHTML JSON Math ReturnType "
        "readFileSync writeFileSync existsSync mkdirSync statSync child_process strictEqual deepEqual "
        "mockReturnValue mockResolvedValue mockImplementation toBeDefined toBeNull toBeUndefined toEqual toContain toThrow "
        "toHaveBeenCalled toHaveBeenCalledWith toHaveLength toStrictEqual toBeTruthy toBeFalsy "
        "NamedTuple TypedDict TypeVar TypeAlias ClassVar ParamSpec TYPE_CHECKING DEVNULL CalledProcessError TimeoutExpired "
        "ReferenceError StringIO BytesIO MagicMock SimpleNamespace CompletedProcess "
        "read_text write_text read_bytes write_bytes is_file is_dir exist_ok missing_ok capture_output tmp_path capsys "
        "return_value side_effect call_args call_count assert_called_once assert_called_once_with assert_called_with "
        "assert_not_called assert_any_call assert_has_calls assert_awaited_once assert_awaited_once_with "
        "assertEqual assertNotEqual assertTrue assertFalse assertIs assertIsNot assertIsNone assertIsNotNone assertIn "
        "assertNotIn assertIsInstance assertNotIsInstance assertRaises assertRaisesRegex assertWarns assertWarnsRegex "
        "assertLogs assertNoLogs assertAlmostEqual assertNotAlmostEqual assertGreater assertGreaterEqual assertLess "
        "assertLessEqual assertRegex assertNotRegex assertCountEqual assertMultiLineEqual assertSequenceEqual "
        "assertListEqual assertTupleEqual assertSetEqual assertDictEqual TestCase IsolatedAsyncioTestCase setUp tearDown "
        "setUpClass tearDownClass setUpModule tearDownModule asyncSetUp asyncTearDown subTest addCleanup skipTest skipIf "
        "skipUnless expectedFailure importorskip usefixtures "
        "capfd caplog recwarn tmp_path_factory "
        "default_factory splitlines isoformat "
        "WriteString ReadString ReadAll WriteFile ReadFile MkdirAll TempDir TrimSpace HasPrefix HasSuffix CombinedOutput "
        "StdoutPipe StderrPipe IsNotExist IsExist NewReader NewBuffer NewScanner Errorf Fatalf Printf Println Sprintf Fprintf "
        "beforeEach afterEach beforeAll afterAll TypeScript JavaScript GitHub GitLab macOS PostgreSQL MySQL SQLite OpenAI "
        "TODO FIXME NOTE XXX HTTP HTTPS HTML PATH HOME README CHANGELOG LICENSE UTF8 YYYYMMDD",
    )
)
"""Names that every program or test of a language uses. Words such as `format` or `compile` are missing here, since a program may
have its own."""
_BEGINNING = r"^(?:[ \t]*\d+[\t:|│→])?[ \t]*"
_BLOCK = expression(_BEGINNING + r"```.*?" + _BEGINNING + r"```[ \t]*$", re.MULTILINE | re.DOTALL)
_EXAMPLE = expression(r"(?:#|//|--) *(?:WRONG|CORRECT|RIGHT|BAD|GOOD|Bad|Good|Wrong|Correct)\b|[❌✅]")
"""Marks of an example block in a guide that shows right and wrong ways, so that it is no code of the project."""
_DEFINED = expression(
    _BEGINNING + r"(?:(?:export|default|declare|abstract|async|pub|unsafe) )*"
    r"(?:(?P<whole>(?:def|class|function\*?|fn|func|interface|struct|enum|trait)\s+)|(?:type|const|let|var|#define)\s+)"
    r"(?P<name>[A-Za-z_$][\w$]{2,100})(?![\w$])"
    + NO_PROSE
    + r"|"
    + _BEGINNING
    + r"(?:(?:private|public|protected|static|async|override) )+(?P<method>[A-Za-z_$][\w$]{2,100})(?=[(<])",
    re.MULTILINE,
)
"""A definition at the beginning of a line, and whether it is one of a function or a class; others may be any local variable."""


def symbols(text: str) -> list[str]:
    """The symbols in a text, each once, in order; the most frequent where there are too many."""
    text = ESCAPE.sub(" ", text)
    counts = Counter(match.group() for match in SYMBOL.finditer(text) if _names(match, text))
    kept = {symbol for symbol, _ in counts.most_common(MAX_SYMBOLS)}
    return [symbol for symbol in counts if symbol in kept]


def defined(text: str) -> Iterator[str]:
    """The functions, classes and values that a text defines."""
    for match in some(_DEFINED, text, MAX_SYMBOLS):
        name = match["method"] or match["name"]
        if (
            name not in _OF_THE_LANGUAGE
            and not name.endswith("__")
            and (match["whole"] or match["method"] or SYMBOL.fullmatch(name))
        ):
            yield name


def names_read(text: str, *, guide: bool = False) -> Iterator[str]:
    """The names that a file defines, and those it uses more than once, without example blocks. `guide`: the file is a document
    whose code blocks are all examples."""
    if "```" in text:
        text = _BLOCK.sub(lambda block: "" if guide or _EXAMPLE.search(block.group()) else block.group(), text)
    text = ESCAPE.sub(" ", text)
    yield from defined(text)
    counts = Counter(match.group() for match in SYMBOL.finditer(text) if _names(match, text))
    yield from (name for name, times in counts.most_common(MAX_USED_NAMES) if times > 1)


def _names(match: re.Match[str], text: str) -> bool:
    """True where a word that looks like a symbol names something of the project; a word in capitals only where it is in code."""
    word = match.group()
    if word in _OF_THE_LANGUAGE or _NO_NAME.match(word) or (word[:2] == word[-2:] == "__"):
        return False
    if word.endswith("_") and text[match.end() : match.end() + 1] == "*":
        return False  # `old_names_*`: what several begin with
    before = text[max(0, match.start() - 30) : match.start()]
    if before.endswith(".") and (owner := _OWNER.search(before)) and owner[0][:-1] in _MODULES:
        return False
    in_code = before[-1:] in {".", "{"} or _IN_CODE.match(text, match.end())
    return not SHOUT.fullmatch(word) or bool(in_code)
