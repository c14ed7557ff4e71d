"""The way from a plugin's thread to the daemon's loop, and back with the answer."""

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
    """Runs work of the host on the daemon's loop for code that runs elsewhere.

    The work runs in the context in which the gate was made, not in that of the plugin, but for who asks and
    how deep requests to models are nested.
    """

    def __init__(self, host: PluginHost, loop: asyncio.AbstractEventLoop) -> None:
        self.host = host
        self.loop = loop
        self._context = contextvars.copy_context()

    def wait(self, work: Work[Value], /, *args: Any, **kwargs: Any) -> Value:
        """Run `work(*args, **kwargs)` on the daemon's loop and block this thread until it has ended.

        Raises RuntimeError on the daemon's loop itself, which would wait for itself for ever.
        """
        if _running_loop() is self.loop:
            raise RuntimeError(
                f"cannot wait for {work.__name__} on the loop of the daemon: it would never end"
            )
        return self.start(work(*args, **kwargs)).result()

    async def reach(self, work: Work[Value], /, *args: Any, **kwargs: Any) -> Value:
        """Await `work(*args, **kwargs)` on the daemon's loop; cancelling this cancels it."""
        if _running_loop() is self.loop:
            return await work(*args, **kwargs)
        return await asyncio.wrap_future(self.start(work(*args, **kwargs)))

    def start(self, work: Coroutine[Any, Any, Value]) -> concurrent.futures.Future[Value]:
        """Start work on the daemon's loop; cancelling the future cancels it."""
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
    """What a name such as `Users` is: an object whose methods ask the gateway."""

    def __init__(self, gate: HostBridge, name: str) -> None:
        self._gate = gate
        self._host = gate.host
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Raise AttributeError that says what is missing."""
        raise AttributeError(missing_name_sentence(f"{self.__dict__.get('_name', '')}.{attribute}"))


class _Gated(Protocol):
    _gate: HostBridge


def blocking(method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Make a coroutine method, of a Table say, one that is called plainly, from any thread but the daemon's.

    Its result is awaitable too where that is possible. A `db` argument, the peer's session, is taken and
    left aside.
    """

    @functools.wraps(method)
    def call(self: _Gated, *args: Any, db: Any = None, **kwargs: Any) -> Any:
        del db
        return self._gate.wait(method, self, *args, **kwargs)  # type: ignore[arg-type]

    return call
