"""Hostile and odd paths: what they resolve to, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext
from ctxchat.tools.paths import locate, missing, open_file


@pytest.mark.parametrize("written", ["../x", "/etc/passwd", "sub/../../x", "~/x", "a/../../work2/x"])
def test_what_leads_out_is_outside(written: str, context: ToolContext) -> None:
    assert not locate(written, context).inside


@pytest.mark.parametrize("written", ["x", "./a/b", "sub/../x", ".", "a/./b", "..."])
def test_what_stays_in_is_inside(written: str, context: ToolContext) -> None:
    assert locate(written, context).inside


def test_an_absolute_path_into_the_workspace_is_inside(context: ToolContext) -> None:
    place = locate(f"{context.workspace}/a/b.txt", context)
    assert place.inside
    assert place.shown == "a/b.txt"


def test_a_neighbour_with_the_same_beginning_is_outside(context: ToolContext) -> None:
    assert not locate(f"{context.workspace}-secret/x", context).inside


@pytest.mark.parametrize(
    "written", ["", "  ", "a\0b", "C:\\Windows\\x", "\\\\server\\share", "\ud800", "~nobody-at-all/x"]
)
def test_unusable_paths_are_refused(written: str, context: ToolContext) -> None:
    with pytest.raises(ToolError):
        locate(written, context)


@pytest.mark.parametrize("written", ["/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/1/mem", "/sys/kernel"])
def test_devices_and_views_of_the_system_are_refused(written: str, context: ToolContext) -> None:
    with pytest.raises(ToolError):
        locate(written, context)


def test_a_link_out_of_the_workspace_is_judged_by_its_end(
    context: ToolContext, workspace: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("s")
    (workspace / "link").symlink_to(secret)
    (workspace / "folder").symlink_to(tmp_path)
    assert not locate("link", context).inside
    assert not locate("folder/secret.txt", context).inside
    assert not locate("folder/new.txt", context).inside
    (workspace / "device").symlink_to("/dev/zero")
    with pytest.raises(ToolError):
        locate("device", context)


def test_a_link_swapped_in_after_the_judgement_is_not_followed(
    context: ToolContext, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("s")
    (workspace / "d").mkdir()
    (workspace / "d" / "a.txt").write_text("mine")
    file, folder = locate("d/a.txt", context), locate("d/a.txt", context)
    (workspace / "d" / "a.txt").unlink()
    (workspace / "d" / "a.txt").symlink_to(tmp_path / "secret" / "a.txt")
    with pytest.raises((ToolError, OSError)):
        open_file(file)
    (workspace / "d" / "a.txt").unlink()
    (workspace / "d").rmdir()
    (workspace / "d").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolError, match="somewhere else"):
        open_file(folder)


def test_a_link_loop_is_an_error_and_no_hang(context: ToolContext, workspace: Path) -> None:
    (workspace / "a").symlink_to(workspace / "b")
    (workspace / "b").symlink_to(workspace / "a")
    with pytest.raises((ToolError, OSError)):
        open_file(locate("a", context))


def test_a_pipe_is_refused_and_does_not_block(context: ToolContext, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError, match="not a plain file"):
        open_file(locate("pipe", context))


def test_spilled_results_count_as_inside(context: ToolContext) -> None:
    spilled = Path(context.session_folder, "tool-results", "c1.txt")
    spilled.write_text("full")
    place = locate("tool-results/c1.txt", context)
    assert (place.path, place.shown, place.inside) == (spilled, "tool-results/c1.txt", True)
    assert locate(str(spilled), context).inside
    assert not locate("tool-results/../../session/journal", context).inside
    assert not locate("tool-results/../journal", context).path.is_relative_to(context.session_folder)


def test_a_link_among_spilled_results_is_judged_by_its_end(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("s")
    Path(context.session_folder, "tool-results", "l").symlink_to(tmp_path / "s")
    assert not locate("tool-results/l", context).inside


def test_the_workspaces_own_folder_of_that_name_comes_first(context: ToolContext, workspace: Path) -> None:
    (workspace / "tool-results").mkdir()
    (workspace / "tool-results" / "mine.txt").write_text("mine")
    assert locate("tool-results/mine.txt", context).path == workspace / "tool-results" / "mine.txt"
    assert locate("tool-results/new.txt", context, spilled=False).path == workspace / "tool-results" / "new.txt"


def test_a_link_in_a_circle_is_not_offered_as_its_own_remedy(workspace: Path, context: ToolContext) -> None:
    (workspace / "circle").symlink_to("circle")
    assert str(missing(locate("circle", context))) == "circle is a link that leads nowhere."


@pytest.mark.parametrize(
    ("there", "written"),
    [
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("caf\u00e9/a.txt", "cafe\u0301/a.txt"),
        ("Screenshot 3.45\u202fPM.txt", "Screenshot 3.45 PM.txt"),
        ("a\xa0b.txt", "a b.txt"),
    ],
)
def test_a_name_is_found_however_its_letters_and_blanks_are_written(
    there: str, written: str, context: ToolContext, workspace: Path
) -> None:
    (workspace / there).parent.mkdir(exist_ok=True)
    (workspace / there).write_text("x")
    assert locate(written, context).shown == there
    assert locate("Screenshot.txt", context).shown == "Screenshot.txt"


def test_of_two_names_that_look_alike_none_is_taken_for_a_third(context: ToolContext, workspace: Path) -> None:
    for there in ("a\xa0b", "a\u202fb"):
        (workspace / there).write_text("x")
    assert locate("a b", context).shown == "a b"
