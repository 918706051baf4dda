"""Whether a summary is asked for behind the conversation itself, whose beginning the server holds, or of a text made for it.

Knows figures and the view; asks nobody.
"""

from __future__ import annotations

import msgspec

from ctxchat.agent.attachments import images_for
from ctxchat.agent.conversation import Conversation
from ctxchat.core.cache_state import Hold
from ctxchat.core.context_usage import TokenPrice
from ctxchat.core.ledger import Ledger
from ctxchat.core.ports import ModelRequest, SummaryTask
from ctxchat.core.summary_task import input_tokens, output_room
from ctxchat.core.times import epoch

ASKED_TOKENS = 2_000
"""What a summariser is told of how a record is written."""


async def request_within(conversation: Conversation, task: SummaryTask) -> ModelRequest | None:
    """The conversation's request, for the task to be asked behind it; None where it had better not be."""
    if held_for(conversation, task) is None:
        return None
    return await request_so_far(conversation, output_room(task, conversation.context_usage.window))


async def request_so_far(conversation: Conversation, max_output: int) -> ModelRequest:
    """The conversation's last request with all that was said since, for more to be asked behind it: its provider finds what it
    has cached."""
    items = conversation.view.items
    while items and not items[-1].group:  # a note that goes along with the next message only
        items = items[:-1]
    view = msgspec.structs.replace(conversation.view, items=items)
    return conversation.call_with(view, max_output, await images_for(conversation))


def held_for(conversation: Conversation, task: SummaryTask) -> Hold | None:
    """What the server holds of the conversation, for the task to be asked behind it; None where that is dearer than a text made
    for it, does not fit, or shows less: messages that were made shorter, or a beginning that is not as it was sent."""
    context_usage, cache = conversation.context_usage, conversation.context_usage.cache
    hold = cache.held_at(epoch(conversation.clock.now()))
    if hold is None or context_usage.breaks or not task.groups or not shown_whole(conversation.ledger, task):
        return None
    asked = ASKED_TOKENS + conversation.counter.count_text(task.beside)
    whole = context_usage.used - context_usage.tokens("draft") + asked
    if whole + output_room(task, context_usage.window) > context_usage.window:
        return None
    own = input_tokens(task.groups) + conversation.counter.count_text(task.previous) + asked
    return hold if cheaper_within(hold, whole, own, context_usage.price, prefilled=conversation.on_own_server) else None


def cheaper_within(hold: Hold, whole: int, own: int, price: TokenPrice, *, prefilled: bool) -> bool:
    """A request of `whole` tokens, the beginning of which is held, costs less than one of `own` tokens that nobody holds; on a
    server of one's own (`prefilled`), takes less time to read, and leaves it what it holds."""
    new = max(0, whole - hold.tokens)
    if price.written:
        return hold.tokens * price.cached + new * price.written < own * price.written
    return prefilled and new < own


def shown_whole(ledger: Ledger, task: SummaryTask) -> bool:
    """Everything that is to go stands in the view as it was said."""
    whole = {name for entry in ledger.live() if entry.group and not entry.change for name in entry.covers}
    return all(group.id in whole for group in task.groups)
