"""Actions, their keys, and what a person's wishes make of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.config.keys import ACTION_IDS, ACTIONS, PRESETS, SWALLOWED, fault, resolve, split


def test_the_standard_keys_and_every_preset_work_without_conflict() -> None:
    assert len(set(ACTION_IDS)) == len(ACTIONS)
    for preset in PRESETS:
        keymap = resolve({}, preset)
        assert keymap.problems == ()
        keys = [key for keys in keymap.keys.values() for key in keys]
        assert len(keys) == len(set(keys)) and all(fault(key) is None for key in keys)
        assert all(keymap.keys.values())
    assert not any(
        k.startswith("f") and k[1:].isdigit() for ks in resolve({}, "no-function-keys").keys.values() for k in ks
    )


BROWSERS = {"ctrl+n", "ctrl+t", "ctrl+w", "ctrl+pageup", "ctrl+pagedown"}
"""Keys that a browser gives to no page."""


def test_the_set_for_browsers_has_a_key_for_each_action_that_reaches_a_page_and_every_set_one_for_a_new_session() -> (
    None
):
    assert [a for a, keys in resolve({}, "no-function-keys").keys.items() if set(keys) <= BROWSERS] == []
    for preset in PRESETS:
        assert set(resolve({}, preset).keys["new_session"]) - BROWSERS


def test_a_wish_takes_the_key_and_the_loser_is_named() -> None:
    keymap = resolve({"search": ["f3", "Ctrl+R"]})
    assert keymap.keys["search"] == ("f3", "ctrl+r") and keymap.keys["archive"] == ()
    assert [p.text for p in keymap.problems] == ["keys.search: f3 was the key of archive, which has it no longer"]
    assert keymap.action("f3") == "search" and keymap.action("f7") is None


def test_moving_a_key_on_is_no_conflict() -> None:
    keymap = resolve({"search": "f3", "archive": "ctrl+f"})
    assert keymap.problems == () and keymap.keys["archive"] == ("ctrl+f",)


def test_two_wishes_for_one_key_are_named() -> None:
    keymap = resolve({"help": "ctrl+r", "search": "ctrl+r"})
    assert len(keymap.problems) == 1 and keymap.action("ctrl+r") == "search"


def test_keys_that_cannot_work_are_named_and_the_action_keeps_its_own() -> None:
    for key in [*SWALLOWED, "ctrl+m", "x", "shift+x", "ctl+r", "f99", "banana", "ctrl+", "+", "esc"]:
        keymap = resolve({"help": key})
        assert keymap.keys["help"] == ("f1",), key
        assert len(keymap.problems) == 1 and keymap.problems[0].key == "keys.help"
    for key in ("alt+2", "alt+b", "alt+comma", "shift+f3"):
        assert "reaches the program as another" in resolve({"help": key}).problems[0].text
    assert "message editor" in resolve({"help": "ctrl+a"}).problems[0].text
    assert resolve({"help": "ctl+r"}).problems[0].nearest == "ctrl"
    assert resolve({"help": "escap"}).problems[0].nearest == "escape"


def test_what_the_editor_swallows_is_what_textual_binds() -> None:
    from textual.widgets import TextArea

    bound = {key for binding in TextArea.BINDINGS for key in binding.key.split(",")}  # type: ignore[union-attr]
    plain = {k for k in bound if k.startswith("ctrl+") and len(k) == 6} | {k for k in bound if k in ("f5", "f6", "f7")}
    assert plain <= SWALLOWED


def test_an_empty_list_takes_the_keys_away() -> None:
    keymap = resolve({"quit": []})
    assert keymap.keys["quit"] == () and keymap.problems == ()


@given(
    st.dictionaries(
        st.sampled_from(ACTION_IDS),
        st.lists(st.sampled_from(["f1", "f3", "ctrl+r", "ctrl+a", "alt+x", ""]) | st.text(max_size=6), max_size=3),
    )
)
def test_no_key_ever_starts_two_actions(wishes: dict) -> None:  # type: ignore[type-arg]
    keymap = resolve(wishes)
    keys = [key for keys in keymap.keys.values() for key in keys]
    assert len(keys) == len(set(keys))
    assert set(keymap.keys) == set(ACTION_IDS)
    for action, keys in wishes.items():
        named = " ".join(p.text for p in keymap.problems)
        assert all(k in keymap.keys[action] or fault(k) or k in named for k in split(keys))
