"""The scripted provider on a thread of its own, for tests that are not asynchronous."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.fakes.http.loop_thread import background_loop
from tests.fakes.providers.upstream import FakeUpstream, Recorded, Reply


@dataclass(frozen=True)
class Provider:
    """A running provider; the events of `FakeUpstream` as waits that a thread can make."""

    fake: FakeUpstream
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        """The address without a path."""
        return self.fake.base_url

    def script(self, *replies: Reply) -> None:
        """Answer the next chat requests with these, and forget what was recorded before."""

        def renew() -> None:
            self.fake.chats = list(replies)
            self.fake.requests.clear()
            for event in (self.fake.closed, self.fake.silent, self.fake.release):
                event.clear()

        self._run(_call(renew))

    def last(self) -> Recorded:
        """Return the last chat request that came in."""
        return [request for request in self.fake.requests if request.method == "POST"][-1]

    def wait_silent(self, seconds: float = 10.0) -> None:
        """Wait until a scripted answer came to its silence."""
        self._run(asyncio.wait_for(self.fake.silent.wait(), seconds))

    def wait_closed(self, seconds: float) -> None:
        """Wait until a client left in the middle of an answer; TimeoutError when it does not."""
        self._run(asyncio.wait_for(self.fake.closed.wait(), seconds))

    def release(self) -> None:
        """End every silence."""
        self.loop.call_soon_threadsafe(self.fake.release.set)

    def stop(self) -> None:
        """Close the port and all connections."""
        self._run(self.fake.stop())

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(30)  # type: ignore[arg-type]


async def _call(action: object) -> None:
    action()  # type: ignore[operator]


@contextlib.contextmanager
def background_upstream(
    models: Sequence[str] = ("m",), *, kind: type[FakeUpstream] = FakeUpstream
) -> Iterator[Provider]:
    """Run a `FakeUpstream`, or a kind of it, until the end of the block."""
    with background_loop() as loop:
        provider = Provider(kind(models), loop)
        try:
            asyncio.run_coroutine_threadsafe(provider.fake.start(), loop).result(30)
            yield provider
        finally:
            asyncio.run_coroutine_threadsafe(provider.fake.stop(), loop).result(30)
