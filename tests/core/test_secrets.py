"""Secrets that leave no trace, and the words and programs that must stay as they are."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.secrets import MaskedLines, Masking, marks_in, masked
from tests.doubles.planted import Planted, harmless, planted
from tests.examples import examples

HIDDEN = [
    ("DISCORD_TOKEN=", "MTA5xyzabc.def.ghijklmnop", ""),
    ("NPM_TOKEN=", "a1b2c3d4e5f6a7b8", ""),
    ("API_TOKEN=", "onlyletters", ""),
    ("AZURE_OPENAI_KEY=", "0123456789abcdef0123456789abcdef", ""),
    ("MYSQL_PWD=", "hunter22", ""),
    ("pwd: ", "hunter22", ""),
    ("PGPASSWORD=", "hunter22", ""),
    ("password=", "abc$defghi", " next"),
    ("password=", "a(b)c]d{e", " next"),
    ("(password=", "hunter22", ")"),
    ("password = ", "hunter.two", ""),
    ("password=", "hunter.two", " or so"),
    ("user=me, password = ", "hunter.two", ""),
    ('password: "', "correct horse battery", '"'),
    ('password: "', 'it\'s here, \\"quoted\\"; (yes)', '", more'),
    ("SECRET_KEY=", "abcd1234efgh", ""),
    ("SECRET_KEY = '", "django-insecure-a(b)c", "'"),
    ("X-Api-Key: ", "abcdef123456", ""),
    ("Cookie: ", "session=abcdef1234567890; theme=dark", "\nnext"),
    ("-H 'Set-Cookie: ", "sid=abc; HttpOnly", "' x"),
    ("token: ", "ya29.a0AfH6SMBxxxxxxxxxxxxxxxxxx", ""),
    ("see ", "ya29.a0AfH6SMBxxxxxxxxxxxxxxxxxx", ""),
    ("see ", "npm_abcdefghijklmnopqrstuvwxyz0123456789", ""),
    ("curl -u admin:", "hunter22", " https://x"),
    ("curl -s --user 'admin:", "hunter22", "' https://x"),
    ("Authorization: token ", "0123456789abcdef0123", ""),
    ("authorization: Basic ", "dXNlcjpwYXNz", ""),
    ("Authorization: Bearer ", "short77", ""),
    ("Authorization: ", "0123456789abcdef0123", ""),
    ("https://x/?token=", "abcdef123456", "&x=1"),
    ("https://x/?a=1&key=", "abcdefgh", "#top"),
    ('{"token": "', "abcdefghijkl", '"}'),
    ('{\\"password\\": \\"', "correct horse\\\\nbattery", '\\", \\"a\\": 1}'),
    ('{\\"token\\": \\"', "abcdefghijkl", '\\"}'),
    ("text\\nsk-", "aB3daB3daB3daB3daB3d", ""),
    ("text\\nNPM_TOKEN=", "a1b2c3d4e5", ""),
]


R = "a8Kd93jfLq02MzXc7VbN1pQwErTyUi45"
HEX = "0123456789abcdef"
OWN_KINDS = [
    f"AGE-SECRET-KEY-1{'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L' * 2}",
    f"pypi-AgEIcHlwaS5vcmc{R}{R}",
    f"sntrys_{R}{R}",
    f"SK{HEX}{HEX}",
    f"key-{HEX}{HEX}",
    f"oy2{HEX}{HEX}{HEX[:11]}",
    f"figd_{R}abcdefgh",
    f"ntn_{R}abcdefgh",
    f"github_pat_11ABCDEFG0{R}{R}",
    f"tskey-auth-{R}",
    f"nfp_{R}abcdefgh",
    f"AKCp{R}{R}",
    f"pscale_tkn_{R}",
    f"xai-{R}{R}",
    f"pplx-{R}",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdGBF{R}",
]
CONTAINED = {
    "db.example.com:5432:shop:alice:{}": "Hunter2Swordfish",
    "client-key-data: {}": R * 3,
    "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{}\nPrivate-MAC: 0": R * 2,
}


@pytest.mark.parametrize("secret", OWN_KINDS)
def test_keys_that_the_library_does_not_know_are_masked(secret: str) -> None:
    assert R[:12] not in masked(f"{secret}\n") and "[masked" in masked(f"x {secret} y")


@pytest.mark.parametrize("around", CONTAINED)
def test_secrets_in_files_of_their_own_forms_are_masked(around: str) -> None:
    assert CONTAINED[around] not in masked(around.format(CONTAINED[around]))


def test_the_line_of_a_file_is_no_password() -> None:
    for line in ("src/a.py:5432:1:E501:toolong", "a.py:12:W503:x:words", "10:5432:30:a:b"):
        assert masked(line) == line


@pytest.mark.parametrize(("before", "secret", "after"), HIDDEN)
def test_secrets_go_whole_and_what_stands_around_stays(before: str, secret: str, after: str) -> None:
    clean = masked(before + secret + after)
    assert secret not in clean and "[masked" in clean
    assert clean.startswith(before.removesuffix("sk-")) and clean.endswith(f"]{after}")
    assert masked(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096",
        "max_token=4096",
        "keyboard: querty1234",
        "token count: 12",
        "a token: the unit a model counts in",
        "The next token: 12345678",
        "PWD=/home/me/project1 OLDPWD=/home/me2/x",
        "pwd: prints the folder",
        "Cookie: a small cake",
        "Authorization: the user must agree first",
        "docker run -u 1000:1000 alpine",
        "password=$DB_PASSWORD",
        "password = getpass.getpass()",
        "token = tokens[0]",
        "const apiKey = await getApiKeyForModel(currentModel);",
        "const apiKey = options.apiKey ?? stored(provider);",
        "result.apiKey = args[++i];",
        "result.apiKey = args[i+1]",
        "self.password = other->password;",
        "1079\t    user, password = request.auth or (None, None)",
        "    user, pwd = touni(base64.b64decode(tob(data))).split(':', 1)",
        "user, password = request.auth",
        "password = request.auth if request else None",
        "primary_key=True",
        "sort_key = make_key(row)",
        'if token == "abcdefgh12":',
        "std::token::string12345",
        'pad_token = "<pad>"',
        "cache-key: main",
        '{"secret": null, "password": true}',
        "https://x/?page=1234567&sort=name",
    ],
)
def test_prose_and_programs_stay(text: str) -> None:
    assert masked(text) == text


_name = st.sampled_from(["password", "api_key", "token", "MYSQL_PWD", "Cookie", "authorization", "text"])
_text = st.text() | st.sampled_from(
    ["password\\", "password=\\", "a\nCookie: x=1\n", 'token="abcdef12"', "PWD='\"x12345", "\\", "secret: '"]
)


@examples(25, 200)
@given(
    st.recursive(
        _text | st.integers() | st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
        lambda v: st.dictionaries(_name | _text, v) | st.lists(v),
    )
)
def test_json_stays_json_and_a_second_time_changes_nothing(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps({"text": json.dumps(value)})):
        clean = masked(text)
        json.loads(clean)
        assert masked(clean) == clean


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a-",
        "password=",
        'password="',
        "password='\"",
        "token: ",
        "\\",
        '\\"',
        "Cookie: a=",
        "curl -u ",
        "a_key=[(",
        "&key=x",
    ],
)
def test_much_of_anything_is_read_once(piece: str) -> None:
    masked(piece * (150_000 // len(piece)))  # what is quadratic would take minutes


def test_what_is_planted_is_found_whole_and_nothing_around_it() -> None:
    missed = [
        f"{each.kind}: {masked(each.text)!r}"
        for seed in (1, 2)
        for each in planted(seed)
        if not _gone(each, masked(each.text))
    ]
    assert not missed


def _gone(each: Planted, clean: str) -> bool:
    """Of an address or a cookie a name may go with the value; nothing of the value stays."""
    pieces = {each.secret[at : at + 10] for at in range(max(1, len(each.secret) - 9))}
    return not any(piece in clean for piece in pieces) and clean.endswith(each.after)


def test_harmless_texts_raise_no_alarm() -> None:
    assert [text for text in harmless() if masked(text) != text] == []


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(planted()) >= 70 and len({each.kind for each in planted()}) == len(planted()) and len(harmless()) >= 240


def test_the_same_secret_has_the_same_mark_and_another_machine_another() -> None:
    one, two = (each.secret for each in planted() if each.kind in {"OpenAI, project", "Anthropic"})
    mask = Masking(b"k" * 32)
    text = mask(f"a {one} b {two} c {one}\n")
    marks = marks_in(text)
    assert len(marks) == 2 and text == f"a {marks[0]} b {marks[1]} c {marks[0]}\n"
    assert mask(text) == text and Masking(b"k" * 32)(one) == marks[0] != Masking(b"l" * 32)(one)
    assert [seen.value for seen in mask.seen.values()] == [one, two]


def test_a_false_alarm_is_allowed_by_its_id_or_a_pattern_and_nothing_else_with_it() -> None:
    one, two = (each.secret for each in planted() if each.kind in {"OpenAI, project", "Anthropic"})
    mask = Masking(b"k" * 32)
    mask(one)
    mask.allowed = tuple(mask.seen)
    assert mask(f"{one} {two}").startswith(f"{one} [masked")
    mask.allowed = ("sk-ant-*",)
    assert mask(f"{one} {two}").endswith(f"] {two}")
    mask.on = False
    assert mask(f"{one} {two}") == f"{one} {two}"


def test_what_only_looks_like_a_mark_hides_nothing() -> None:
    key = next(each.secret for each in planted() if each.kind == "OpenAI, project")
    for text in (f"[masked {key}]", f"[masked secret #{key}]", f"[masked secret #1234abcd {key}]"):
        assert key not in masked(text)


@given(st.lists(st.sampled_from([*planted(), "\n", "a line\n", "\r", "word "]), max_size=8), st.data())
@examples(25, 200)
def test_pieces_of_a_text_show_no_more_than_the_whole(parts: list[Planted | str], data: st.DataObject) -> None:
    text = "".join(part if isinstance(part, str) else f"\n{part.text}\n" for part in parts)
    lines = MaskedLines(masked)
    shown, at = "", 0
    while at < len(text):
        step = data.draw(st.integers(1, 60))
        shown += lines.feed(text[at : at + step])
        at += step
    shown += lines.rest()
    for part in parts:
        if isinstance(part, Planted):
            assert _gone(msgspec.structs.replace(part, after=""), shown), part.kind


def test_a_private_key_whose_last_line_is_on_its_way_is_held_back_whole() -> None:
    key = next(each for each in planted() if each.kind == "PEM, PKCS 8")
    lines = MaskedLines(masked)
    shown = lines.feed(key.text.removesuffix(key.after)) + lines.feed("\n") + lines.rest()
    assert "masked" in shown and "END" not in shown


def test_a_line_without_end_is_not_held_back_for_ever() -> None:
    lines = MaskedLines(masked)
    assert lines.feed("x" * (MaskedLines.MAX_HELD_CHARS + 1)) and lines.rest() == ""


def test_halves_of_characters_hide_nothing_and_end_nothing() -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    assert "\ud800" in masked("\ud800 see") and key not in masked(f"\ud800 {key[:40]} \udfff")
