"""Reserved parameters of plugin methods: gatewayd-plugins(7), PARAMETERS."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from gatewayd.accounts.records import Actor, User
from gatewayd.accounts.serializers import render_user
from gatewayd.completions.copies import copy_json
from gatewayd.events.records import EventTarget
from gatewayd.measurement.cells import CounterCell, LabeledCells, counters
from gatewayd.plugins.interfaces import SharedWindow, SharedWindows, UserValvesStore
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import CallScope

EventFunction = Callable[[Any], Awaitable[Any]]
RequestMaker = Callable[[CallScope], Any]
"""Makes the object of `__request__`."""


TokenFinder = Callable[[Actor], Awaitable[dict[str, Any] | None]]
"""Finds the token of `__oauth_token__`, None for a caller without one."""

OAUTH_TOKEN: Final = "__oauth_token__"  # noqa: S105 - the name of a parameter


SHARED_LIMITS: Final = "__shared_limits__"

MAX_SHARED_WINDOWS: Final = 100
"""Maximum number of windows in which a plugin counts at once: Redis does nothing else meanwhile."""

MAX_WINDOW_SECONDS: Final = 31 * 86_400
MAX_WINDOW_LIMIT: Final = 2**50
"""Limit above which one is as good as none: the sums of Redis are exact up to here."""

LimitFunction = Callable[[Sequence[tuple[str, int, int, int]]], Awaitable[Sequence[float] | None]]
"""Counts rows of a name, seconds, a limit and an amount: `plugins.interfaces.SharedWindows.take`."""


class EventChannel(Protocol):
    """Interface through which emitters and calls reach users; implemented by `gatewayd.events.service`."""

    async def emit(self, target: EventTarget, event: Any) -> bool:
        """Send an event to its target; False when it is dropped."""
        ...

    async def call(self, target: EventTarget, event: Any) -> Any:
        """Send an event to one client, wait for its answer and return that."""
        ...


@dataclass(frozen=True, slots=True)
class CallServices:
    """Services of the gateway for plugin calls; `loop` is the loop of the daemon, `context` its context.

    `counted` has the number of calls by family.
    """

    loop: asyncio.AbstractEventLoop
    events: EventChannel
    user_valves: UserValvesStore
    make_request: RequestMaker | None = None
    provider_token: TokenFinder | None = None
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    windows: SharedWindows | None = None
    family: PluginFamily = PluginFamily.FUNCTION
    counted: LabeledCells[CounterCell] = field(default_factory=counters)


@dataclass(frozen=True, slots=True)
class MethodParameters:
    """Parameter names of a method; `with_defaults` is the subset that may be omitted."""

    names: frozenset[str]
    with_defaults: frozenset[str]


def read_parameters(function: Callable[..., Any]) -> MethodParameters:
    """Return the parameters that can be passed by name; none when the method has no signature."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return MethodParameters(frozenset(), frozenset())
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = [one for one in signature.parameters.values() if one.kind in kinds]
    return MethodParameters(
        frozenset(one.name for one in found),
        frozenset(one.name for one in found if one.default is not inspect.Parameter.empty),
    )


def user_record(user: User) -> dict[str, Any]:
    """Return an account in the format of `__user__`, as a deep copy."""
    record: dict[str, Any] = copy_json(render_user(user))
    return record


async def find_token(names: frozenset[str], scope: CallScope, services: CallServices) -> None:
    """Put the token of the caller into the scope if it is among `names`; it may be refreshed for this."""
    if OAUTH_TOKEN in names and services.provider_token is not None:
        scope.oauth_token = await services.provider_token(scope.actor)


def reserved_arguments(
    names: frozenset[str], plugin_id: str, scope: CallScope, services: CallServices
) -> dict[str, Any]:
    """Return the reserved arguments among `names`, except those that depend on the valves classes.

    Called in the thread of the plugin, since making a request may import libraries.
    """
    return {
        name: ARGUMENT_MAKERS[name](plugin_id, scope, services) for name in names & ARGUMENT_MAKERS.keys()
    }


def make_emitter(target: EventTarget, services: CallServices) -> EventFunction:
    """Return `__event_emitter__`: a function that closes over one dict with the ids of the call.

    Plugins read the ids from its closure. It works on the event loop of the plugin and on any other loop, and
    after the call as well. An event in progress is delivered even if the task of the plugin is cancelled.
    """
    info = _info(target)

    async def __event_emitter__(event: Any) -> Any:  # noqa: N807 - plugins print it
        return await asyncio.shield(
            run_on_loop(services, lambda: services.events.emit(_target(info, target), event))
        )

    return __event_emitter__


def make_call(target: EventTarget, services: CallServices) -> EventFunction:
    """Return `__event_call__`: like the emitter, but returns the answer; cancelling withdraws the call."""
    info = _info(target)

    async def __event_call__(event: Any) -> Any:  # noqa: N807 - plugins print it
        return await run_on_loop(services, lambda: services.events.call(_target(info, target), event))

    return __event_call__


def make_limiter(plugin_id: str, services: CallServices) -> LimitFunction | None:
    """Return `__shared_limits__`: counts in windows of all nodes, None for a daemon alone.

    A tool and a function of one id have windows of their own.
    """
    windows, owner = services.windows, f"{services.family} {plugin_id}"
    if windows is None:
        return None

    async def __shared_limits__(rows: Sequence[tuple[str, int, int, int]]) -> Sequence[float] | None:  # noqa: N807
        wanted = _shared_windows(rows)
        waits: Sequence[float] | None = await run_on_loop(services, lambda: windows.take(owner, wanted))
        return waits

    return __shared_limits__


def _shared_windows(rows: Sequence[tuple[str, int, int, int]]) -> Sequence[SharedWindow]:
    """Return the windows of a plugin; raises ValueError, naming the field."""
    if len(rows) > MAX_SHARED_WINDOWS:
        raise ValueError(
            f"cannot count in {len(rows)} windows at once: up to {MAX_SHARED_WINDOWS} are allowed"
        )
    wanted = [SharedWindow(*row) for row in rows]
    for each in wanted:
        if not isinstance(each.name, str):
            raise ValueError("cannot count in a window: expected a text as its name")
        if not all(isinstance(number, int) for number in (each.seconds, each.limit, each.amount)):
            raise ValueError("cannot count in a window: expected whole numbers as seconds, limit and amount")
        if not 1 <= each.seconds <= MAX_WINDOW_SECONDS:
            raise ValueError(f"cannot count in a window: expected 1 to {MAX_WINDOW_SECONDS} as seconds")
    if len({each.name for each in wanted}) < len(wanted):
        raise ValueError("cannot count in windows: each needs a name of its own")
    return [
        replace(each, limit=min(each.limit, MAX_WINDOW_LIMIT), amount=min(each.amount, 2 * MAX_WINDOW_LIMIT))
        for each in wanted
    ]


def run_on_loop(
    services: CallServices, work: Callable[[], Coroutine[Any, Any, Any]]
) -> "asyncio.Future[Any]":
    """Run a coroutine function on the loop of the daemon; the future belongs to the running loop.

    It runs in the context of the gateway, since threads of plugins have none and the call may be over.
    """
    coroutine = work()
    try:
        future = services.context.copy().run(asyncio.run_coroutine_threadsafe, coroutine, services.loop)
    except RuntimeError:
        coroutine.close()
        raise
    return asyncio.wrap_future(future)


def _info(target: EventTarget) -> dict[str, Any]:
    return {
        "chat_id": target.chat_id,
        "message_id": target.message_id,
        "session_id": target.session_id,
        "user_id": target.user_id,
    }


def _target(info: Mapping[str, Any], target: EventTarget) -> EventTarget:
    ids = info["user_id"], info["chat_id"], info["message_id"], info["session_id"]
    return EventTarget(*ids, target.request_id)


def _request(plugin_id: str, scope: CallScope, services: CallServices) -> Any:
    return services.make_request(scope) if services.make_request else None


ARGUMENT_MAKERS: Final[Mapping[str, Callable[[str, CallScope, CallServices], Any]]] = {
    "__user__": lambda _, scope, services: user_record(scope.actor.user),
    "__request__": _request,
    "__event_emitter__": lambda _, scope, services: make_emitter(scope.target, services),
    "__event_call__": lambda _, scope, services: make_call(scope.target, services),
    "__metadata__": lambda _, scope, services: scope.metadata,
    "__model__": lambda _, scope, services: copy_json(scope.model),
    "__files__": lambda _, scope, services: scope.files,
    "__messages__": lambda _, scope, services: scope.messages,
    "__task__": lambda _, scope, services: scope.task,
    "__task_body__": lambda _, scope, services: scope.task_body,
    "__chat_id__": lambda _, scope, services: scope.target.chat_id,
    "__message_id__": lambda _, scope, services: scope.target.message_id or None,
    "__session_id__": lambda _, scope, services: scope.target.session_id or None,
    "__tools__": lambda _, scope, services: scope.tools,
    "__id__": lambda plugin_id, scope, services: plugin_id,
    "__pipe_id__": lambda plugin_id, scope, services: plugin_id,
    OAUTH_TOKEN: lambda _, scope, services: copy_json(scope.oauth_token),
    SHARED_LIMITS: lambda plugin_id, scope, services: make_limiter(plugin_id, services),
    "__body__": lambda _, scope, services: None,
    "__features__": lambda _, scope, services: scope.metadata.get("features") or {},
}
"""Maker of each reserved argument, from the plugin id and the scope of the call."""
