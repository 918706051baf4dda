"""Where and when: the date, the platform and the workspace's name. To the day and not finer, so that a day's requests agree."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable
from pathlib import Path


class Identity:
    """ContextProvider `identity`. `today` is handed in so that tests can hold it still."""

    source_id = "identity"

    def __init__(self, root: Path, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self._root = root
        self._today = today

    async def provide(self) -> str:
        """Three lines; the date is ISO 8601 with its weekday, in local time."""
        today = self._today()
        lines = (
            f"Date: {today.isoformat()} ({_WEEKDAYS[today.weekday()]})",
            f"Platform: {platform.system() or 'unknown'} {platform.machine()}".rstrip(),
            f"Workspace: {self._root.name or self._root}",
        )
        return "\n".join(lines)


# strftime("%A") would follow the locale of the terminal.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
