"""Actions that choose the model: switch it, choose one for the first time, set the default; and go on with an interrupted
turn."""

from __future__ import annotations

from asyncio import to_thread
from time import time
from typing import TYPE_CHECKING

from ctxchat.core.context_usage import OFFLINE_NAME
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.ledger import NOTHING_OPEN, open_end
from ctxchat.presentation.cache_text import first_words, thoughts_words
from ctxchat.presentation.text import clean, one_line
from ctxchat.tui.actions.sessions import comes_now, put_off_no_more
from ctxchat.tui.chat.offers import Way

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp


async def models(app: CtxchatApp, argument: str = "") -> None:
    """Choose from the list, or by name."""
    from ctxchat.tui.panels.models import ModelsScreen

    session = app.controller.idle_session()
    if len(argument.split()) > 1:
        raise UsageError(
            f"{argument!r} is no name of a model: it holds a space.",
            'A server\'s address goes into the settings: [models."NAME"] api_base = "http://…".',
        )
    name = argument or await app.ask(ModelsScreen(app.services, session, app.settings_file, app.settings.model))
    if not isinstance(name, str) or not name:
        pass
    elif name == session.context_usage.model:
        await put_off_no_more(app, "model")
    elif await comes_now(app, f"{one_line(name, 80)} from now on?", by=name, model=name):
        await _switch(app, name)
    await app.chat.refresh_session()


async def effort(app: CtxchatApp, argument: str = "") -> None:
    """Set the named level of effort (`default` for what the settings say), or say which is in force and which there are."""
    session = app.controller.idle_session()
    setup = session.setup
    level = "" if argument == "default" else argument
    if level and level == setup.effort:
        await put_off_no_more(app, "effort")
        argument = ""
    setup.check_level(level)
    if argument and await comes_now(app, f"Effort {one_line(argument, 40)} now?", effort=level):
        await setup.choose_effort(level)
        app.chat.show_header()
    now = f"Effort: {setup.effort}." if setup.effort else "Effort: the model's usual one."
    words = f"{now} {one_line(setup.levels, 200)} /effort LEVEL sets one, /effort default takes it back."
    app.chat.changed(await session.measure(), words)


async def first_choice(app: CtxchatApp, name: str) -> None:
    """The first model of all, one that was found or (without a name) of the whole list. Sessions begin with it from now on."""
    from ctxchat.tui.panels.models import ModelsScreen

    session = app.controller.idle_session()
    name = name or await app.ask(ModelsScreen(app.services, session, app.settings_file, "")) or ""
    if name:
        await _switch(app, name, await save_default_model(app, name))
        await app.chat.questions.choose_no_model()
    await app.chat.refresh_session()


async def save_default_model(app: CtxchatApp, name: str) -> str:
    """Write the model to begin with into the person's own settings; what came of it, in a sentence."""
    from ctxchat.config.write import set_value

    try:
        await to_thread(set_value, app.settings_file, "model", name)
    except (CtxchatError, OSError) as problem:
        return f"It could not be kept for the next start: {clean(str(problem))}"
    return f"Sessions begin with it from now on ({app.settings_file.name}); /model changes that."


async def resume(app: CtxchatApp, argument: str = "") -> None:
    """Go on where the last turn broke off."""
    session = app.controller.idle_session()
    if open_end(session.state.ledger) is None:
        app.chat.notice("info", NOTHING_OPEN)
    else:
        app.controller.resume()


async def go_on_with(way: Way, waiting: bool, app: CtxchatApp, argument: str = "") -> None:
    """Do what the person chose when the model could not be reached; a message that is `waiting` is then answered."""
    from ctxchat.tui.panels.models import ModelsScreen

    session = app.controller.idle_session()
    name = OFFLINE_NAME if way == "offline" else ""
    if way == "another":
        chosen = await app.ask(ModelsScreen(app.services, session, app.settings_file, app.settings.model))
        name = chosen if isinstance(chosen, str) else ""
    if name and name != session.context_usage.model:
        await _switch(app, name)
    elif way == "another" or (not waiting and await session.setup.unreached()):
        await app.chat.unreached(session, waiting=waiting)
        return
    if waiting and open_end(session.state.ledger):
        app.controller.resume()
    elif way == "again":
        app.chat.notice("info", f"{one_line(session.context_usage.model, 80)} can be reached again.")


async def _switch(app: CtxchatApp, name: str, more: str = "") -> None:
    setup = app.controller.idle_session().setup
    lost = thoughts_words(setup.thoughts_lost_with(name))
    context_usage = await setup.switch_model(name)
    app.chat.has_model()
    who = "the offline assistant" if name == OFFLINE_NAME else one_line(name, 80)
    cache = context_usage.cache
    price = "" if cache.held_at(time()) else first_words(context_usage, cache.cold)
    words = " ".join(filter(None, (f"From here on {who} answers.", price, lost, more)))
    if app.chat.presenter.empty:
        app.chat.show_figures(context_usage)
        app.chat.announce(words, "info")
    else:
        app.chat.changed(context_usage, words)
    await app.services.warm_up(name)
