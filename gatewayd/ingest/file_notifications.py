"""Notifications of changed files inside this process."""

import asyncio


class FileWatch:
    """Wakes the waiters of a file.

    To miss no change, read `version`, then the file, then wait for a later version. Files without waiters
    use no memory. With `seconds`, a waiter wakes after that time at the latest: another node may have changed
    the file.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self.is_over = False
        self._version = 0
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    @property
    def version(self) -> int:
        """Number of changes of all files so far."""
        return self._version

    def notify(self, file_id: str) -> None:
        """Wake the waiters of a file; call it after the change or removal is committed."""
        self._version += 1
        for waiting in self._waiting.pop(file_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def end(self) -> None:
        """Wake all waiters and set `is_over`; later waits return at once."""
        self.is_over = True
        for file_id in list(self._waiting):
            self.notify(file_id)

    async def wait(self, file_id: str, seen: int) -> None:
        """Return when the file has changed since `version` was `seen`, or at once when `is_over`.

        May also return early, when only other files have changed.
        """
        if self._version != seen or self.is_over:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(file_id, set()).add(waiting)
        try:
            await asyncio.wait([waiting], timeout=self._seconds)
        finally:
            self._leave(file_id, waiting)

    def _leave(self, file_id: str, waiting: asyncio.Future[None]) -> None:
        others = self._waiting.get(file_id)
        if others is None:
            return
        others.discard(waiting)
        if not others:
            del self._waiting[file_id]
