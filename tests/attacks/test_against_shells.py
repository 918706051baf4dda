"""Lines made up at random from the grammars of four shells. What is free is run by the real bash: it writes nothing and starts
nothing that is not known to read. What another shell would run is free for nobody, however it comes to that shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import string
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.tools.programs import _OPTIONS, _READING

from .judging import offered, verdict

OTHERS = ("dash", "zsh", "fish")
DIFFER = [("dash", "[[ a || touch ]]"), ("fish", "echo 'a\\' '; touch RAN #'")]
"""Lines that are free, for in bash they only print or compare, and of which another shell runs something."""

PROGRAMS = (
    "ls", "cat", "echo", "grep", "test", "[", "find", "wc", "printf", "sort", "git", "head", "true", "type", "command", "timeout",
    "nice", "env", "xargs", "touch", "bash", "diff", "seq", "tr", "uniq", "sed", "time", "file", "tree", "rg", "date", "du", "od",
    "base64", "tail", "cut", "paste", "join", "md5sum", "tee", "xxd", "awk", "tar", "jq", "less", "man",
)  # fmt: skip

COMMANDS = st.sampled_from([
    "ls", "cat", "echo", "echo -e", "printf %d", "printf %s", "printf -v x", "grep -n x", "grep -f", "test", "[", "[ -v",
    "test -v", "find .", "wc -l", "sort", "sort -o", "head -n1", "true", "type", "command -v", "command", "timeout 5 ls",
    "time echo", "nice cat", "env ls", "xargs", "{}", "{ls", "ls | xargs -n1 echo", "! ls", "\\ls", "'ls'", 'l""s', "cd",
    "git log", "git status", "git grep", "touch RAN", "=touch RAN", "x=1", "x=1 ls", "eval", "exec", "sed -n 1p", "sed -n",
    "sed -n '1p'", "sed -n 1,3p", "sed -n '1w RAN'", "sed -n '1e touch RAN'", "sed --posix -n", "sed --sandbox", "sed -e",
    "sed --file=a.py", "sed -n 's/x/touch RAN/e'", "sed 's/x/y/w RAN'", "uniq -", "uniq -c", "file", "file -C", "tree", "rg x",
    "date", "date -s", "du", "od", "base64 -d", "tail -n1", "cut -c1", "paste", "join", "md5sum", "tee", "xxd", "xxd -r", "awk",
    "tar cf", "jq .", "less", "man", "sort -r", "git diff", "git log -p", "git grep -O", "git archive", "git branch",
    "uniq", "seq 1", "tr a", "diff a.py", "noglob", "and", "not", "builtin", "-", ".",
])  # fmt: skip

PIECES = [
    "a.py", "src", "RAN", "touch RAN", "'touch RAN'", '"touch RAN"', "'; touch RAN #'", '"; touch RAN #"', "'a\\'", "'\\''",
    "$'a\\'; touch RAN #'", "\\;", "\\#", "\\'", '\\"', "'", '"', "\\", "#", "*", "*.py", "[a", "]", "{a,b}", "~", "=touch",
    "-", "-oRAN", "-o RAN", "--output=RAN", "--outp RAN", "-fprint RAN", "-fls RAN", "-delete", "-i", "-i.RAN", "--in-place",
    "-w RAN", "'w RAN'", "'1e touch RAN'", "-C", "-T RAN", "--compress-program=touch", "--pre touch", "--ext-diff", "-OTOUCH",
    "--to-command=touch", "-exec touch RAN ;", "-f RAN", "-a RAN", "-e 'w RAN'",
    "!!", "^a^touch", "--", "-x", "-n", "-o", "-exec", "$(touch RAN)", "`touch RAN`", "'$(touch RAN)'", '"$(touch RAN)"',
    '"`touch RAN`"', "<(touch RAN)", ">(touch RAN)", "=(touch RAN)", "(touch RAN)", "'(touch RAN)'", '"(touch RAN)"',
    "a[$(touch RAN)]", "'a[$(touch RAN)]'", '"a[\\$(touch RAN)]"', "$((1))", "$((a[$(touch RAN)]))", "*(e:'touch RAN':)",
    "a.py(e:'touch RAN':)", "'*(e:touch RAN:)'", "$x", "${x}", '"$x"', "${x:-$(touch RAN)}", "${(e)x}", "x=touch", "-eq 0",
    "|| touch RAN", "-o touch", "{}", "%d", "@(a|b)", "$_", "$0", "<->", "**/*", "[[ a || touch RAN ]]", "]]",
    "begin; touch RAN; end", "((touch RAN))", "> RAN", ">| RAN", "&> RAN", ">& RAN", "2>&1", ">/dev/null", "< a.py",
    "<<< 'touch RAN'", "<<E\ntouch RAN\nE\n", "<<'E'\n$(touch RAN)\nE\n", "<<-E\n\ttouch RAN\n\tE\n", "\\\n", "\t", "|", "&",
    ";", ";;",
]  # fmt: skip

SIMPLE = st.builds(lambda c, w: " ".join((c, *w)), COMMANDS, st.lists(st.sampled_from(PIECES), max_size=3))


def _compound(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.builds(
        "{}{}{}".format,
        below,
        st.sampled_from(["; ", " && ", " || ", " | ", " & ", "\n", " |& ", " #", "; #\n", ""]),
        below,
    )
    forms = [
        "({})", "{{ {}; }}", "{{{}; }}", "!{}", "if({})then ls;fi", "if {}; then ls; fi", "for x in a 'b c'; do {}; done",
        "while false; do {}; done", "case a in a) {};; esac", "ls \"$({})\"", "echo `{}`", "cat <({})", "[[ {} ]]",
        "(( {} ))", "! {}", "time {}", "f() {{ {}; }}; f", "if {}; end", "begin; {}; end", "repeat 2 {}",
        "function f; {}; end; f", "echo {}", "{} &",
    ]  # fmt: skip
    quoted = st.builds("bash -c {}".format, below.map(shlex.quote))
    return joined | st.builds(str.format, st.sampled_from(forms), below) | quoted


LINES = st.recursive(SIMPLE, _compound, max_leaves=4)

CARRIERS = [
    "{shell} -c {q}", "{path} -c {q}", "{shell} -ec {q}", "{shell} -c {q} a b", "timeout 5 {shell} -c {q}",
    "env {shell} -c {q}", "nice {shell} -c {q}", "time {shell} -c {q}", "command {shell} -c {q}", "exec {shell} -c {q}",
    "X=1 {shell} -c {q}", "ls && {shell} -c {q}", "({shell} -c {q})", "ls \"$({shell} -c {q})\"", "cat <({shell} -c {q})",
    "echo x | xargs {shell} -c {q}", "find . -exec {shell} -c {q} \\;", "bash -c {qq}",
    "for s in {shell}; do $s -c {q}; done", "{shell} <<< {q}", "{shell} <<'QZ'\n{line}\nQZ", "echo {q} | {shell}",
    "echo {q} | timeout 5 {shell}", "{shell} <(echo {q})", "{shell} a.py", "{shell} < a.py", "cat a.py | {shell} -s",
    "git -c alias.x={bang} x", "git -c core.pager={q} -p log", "if {shell} -c {q}; then ls; fi", "'{shell}' -c {q}",
    "\\{shell} -c {q}", "s={shell}; $s -c {q}", "SHELL={path} bash -c {qq}", "{shell}",
]  # fmt: skip
"""Ways in which a line comes to another shell."""


@pytest.fixture(scope="module")
def run_by(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], bool]:
    """Whether a shell that runs a line writes a file or starts a program that is none of PROGRAMS: bash tells of each."""
    programs = tmp_path_factory.mktemp("programs")
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name) or "/bin/true")
    work = tmp_path_factory.mktemp("work")
    tell = {"BASH_FUNC_command_not_found_handle%%": f'() {{ echo "$1" >> {work}/UNKNOWN; }}'}

    def ran(shell: str, line: str) -> bool:
        (work / "src").mkdir(parents=True)
        (work / "a.py").write_text("x = 1\n")
        env = {"PATH": str(programs), "HOME": str(work / "src"), **tell}
        where = {"cwd": work, "env": env, "timeout": 120}
        subprocess.run([str(shutil.which(shell)), "-c", line], capture_output=True, stdin=subprocess.DEVNULL, **where)
        found = sorted(str(path.relative_to(work)) for path in work.rglob("*") if ".config" not in path.parts)
        shutil.rmtree(work)
        return [name for name in found if not name.startswith("src/.")] != ["a.py", "src"]

    shutil.rmtree(work)
    return ran


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(os.path.realpath(tmp_path_factory.mktemp("small")))
    (root / "src").mkdir()
    (root / "a.py").write_text("x = 1\n")
    return root


def carried(line: str, shell: str, carriers: Sequence[str] = CARRIERS) -> list[str]:
    path = shutil.which(shell) or f"/bin/{shell}"
    inner = f"{shell} -c {shlex.quote(line)}"
    words = {"q": shlex.quote(line), "qq": shlex.quote(inner), "bang": shlex.quote(f"!{inner}")}
    return [carrier.format(shell=shell, path=path, line=line, **words) for carrier in carriers]


@pytest.mark.parametrize(("shell", "line"), DIFFER)
def test_what_is_harmless_in_bash_alone_is_asked_for_another_shell(
    shell: str, line: str, run_by: Callable[[str, str], bool], small: Path
) -> None:
    assert verdict(line, small, texts=()).rule == "free" and not run_by("bash", line)
    if shutil.which(shell):
        assert run_by(shell, line)
    for command in carried(line, shell):
        assert verdict(command, small, texts=()).verdict == "ask", command


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=LINES)
def test_what_is_free_writes_nothing_and_starts_only_what_reads(
    line: str, run_by: Callable[[str, str], bool], small: Path
) -> None:
    judged = verdict(line, small, texts=())
    if judged.verdict == "allow":
        assert judged.read_only and not run_by("bash", line), line


FREE = sorted(
    {
        *_READING,
        *_OPTIONS,
        "sed",
        "printf",
        "test",
        "env ls",
        "git log",
        "git diff",
        "git status",
        "git show",
        "git branch",
    }
)
FORMS = [
    "{o} RAN",
    "{o}RAN",
    "{o}=RAN",
    "{o} RAN a.py",
    "{o} a.py RAN",
    "a.py {o} RAN",
    "{o} - RAN",
    "-n{o}RAN",
    "1p {o} RAN",
]


@pytest.mark.long
@pytest.mark.parametrize("program", FREE)
def test_no_option_of_a_free_program_writes(program: str, run_by: Callable[[str, str], bool], small: Path) -> None:
    """Its own help names the options; each has the name of a file as its value, and comes before and behind others."""
    if not shutil.which(program.split()[0]):
        pytest.skip("it is not installed")
    asked = [*program.split(), "-h" if program.startswith("git") else "--help"]
    told = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    options = {
        *re.findall(r"(?<![\w-])--[a-z][\w-]*", told),
        *(f"-{letter}" for letter in string.ascii_letters + string.digits),
    }
    lines = [f"{program} {form.format(o=option)}" for option in sorted(options) for form in FORMS]
    free = [line for line in lines if verdict(line, small, texts=()).verdict == "allow"]
    quick = [line if program in {"test", "printf"} else f"timeout 1 {line}" for line in free]
    assert not run_by("bash", "\n".join(f"( {line} ) < /dev/null" for line in quick)), free


@settings(max_examples=60)
@given(
    line=LINES, shell=st.sampled_from([*OTHERS, "sh", "ksh", "tcsh", "busybox sh"]), carrier=st.sampled_from(CARRIERS)
)
def test_what_another_shell_runs_is_free_for_nobody_and_no_wider_rule_is_offered(
    line: str, shell: str, carrier: str, small: Path
) -> None:
    (command,) = carried(line, shell, [carrier])
    for mode in ("ask", "plan", "auto-edit", "read-only"):
        assert verdict(command, small, mode, ("shell: echo **", "shell: ls **", "shell: cat **")).verdict != "allow", (
            command
        )
    other = carried(f"{line}; touch OTHER", shell, [carrier])[0]
    for texts in offered(command, small):
        assert other == command or verdict(other, small, texts=tuple(texts.splitlines())).verdict == "ask", texts
