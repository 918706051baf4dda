"""Decides whether a summary is asked for at the end of the conversation's own request, which the server has in its cache, or in a
separate request with a text made for it.

Knows figures and the view; makes no call.
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
"""Tokens of the instructions that a summariser gets."""


async def request_within(conversation: Conversation, task: SummaryTask) -> ModelRequest | None:
    """The conversation's request, to append the task to; None where a separate request is better."""
    if held_for(conversation, task) is None:
        return None
    return await request_so_far(conversation, output_room(task, conversation.context_usage.window))


async def request_so_far(conversation: Conversation, max_output: int) -> ModelRequest:
    """The conversation's last request with everything said since, to append something to: the provider reads its beginning from
    the cache."""
    items = conversation.view.items
    while items and not items[-1].group:  # a note that goes along with the next message only
        items = items[:-1]
    view = msgspec.structs.replace(conversation.view, items=items)
    return conversation.call_with(view, max_output, await images_for(conversation))


def held_for(conversation: Conversation, task: SummaryTask) -> Hold | None:
    """What the server has cached of the conversation, where the task is best appended to it; None where that costs more than a
    separate request, does not fit, or shows less: messages were shortened, or the beginning is not as it was sent."""
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
    """Whether a request of `whole` tokens with a cached beginning costs less than one of `own` tokens without; on a local server
    (`prefilled`), whether it takes less time to read. It also keeps that server's cache."""
    new = max(0, whole - hold.tokens)
    if price.written:
        return hold.tokens * price.cached + new * price.written < own * price.written
    return prefilled and new < own


def shown_whole(ledger: Ledger, task: SummaryTask) -> bool:
    """Whether everything that is to be summarised is in the view unchanged."""
    whole = {name for entry in ledger.live() if entry.group and not entry.change for name in entry.covers}
    return all(group.id in whole for group in task.groups)
