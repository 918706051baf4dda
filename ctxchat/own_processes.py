"""Finds programs and builds Python command lines for the processes that ctxchat starts for itself. None may come from a project:
whoever can write there would run code outside of every sandbox. Standard library only.
"""

# pathlib is slow to import, and this is on the way to the first frame:
# ruff: noqa: PTH119, PTH109, PTH110, PTH113, PTH117, PTH118, PTH120

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_ROOT = os.path.dirname(_PACKAGE)

_PYTHON = os.path.join(os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable))
"""The Python interpreter. Links in its folder's path are resolved once, at the start: later they may lead elsewhere."""

_BOOT = (
    "import os, sys, runpy; path, root, module, *rest = sys.argv[1:]; sys.path[:] = [*path.split(os.pathsep), root]; "
    "import ctxchat; sys.path.pop(); sys.argv[:] = [module, *rest]; runpy.run_module(module, None, '__main__', True)"
)
"""Python code that imports `ctxchat` from its own folder, then removes that folder from the path so that nothing else is
imported from there, and runs a module."""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours in a Python that imports nothing from the current folder, nor from `PYTHONPATH`
    below it, nor from a checkout but ctxchat itself."""
    path = os.pathsep.join(import_path())
    return [_PYTHON, "-I", "-W", "ignore", "-c", _BOOT, path, _ROOT, module, *arguments]


def code_command(code: str, *arguments: str) -> list[str]:
    """The command that runs a few words of Python which need the standard library only."""
    return [_PYTHON, "-I", "-S", "-c", code, *arguments]


def script_command(script: str, *arguments: str) -> list[str]:
    """The command that runs a file of ours which needs the standard library only."""
    return [_PYTHON, "-I", "-S", os.path.join(_PACKAGE, script), *arguments]


def import_path() -> list[str]:
    """The folders of `sys.path` that modules may be imported from, resolved."""
    return [os.path.realpath(folder) for folder in sys.path if _may_be_imported_from(folder)]


def _may_be_imported_from(folder: str) -> bool:
    if not os.path.isabs(folder):
        return False
    installed = any(_below(folder, prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix))
    return installed or not (_below(folder, _here()) or os.path.realpath(folder) == os.path.realpath(_ROOT))


def own_places() -> tuple[str, ...]:
    """Folders and files that this program is made of: its interpreter, its libraries, itself. Resolved."""
    around = [sys.prefix, sys.exec_prefix, os.path.dirname(_PYTHON), _PACKAGE, *import_path()]
    return tuple(dict.fromkeys(os.path.realpath(place) for place in around if place))


def find_program(name: str, workspace: str = "", path: str | None = None) -> str:
    """The absolute path of a program that is not part of a project, empty for none: looked for in `path` (by default PATH), but
    not at or below the workspace or the current folder, nor in a virtual environment."""
    for folder in _folders(path):
        file = os.path.join(folder, name)
        if _is_outside(file, workspace) and os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return ""


def outside_path(workspace: str = "", path: str | None = None) -> str:
    """PATH without the folders of a project: for processes that run outside of the sandbox."""
    return os.pathsep.join(folder for folder in _folders(path) if _is_outside(folder, workspace))


def _folders(path: str | None) -> Iterator[str]:
    given = os.environ.get("PATH", os.defpath) if path is None else path
    for folder in given.split(os.pathsep):
        if os.path.isabs(folder) and not os.path.exists(os.path.join(folder, os.pardir, "pyvenv.cfg")):
            yield folder


def _is_outside(place: str, workspace: str) -> bool:
    """Whether neither the path nor what it links to lies in a project."""
    projects = [project for project in (workspace, _here()) if project and os.path.realpath(project) != "/"]
    return not any(_below(where, project) for project in projects for where in (place, os.path.realpath(place)))


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # the current folder was deleted
        return ""


def _below(place: str, folder: str) -> bool:
    """Whether a path is the folder or below it; links in the folder's own path are resolved."""
    if not folder:
        return False
    roots: Sequence[str] = (os.path.normpath(folder), os.path.realpath(folder))
    return any(f"{os.path.normpath(place)}/".startswith(f"{root.rstrip('/')}/") for root in roots)
