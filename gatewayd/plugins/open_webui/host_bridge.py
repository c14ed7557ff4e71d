"""Bridge from threads of plugins to the loop of the daemon, on which host methods run."""

import asyncio
import concurrent.futures
import contextvars
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.placeholders import missing_name_sentence
from gatewayd.plugins.runtime.call_context import current_asker, current_call
from gatewayd.plugins.runtime.call_depth import current_depth

Value = TypeVar("Value")
Work = Callable[..., Coroutine[Any, Any, Value]]


class HostBridge:
    """Runs host methods on the loop of the daemon for code in other threads.

    They run in the context in which the bridge was made, with the actor and the call depth of the plugin.
    """

    def __init__(self, host: PluginHost, loop: asyncio.AbstractEventLoop) -> None:
        self.host = host
        self.loop = loop
        self._context = contextvars.copy_context()

    def wait(self, work: Work[Value], /, *args: Any, **kwargs: Any) -> Value:
        """Run `work(*args, **kwargs)` on the loop of the daemon and block this thread until it ends.

        Raises RuntimeError on the loop of the daemon, which would deadlock.
        """
        if _running_loop() is self.loop:
            raise RuntimeError(
                f"cannot wait for {work.__name__} on the loop of the daemon: it would deadlock"
            )
        return self.start(work(*args, **kwargs)).result()

    async def reach(self, work: Work[Value], /, *args: Any, **kwargs: Any) -> Value:
        """Await `work(*args, **kwargs)` on the loop of the daemon; a cancellation cancels it."""
        if _running_loop() is self.loop:
            return await work(*args, **kwargs)
        return await asyncio.wrap_future(self.start(work(*args, **kwargs)))

    def start(self, work: Coroutine[Any, Any, Value]) -> concurrent.futures.Future[Value]:
        """Start work on the loop of the daemon; cancelling the future cancels it."""
        context = self._context.copy()
        context.run(current_depth.set, current_depth.get())
        now = current_call.get()
        context.run(current_asker.set, now.scope.actor if now is not None and now.scope is not None else None)
        try:
            return context.run(asyncio.run_coroutine_threadsafe, work, self.loop)
        except RuntimeError:
            # The loop is closed.
            work.close()
            raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class HostTable:
    """Base class of tables such as `Users`, whose methods call the host."""

    def __init__(self, bridge: HostBridge, name: str) -> None:
        self._bridge = bridge
        self._host = bridge.host
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Raise AttributeError with the full name of the missing attribute."""
        raise AttributeError(missing_name_sentence(f"{self.__dict__.get('_name', '')}.{attribute}"))


class _Bridged(Protocol):
    _bridge: HostBridge


def blocking(method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Turn a coroutine method into a blocking one, for any thread but that of the daemon.

    A `db` argument, the database session of Open WebUI, is accepted and ignored.
    """

    @functools.wraps(method)
    def call(self: _Bridged, *args: Any, db: Any = None, **kwargs: Any) -> Any:
        del db
        return self._bridge.wait(method, self, *args, **kwargs)  # type: ignore[arg-type]

    return call
