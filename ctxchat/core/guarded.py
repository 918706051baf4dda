"""Guarded places: files and folders of a project whose content is run later by git, an editor, a shell or a CI system, without
anybody being asked again. So writing them always needs an approval of its own.

One list for approvals and for the sandbox. Pure: knows paths as text only.
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import translate

GUARDED: tuple[str, ...] = (
    # version control, its hooks, and what decides about them
    ".git", ".gitmodules", ".gitconfig", ".githooks", ".husky", ".hg", ".svn", ".jj", ".pre-commit-config.yaml", "lefthook.yml",
    # ours, and other agents' settings, hooks and servers
    ".ctxchat", ".claude", ".claude.json", ".mcp.json", ".cursor", ".codex", ".gemini", ".agents", ".opencode", "opencode.json*",
    ".aider*", ".continue", ".windsurf", ".clinerules", ".roo", ".kilocode", ".kiro", ".amazonq", ".junie", ".qwen", ".crush*",
    "crush.json", ".factory", ".goose*", ".augment", ".trae", ".pi",
    # editors: tasks and settings that run when a folder is opened
    ".vscode", "*.code-workspace", ".idea", ".fleet", ".vs", ".zed", ".helix", "*.sublime-project",
    ".nvim.lua", ".nvimrc", ".nvim", ".exrc", ".vimrc", ".gvimrc", ".lvimrc", ".vim", ".dir-locals.el", ".dir-locals-2.el",
    ".kakrc", ".devcontainer", ".devcontainer.json",
    # shells and tools that run what they find in the folder they are started in
    ".envrc", ".direnv", ".mise.toml", "mise.toml", ".mise", ".autoenv", ".bashrc", ".bash_profile", ".bash_login",
    ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".inputrc", ".gdbinit", ".lldbinit", ".npmrc", ".yarnrc",
    ".yarnrc.yml", ".pnpmfile.cjs", ".cargo", ".ssh", ".mvn", ".bazelrc", ".irbrc", ".pryrc",
    ".pdbrc*", ".rprofile", ".renviron", ".ghci", ".sbtopts", ".jvmopts", ".psqlrc", ".sqliterc", ".wgetrc", ".curlrc",
    ".screenrc",
    ".tmux.conf", ".tmuxinator*", ".emacs.d", ".ideavimrc", ".bazelversion", ".zlogin", ".zlogout", ".xonshrc", ".tool-versions",
    ".mise.*", "mise.*.toml", ".overcommit.yml", ".lefthook.y*ml", "lefthook.yaml", ".lintstagedrc*", ".pythonrc*", ".netrc",
    # continuous integration
    ".github", ".gitlab-ci.yml", ".gitlab", ".circleci", ".travis.yml", ".drone.yml", ".woodpecker", ".woodpecker.y*ml",
    ".buildkite", "jenkinsfile*", "azure-pipelines*.yml", ".azure-pipelines", ".azuredevops", ".pipelines", ".cirrus.yml",
    "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".cirrus.star", ".teamcity", ".semaphore", ".forgejo", ".gitea",
    ".tekton", "cloudbuild.y*ml", "buildspec.y*ml", ".ci",
)  # fmt: skip
"""Names of guarded files and folders, in lower case; they are guarded at any depth. `*` stands for anything."""

_NAMES = frozenset(name for name in GUARDED if "*" not in name)
_PATTERNS = tuple((name, re.compile(translate(name))) for name in GUARDED if "*" in name)
_ANY = re.compile("|".join(pattern.pattern for _, pattern in _PATTERNS))


def guarded(path: str) -> str:
    """The guarded name that a path (relative to the project's folder) is, or lies below; empty where it is not guarded."""
    parts = [folded(part) for part in path.replace("\\", "/").split("/")]
    for part in parts:
        if part in _NAMES:
            return part
        # How Windows writes the first long name that begins so: GIT~1 is .git.
        if part.startswith("git~"):
            return ".git"
        if _ANY.match(part):
            return next(name for name, pattern in _PATTERNS if pattern.match(part))
    # A folder with a HEAD in it is a repository to git, whose configuration is the file beside it.
    return "HEAD" if parts[-1] == "head" else ""


def new_at_the_top(path: str) -> str:
    """The hidden file or folder at the top of a project that a path begins with; empty where it has none.

    A caller asks only about paths that do not exist yet: a new hidden file may be the settings of a tool that is not in
    `GUARDED`. Lists of ignored files and other known harmless ones do not count.
    """
    name = path.replace("\\", "/").split("/")[0]
    return name if name.startswith(".") and name not in {".", ".."} and not _HARMLESS.fullmatch(name) else ""


_HARMLESS = re.compile(r"\.\w+ignore|\.editorconfig|\.gitattributes|\.gitkeep")


def folded(name: str) -> str:
    """A name in the form in which all names are equal that some file system takes for the same: regardless of case and of
    invisible characters, without dots and blanks at the end."""
    if name.isascii():  # fast, since the sandbox asks this of every file
        return name.lower().rstrip(". ")
    visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ")
