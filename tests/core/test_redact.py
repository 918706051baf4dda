"""Secrets that leave no trace, and the words and programs that must stay as they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.redact import redact

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
    ("curl -u ", "admin:hunter22", " https://x"),
    ("curl -s --user '", "admin:hunter22", "' https://x"),
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


@pytest.mark.parametrize(("before", "secret", "after"), HIDDEN)
def test_secrets_go_whole_and_what_stands_around_stays(before: str, secret: str, after: str) -> None:
    clean = redact(before + secret + after)
    assert secret not in clean and "[redacted" in clean
    assert clean.startswith(before.removesuffix("sk-")) and clean.endswith(f"]{after}")
    assert redact(clean) == clean


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
        "docker run -u 1000:1000 alpine; curl -u 1000:1000 x",
        "password=$DB_PASSWORD",
        "password = getpass.getpass()",
        "token = tokens[0]",
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
    assert redact(text) == text


_name = st.sampled_from(["password", "api_key", "token", "MYSQL_PWD", "Cookie", "authorization", "text"])
_text = st.text() | st.sampled_from(
    ["password\\", "password=\\", "a\nCookie: x=1\n", 'token="abcdef12"', "PWD='\"x12345", "\\", "secret: '"]
)


@given(
    st.recursive(
        _text | st.integers() | st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
        lambda v: st.dictionaries(_name | _text, v) | st.lists(v),
    )
)
def test_json_stays_json_and_a_second_time_changes_nothing(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps({"text": json.dumps(value)})):
        clean = redact(text)
        json.loads(clean)
        assert redact(clean) == clean


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
def test_a_megabyte_of_anything_is_read_once(piece: str) -> None:
    redact(piece * (1_000_000 // len(piece)))  # what is quadratic would not end before the suite is given up
