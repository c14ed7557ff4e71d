"""Lets somebody wait until a file changes, in this process."""

import asyncio


class FileWatch:
    """Wakes those who wait for a file.

    Take `now`, read the file, then wait for what came after: no change is missed, and nothing is kept about
    files that nobody waits for.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._now = 0
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    @property
    def now(self) -> int:
        """How many changes there were so far, of all files."""
        return self._now

    def notify(self, file_id: str) -> None:
        """Tell that a file changed or went; to be called when that is committed."""
        self._now += 1
        for waiting in self._waiting.pop(file_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def end(self) -> None:
        """Let nobody wait any longer: `is_over` from now on."""
        self.is_over = True
        for file_id in list(self._waiting):
            self.notify(file_id)

    async def wait(self, file_id: str, seen: int) -> None:
        """Return when the file has changed since `now` was `seen`, at once when waiting is over; now and then
        when only others have."""
        if self._now != seen or self.is_over:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(file_id, set()).add(waiting)
        try:
            await waiting
        finally:
            self._leave(file_id, waiting)

    def _leave(self, file_id: str, waiting: asyncio.Future[None]) -> None:
        others = self._waiting.get(file_id)
        if others is None:
            return
        others.discard(waiting)
        if not others:
            del self._waiting[file_id]
