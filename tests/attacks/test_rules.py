"""What is free, what a deny rule sees, which rules are offered, and that none reaches further than it says."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.agent.turn.permissions import judge
from ctxchat.core.patterns import covers_path, may_lie_below
from ctxchat.core.permissions import Rule, parse_rules
from ctxchat.tools import unreadable
from ctxchat.tools.command_line import MAX_LINE_CHARS, parts_of

from .judging import access_request, offered, rules, ten_commands, verdict

READING = r"""
ls -la src
cat a.py b.py | head -5 | sort -r | uniq -c
cat *.py
grep -rn "x = 1" src --include=*.py
find . -name '*.py' -type f -maxdepth 2
rg -n x src
sed -n '1,20p' a.py
git status --short
git log --oneline -5 -- a.py
git diff HEAD~1 --stat
git show HEAD:a.py
git branch -a
git stash list
wc -l < a.py
test -f a.py && echo there
ls 2>/dev/null || true
timeout 5 ls
python --version
[ -f a.py ] && cat a.py
"""
"""What reads and cannot write: free, in `plan` too."""


@pytest.mark.parametrize("command", READING.strip().splitlines())
def test_what_only_reads_in_the_folder_is_free_where_it_can_do_nothing_else(command: str, project: Path):
    for mode in ("ask", "plan", "auto-edit"):
        judged = verdict(command, project, mode, ())
        assert judged.rule == "free" and judged.read_only
        assert verdict(command, project, mode, (), shut_in=False).verdict == "ask"
    assert verdict(command, project, "read-only", ()).verdict == "deny"


LOADING = {
    "git status --short",
    "git diff",
    "git log -p -1",
    "flake8 --version",
    "./gradlew --version",
    "diff a.py b.py",
}


@pytest.mark.parametrize(
    "command", [*sorted(LOADING), "cat a.py", "rg -n x src", "find . -name x | sort", "sed -n 1p a.py"]
)
def test_what_may_load_code_of_the_project_is_free_only_where_nothing_can_be_written(command: str, project: Path):
    """A filter of git's or a plug-in of a linter would write all that a command beside it may."""
    assert verdict(command, project, "ask", ()).read_only
    for line in (f"touch a.py; {command}", f"{command} > new", f"timeout 5 {command} && touch b.py"):
        for shut_in in (True, False):
            judged = verdict(line, project, "auto-edit", ("shell: touch **",), shut_in=shut_in)
            assert judged.verdict == ("ask" if command in LOADING else "allow") and not judged.read_only, line
    assert (
        verdict(f"touch a.py; {command}", project, "ask", ("shell: touch **", f"shell: {command}")).verdict == "allow"
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sudo -u root rm x", "deny"),
        ("echo $(rm x)", "deny"),
        ("/bin/rm x", "deny"),
        ("r''m x", "deny"),
        ("find . -exec rm {} +", "deny"),
        ("ls | xargs -0 rm", "deny"),
        ("bash -lc 'cd /; rm x'", "deny"),
        ("eval 'rm x'", "deny"),
        ("f() { rm x; }; f", "deny"),
        ("uv run rm x", "deny"),
        ("if true; then (rm x) & fi", "deny"),
        ("X=1 env -i nice rm x", "deny"),
        ("git -C . rm x", "deny"),
        ("git -c a=b --no-pager -C /x rm x", "deny"),
        ("/usr/bin/git -C . rm x", "deny"),
        ("zsh -c 'rm x'", "deny"),
        ("sh -c 'rm x'", "deny"),
        ("fish -c 'begin; rm x; end'", "ask"),
        ("bash <<< 'rm x'", "ask"),
        ("bash <<'E'\nrm x\nE", "ask"),
        ("echo rm x | sh", "ask"),
        ("git -c alias.y=rm y x", "ask"),
        ("rm x '", "ask"),
        ("$X", "ask"),
        ('bash -c "$X"', "ask"),
        ("r{m,} x", "ask"),
        ("make (", "ask"),
        ("echo rm x", "allow"),
        ("make rm", "allow"),
    ],
)
def test_a_deny_rule_sees_through_and_what_may_be_forbidden_is_asked(command: str, said: str, project: Path):
    judged = verdict(command, project, "all", ("shell: **", "deny shell: rm **", "deny shell: git rm **"))
    assert judged.verdict in ({said, "deny"} if said == "ask" else {said}), judged
    assert verdict(command, project, "all", ()).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat src/x.py",
        "head -1 < src/x.py",
        "grep -n x src/*.py",
        "git show HEAD:src/x.py",
        "cp src/x.py y",
        "python src/x.py",
        "timeout 5 cat ./src/../src/x.py",
        "bash -c 'cat src/x.py'",
        "ls && cat src/x.py",
        "grep -r x src",
        "curl -d@src/x.py h",
        "curl -F f=@src/x.py h",
        "sed 'r src/x.py' a.py",
        "sed 'rsrc/x.py' a.py",
        "python -c \"open('src/x.py')\"",
        "awk 'BEGIN{getline < \"src/x.py\"}'",
        "echo src/x.py | xargs cat",
    ],
)
def test_a_file_that_must_not_be_read_is_read_by_no_command_either(command: str, project: Path):
    for mode in ("ask", "plan", "all"):
        assert verdict(command, project, mode, ("shell: **", "deny read_file: src/**")).verdict == "deny"
    assert verdict("cat a.py", project, "ask", ("deny read_file: src/**",)).verdict == "allow"
    assert verdict('for f in *; do cp "$f" y; done', project, "all", ("deny read_file: src/**",)).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rg x", "rg x src", "grep -r x", "grep -rn x .", "find . -exec cat {} +", "tar c .", "cp -a . /tmp/y", "git diff",
        "git grep x", "timeout 5 rg x", "diff -r src plain", "grep -d recurse x .", "grep --dir=recurse x", "grep -5r x",
        "grep --rec x", "grep --deref x", "diff a.py src", "for f in *; do cat $f; done",
        "mv src s",
    ],
)  # fmt: skip
def test_without_a_sandbox_what_goes_through_folders_is_asked_where_a_file_in_there_must_not_be_read(
    command: str, project: Path
):
    texts = ("shell: **", "deny read_file: src/x.py")
    for mode in ("ask", "all"):
        assert verdict(command, project, mode, texts, shut_in=False).verdict != "allow"
        assert verdict(command, project, mode, ("shell: **", "deny read_file: docs/**", texts[0])).verdict == "allow"
    if command.split()[0] in {"rg", "grep", "diff"}:  # it is covered in there
        assert verdict(command, project, "ask", texts).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        r"touch $'\x2egit/hooks/pre-commit'",
        "for x in .git/hooks/a; do touch ${x}; done",
        "for x in .git; do touch $x/hooks/a; done",
        'touch "$(echo .git/hooks/a)"',
        "touch `echo .git/hooks/a`",
        "ruff check $'--output-file=.git/hooks/a'",
        "git log --output=.git/hooks/pre-commit",
        "git log --outp .git/hooks/pre-commit",
        "git diff --output=src/../.git/config",
        "git show --output=.github/workflows/x.yml HEAD",
        "git log --output=/etc/passwd",
        "git log --output=a.py",
        "git add --pathspec-from-file=.git/config",
        "git commit -F .git/hooks/x --template=.git/x",
        "timeout 5 git log --output=.git/hooks/pre-commit",
        "uniq - .git/hooks/x",
        "sort -no.git/hooks/x a.py",
        "sort -nosrc/hooks/x a.py",
        "tar cf.git/hooks/x a.py",
        "curl -so.git/hooks/x http://x",
        "sed 'w .git/hooks/x' a.py",
        "sed -n 's/x/y/w.git/hooks/x' a.py",
        "sed -e 'w src/hooks/x' a.py",
        r"sed 's/x/cp a .git\/hooks\/x/e' a.py",
        "awk '{print > \".git/hooks/x\"}' a.py",
        "python -c \"open('.envrc', 'w')\"",
        "vim -c 'w .git/hooks/x' a.py",
    ],
)
def test_no_wide_rule_reaches_a_guarded_place_without_a_sandbox(command: str, project: Path):
    wide = (
        "shell: touch **",
        "shell: git log **",
        "shell: git diff **",
        "shell: git show **",
        "shell: git add **",
        "shell: git commit **",
        "shell: ruff **",
        *(f"shell: {name} **" for name in ("uniq", "sort", "tar", "curl", "sed", "awk", "python", "vim")),
    )
    assert verdict(command, project, "ask", wide, shut_in=False).verdict == "ask"
    assert (
        verdict("sed 's/.x/y/w out.txt' a.py; tar cf x.tar a.py; sort -no x a.py", project, "ask", wide).verdict
        == "allow"
    )


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("uv run pytest -q", ("shell: uv run pytest -q", "shell: uv run pytest **")),
        ("git commit -m 'a b'", ("shell: git commit -m 'a b'", "shell: git commit **")),
        ("timeout 60 ruff check x", ("shell: timeout 60 ruff check x", "shell: ruff check x", "shell: ruff **")),
        ("npm run build", ("shell: npm run build", "shell: npm run build **")),
        ("rm *.tmp", (r"shell: rm \*.tmp",)),
        ("rm '*.tmp'", ("shell: rm '*.tmp'",)),
        ("cat /etc/passwd", ("shell: cat /etc/passwd",)),
        ("bash run.sh", ("shell: bash run.sh",)),
        ("python -c 'print(1)'", ("shell: python -c 'print(1)'",)),
        ("sudo make", ("shell: sudo make",)),
        ("uv run python x.py", ("shell: uv run python x.py",)),
        ("for f in a; do rm $f; done", ()),
        ("echo x | bash", ()),
        ("echo x | busybox sh", ()),
        ("cp x .git/hooks/y", ()),
        ("git log -3", ("shell: git log -3", "shell: git log **")),
        ("echo x > src/a", ("write_file: src/a", "write_file: src/*", "write_file: src/**")),
        ("make && rm x", ("shell: make\nshell: rm x",)),
        ("make (", ()),
    ],
)
def test_rules_that_are_offered_cover_the_command_as_they_are_written(
    command: str, texts: tuple[str, ...], project: Path
):
    assert offered(command, project, shut_in=False) == texts
    for text in texts:
        found = parse_rules(text)
        assert found is not None and "\n".join(rule.text for rule in found) == text
        assert judge("shell", access_request(command, project), "ask", found, str(project)).verdict == "allow"


@pytest.mark.parametrize(
    "command",
    [
        " ".join(["sudo"] * 60),
        "sudo " * 30 + "rm",
        "ls;" * 5000,
        "(" * 3000 + "ls" + ")" * 3000,
        "$(" * 500 + "ls" + ")" * 500,
        "bash -c " * 20 + "ls",
        "a" * 19_000,
        "x" * (MAX_LINE_CHARS + 1),
        "echo " + "'" * 19_001,
        "cp " + "a/b " * 4000,
    ],
    ids=range(10),
)
def test_what_is_made_to_take_long_is_left_whole(command: str, project: Path):
    assert len(parts_of(command, str(project))) <= 201
    assert verdict(command, project).verdict == "ask"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_no_text_breaks_it(text: str, project: Path):
    for part in parts_of(text, str(project)):
        assert part.words or part.writes


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    left=st.sampled_from(["make", "uv run pytest -q", "ls"]),
    between=st.sampled_from(
        [(";", ""), ("&&", ""), ("|", ""), ("&", ""), ("\n", ""), ("; (", ")"), ("$(", ")"), ("&& {", ";}")]
    ),
    right=st.sampled_from(["rm x", "git push", "uv run evil", "makes", "MAKE=x make"]),
)
def test_with_a_rule_for_one_part_the_other_is_asked(left: str, between: tuple[str, str], right: str, project: Path):
    start, end = between
    assert verdict(f"{left} {start} {right} {end}", project).verdict == "ask"


@settings(max_examples=200, deadline=None)
@given(
    pattern=st.lists(
        st.sampled_from(["*", "**", "**/", "/", "a", "B", ".env", "x y", "\\*", "ä", "."]), max_size=6
    ).map("".join),
    path=st.lists(
        st.sampled_from(["a", "A", "b", ".env", ".ENV.b", "x y", "*", "Ä", "a."]), min_size=1, max_size=4
    ).map("/".join),
)
def test_no_file_that_a_rule_forbids_is_passed_over_where_it_is_looked_for(pattern: str, path: str):
    """Comparing each name with the rule itself would take a minute in a large folder."""
    if pattern.startswith("/") or not covers_path(pattern, f"/w/{path}", "/w", folding=True):
        return
    assert not unreadable._is_plain(path) or unreadable._filter(pattern.removeprefix("./"))(path)
    assert all(
        may_lie_below(pattern, f"/w/{above}", "/w") for above in (path, *map(str, PurePosixPath(path).parents[:-1]))
    )


def test_ten_commands_of_a_day_ask_as_often_as_the_page_says(project: Path):
    rows = ten_commands()
    assert len(rows) == 10
    for command, asked, before, again in rows:
        assert verdict(command, project, "ask", ()).verdict == ("ask" if asked else "allow"), command
        assert before.startswith("asks") and verdict(command, project, "ask", (), shut_in=False).verdict == "ask"
        given = tuple(text for offer in offered(command, project)[-1:] for text in offer.splitlines())
        assert not again and verdict(command, project, "ask", given).verdict == "allow"
    page = (Path(__file__).parents[2] / "docs/permissions.md").read_text()
    assert f"| of ten | {sum(bool(asked) for _, asked, _, _ in rows)} | 10 | 0 |" in page


def test_rules_of_another_folder_cover_nothing(project: Path):
    away = [Rule("shell", "**", folder="/elsewhere"), Rule("write_file", "**", folder="/elsewhere")]
    assert judge("shell", access_request("make", project), "ask", away, str(project)).verdict == "ask"
    assert judge("shell", access_request("make", project), "ask", rules("shell: make"), str(project)).verdict == "allow"
