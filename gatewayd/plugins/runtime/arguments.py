"""What plugins may ask for by name: the reserved parameters of every kind (peer-compatible)."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gatewayd.accounts.records import User
from gatewayd.accounts.serializers import render_user
from gatewayd.completions.copies import copy_json
from gatewayd.events.records import EventTarget
from gatewayd.plugins.interfaces import UserValvesStore
from gatewayd.plugins.runtime.context import CallScope

EventFunction = Callable[[Any], Awaitable[Any]]
RequestMaker = Callable[[CallScope], Any]
"""Makes the object behind `__request__`."""


class EventChannel(Protocol):
    """What emitters and calls reach the users through; see `gatewayd.events.service`."""

    async def emit(self, target: EventTarget, event: Any) -> bool: ...  # noqa: D102
    async def call(self, target: EventTarget, event: Any) -> Any: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class CallServices:
    """What every call of every plugin needs of the gateway; `loop` is the daemon's, `context` its context."""

    loop: asyncio.AbstractEventLoop
    events: EventChannel
    user_valves: UserValvesStore
    make_request: RequestMaker | None = None
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


@dataclass(frozen=True, slots=True)
class MethodParameters:
    """The names that a method takes; `with_defaults` are those of them that may be left out."""

    names: frozenset[str]
    with_defaults: frozenset[str]


def read_parameters(function: Callable[..., Any]) -> MethodParameters:
    """Return the parameters of a method that are given by name; none when it does not tell."""
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
    """Return an account as `__user__` shows it, sharing nothing with the account."""
    record: dict[str, Any] = copy_json(render_user(user))
    return record


def reserved_arguments(
    names: frozenset[str], plugin_id: str, scope: CallScope, around: CallServices
) -> dict[str, Any]:
    """Return those reserved arguments that are among `names`, except what hangs on the plugin's classes.

    Called in the plugin's own thread: making a request may import libraries.
    """
    return {name: ARGUMENT_MAKERS[name](plugin_id, scope, around) for name in names & ARGUMENT_MAKERS.keys()}


def make_emitter(target: EventTarget, around: CallServices) -> EventFunction:
    """Return `__event_emitter__`: a function that closes over one dict with the ids of the call.

    Plugins read the ids out of its closure. It works in the home of the plugin and on any other loop, also
    after the call; an event that is under way is delivered although the plugin's task is cancelled.
    """
    info = _info(target)

    async def __event_emitter__(event: Any) -> Any:  # noqa: N807 - plugins print it
        return await asyncio.shield(
            run_on_loop(around, lambda: around.events.emit(_target(info, target), event))
        )

    return __event_emitter__


def make_call(target: EventTarget, around: CallServices) -> EventFunction:
    """Return `__event_call__`: like the emitter, but returns the answer; cancelling it takes it back."""
    info = _info(target)

    async def __event_call__(event: Any) -> Any:  # noqa: N807 - plugins print it
        return await run_on_loop(around, lambda: around.events.call(_target(info, target), event))

    return __event_call__


def run_on_loop(around: CallServices, work: Callable[[], Coroutine[Any, Any, Any]]) -> "asyncio.Future[Any]":
    """Run a coroutine function on the daemon's loop, for the loop that is running here.

    It runs in the context of the gateway: threads of plugins have none, and that of a call may be over.
    """
    coroutine = work()
    try:
        future = around.context.copy().run(asyncio.run_coroutine_threadsafe, coroutine, around.loop)
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


def _request(plugin_id: str, scope: CallScope, around: CallServices) -> Any:
    return around.make_request(scope) if around.make_request else None


ARGUMENT_MAKERS: Final[Mapping[str, Callable[[str, CallScope, CallServices], Any]]] = {
    "__user__": lambda _, scope, around: user_record(scope.actor.user),
    "__request__": _request,
    "__event_emitter__": lambda _, scope, around: make_emitter(scope.target, around),
    "__event_call__": lambda _, scope, around: make_call(scope.target, around),
    "__metadata__": lambda _, scope, around: scope.metadata,
    "__model__": lambda _, scope, around: copy_json(scope.model),
    "__files__": lambda _, scope, around: scope.files,
    "__messages__": lambda _, scope, around: scope.messages,
    "__task__": lambda _, scope, around: scope.task,
    "__task_body__": lambda _, scope, around: scope.task_body,
    "__chat_id__": lambda _, scope, around: scope.target.chat_id,
    "__message_id__": lambda _, scope, around: scope.target.message_id or None,
    "__session_id__": lambda _, scope, around: scope.target.session_id or None,
    "__tools__": lambda _, scope, around: scope.tools,
    "__id__": lambda plugin_id, scope, around: plugin_id,
    "__pipe_id__": lambda plugin_id, scope, around: plugin_id,
    "__oauth_token__": lambda _, scope, around: None,
    "__body__": lambda _, scope, around: None,
    "__features__": lambda _, scope, around: scope.metadata.get("features") or {},
}
"""The reserved parameters, and what each is for a plugin in a call."""
