"""Measures the house itself: how large it is, how it is cut, and how far something travels through it.

`uv run python benchmarks/house.py [FOLDER]` prints the figures of the package `ctxchat` in a checkout (this one by default);
`--names` lists what is behind them. Figures are evidence and no rules: a shard may well be missed if it were gone.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from textual.app import App
from textual.screen import Screen
from textual.widget import Widget

SHARD_LINES = 90
MAX_DEFINITIONS = 8
MIN_INTERFACE_MODULES = 5
"""So many modules of one package that define the same public function have it for their interface."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(arguments: list[str]) -> None:
    folders = [Path(one) for one in arguments if not one.startswith("-")]
    root = folders[0] if folders else Path(__file__).parents[1]
    modules = read(root)
    found = {
        "shards": shards(modules),
        "functions that only forward": sorted(forwarders(modules)),
        "class names with two meanings": doubles(modules),
        "names defined more than 8 times": repeated(modules),
    }
    longest_files = sorted(((lines(text), name) for name, text in modules.items()), reverse=True)[:3]
    longest_functions = sorted(function_lengths(modules), reverse=True)[:3]
    print(f"{'lines':34}{sum(map(lines, modules.values())):>7}")
    print(f"{'modules':34}{len(modules):>7}")
    for what, names in found.items():
        print(f"{what:34}{len(names):>7}")
    print(f"{'longest files':34}  " + ", ".join(f"{name} {count}" for count, name in longest_files))
    print(f"{'longest functions':34}  " + ", ".join(f"{name} {count}" for count, name in longest_functions))
    if "--names" in arguments:
        for what, names in found.items():
            print(f"\n{what}:")
            print("\n".join(f"  {name}" for name in names))


def read(root: Path) -> dict[str, str]:
    """The text of every module by its dotted name; a package goes by its own name."""
    texts: dict[str, str] = {}
    for path in sorted((root / "ctxchat").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return texts


def lines(text: str) -> int:
    return text.count("\n")


def shards(modules: dict[str, str]) -> list[str]:
    """Modules under 90 lines that only one other module imports, which lies in the same package."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, text in modules.items():
        for used in imported(text, modules):
            if used != name:
                users[used].add(name)
    packages = {name.rpartition(".")[0] for name in modules}
    return [
        f"{name} ({lines(text)}, for {user.rpartition('.')[2]})"
        for name, text in modules.items()
        if name not in packages and lines(text) < SHARD_LINES and len(users[name]) == 1
        for user in users[name]
        if name.rpartition(".")[0] in (user, user.rpartition(".")[0])
    ]


def imported(text: str, modules: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules or node.module in modules:
                    yield inner if inner in modules else node.module


def forwarders(modules: dict[str, str]) -> Iterator[str]:
    """Functions that do nothing but hand all their parameters, as they are, to one other function."""
    for name, text in modules.items():
        for function, place in functions(text):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            statement = body[0] if len(body) == 1 else None
            call = statement.value if isinstance(statement, ast.Return | ast.Expr) else None
            call = call.value if isinstance(call, ast.Await) else call
            if not isinstance(call, ast.Call) or function.name.startswith("__") or reads_out(call):
                continue
            every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            own = [one.arg for one in every if one.arg not in ("self", "cls")]
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if [one.id if isinstance(one, ast.Name) else None for one in given] == own:
                yield f"{name}.{place}"


def reads_out(call: ast.Call) -> bool:
    """True for a value that is made or put in words: a class, a built-in, a method of a text."""
    if isinstance(call.func, ast.Name):
        return call.func.id[0].isupper() or call.func.id in dir(__builtins__)
    return not isinstance(call.func, ast.Attribute) or isinstance(call.func.value, ast.Constant | ast.Call)


def doubles(modules: dict[str, str]) -> list[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for name, text in modules.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


class Defined(NamedTuple):
    """A class, or a module as if it were one: what it defines, and the names of its bases."""

    name: str
    functions: set[str]
    bases: list[str]


def repeated(modules: dict[str, str]) -> list[str]:
    """Names that more than `MAX_DEFINITIONS` functions have. Those by which a class overrides its base or fits a protocol are one
    with that, and so are those of a package's interface; Textual's own names are no choice of ours."""
    classes: dict[str, Defined] = {}
    everything: list[Defined] = []
    for name, text in modules.items():
        body = ast.parse(text).body
        everything.append(Defined(name, verbs(body), []))
        for node in body:
            if isinstance(node, ast.ClassDef):
                bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
                named = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in bases]
                classes[node.name] = Defined(f"{name}.{node.name}", verbs(node.body), named)
    protocols = [one for one in classes.values() if "Protocol" in one.bases]
    framework = {*dir(App), *dir(Screen), *dir(Widget), "close"}  # the last by contextlib.closing
    places: dict[str, set[str]] = defaultdict(set)
    for one in [*everything, *classes.values()]:
        inherited = set[str]().union(*(base.functions for base in bases_of(one, classes)))
        whole = one.functions | inherited
        fits = [each for each in protocols if each.functions <= whole]
        for name in one.functions - inherited - framework:
            if not name.startswith(("__", "on_", "action_", "watch_", "validate_")):
                places[name].add(next((each.name for each in fits if name in each.functions), one.name))
    for name, where in places.items():
        packages = Counter(place.rpartition(".")[0] for place in where if place in modules and name[0] != "_")
        for package, count in packages.items():
            if count >= MIN_INTERFACE_MODULES:
                where -= {place for place in where if place in modules and place.rpartition(".")[0] == package}
                where.add(package)
    often = sorted(((len(where), name) for name, where in places.items()), reverse=True)
    return [f"{name} ({count}: {', '.join(sorted(places[name]))})" for count, name in often if count > MAX_DEFINITIONS]


def verbs(body: list[ast.stmt]) -> set[str]:
    """The functions of a module or class. Its properties are named as fields are, by a noun, and are none."""
    found = [one for one in body if isinstance(one, Function)]
    return {one.name for one in found if not any("property" in ast.unparse(by) for by in one.decorator_list)}


def bases_of(one: Defined, classes: dict[str, Defined]) -> Iterator[Defined]:
    """The bases in this package, and theirs."""
    for name in one.bases:
        if (base := classes.get(name)) and base is not one:
            yield base
            yield from bases_of(base, classes)


def function_lengths(modules: dict[str, str]) -> Iterator[tuple[int, str]]:
    for name, text in modules.items():
        for function, place in functions(text):
            yield (function.end_lineno or function.lineno) - function.lineno + 1, f"{name}.{place}"


def functions(text: str) -> Iterator[tuple[Function, str]]:
    """Functions and methods with their names inside the module; those inside other functions aside."""
    for node in ast.parse(text).body:
        if isinstance(node, Function):
            yield node, node.name
        elif isinstance(node, ast.ClassDef):
            yield from ((one, f"{node.name}.{one.name}") for one in node.body if isinstance(one, Function))


if __name__ == "__main__":
    main(sys.argv[1:])
