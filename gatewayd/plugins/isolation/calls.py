"""A call of a method on its way into the process of a plugin, and what it leaves behind on its way back."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.events.records import EventTarget
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.context import CallScope, RequestFacts

METADATA: Final = "metadata"
FILTER_METHODS: Final = frozenset({"inlet", "outlet"})
"""Methods that may change the body in place and return nothing."""

_OF_REQUEST: Final = frozenset({"__metadata__", "__features__"})
_USER: Final = (
    "id",
    "email",
    "name",
    "role",
    "active",
    "username",
    "profile_image_url",
    "profile",
    "settings",
    "info",
    "oauth",
    "scim",
    "last_active_at",
    "updated_at",
    "created_at",
)
"""What `accounts.shapes.show_user` shows of an account."""
_IN_SHORT: Final = ("id", "email", "name", "role")


@dataclass(slots=True)
class OpenCall:
    """A call that a process serves or has served; `level` is how many requests of plugins it is part of.

    `callables` are the tools that the plugin was given, by the numbers that it calls them by. `open` counts
    the answer and the streams that have not ended.
    """

    number: int
    scope: CallScope
    level: int
    callables: list[Callable[..., Any]] = field(default_factory=list)
    open: int = 1

    def lend(self, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return tools as the process gets them, with a number in the place of what is called."""
        return {name: {**tool, "callable": self._number(tool["callable"])} for name, tool in tools.items()}

    def _number(self, function: Callable[..., Any]) -> int:
        self.callables.append(function)
        return len(self.callables) - 1


@dataclass(frozen=True, slots=True)
class CallActor(Actor):
    """Who a call in the process is for; `call` is its number."""

    call: int = 0


@dataclass(slots=True)
class ReceivedCall:
    """A call as the process gets it; `before` are the members of the metadata as they came, as JSON."""

    scope: CallScope
    arguments: dict[str, Any]
    user_valves: dict[str, Any]
    before: dict[str, bytes]

    def changes(self) -> dict[str, Any]:
        """Return the members of the metadata that are new or other ones, and the names of those that went.

        Nothing when all are as they came.
        """
        now = {name: orjson.dumps(value) for name, value in self.scope.metadata.items()}
        changed = [name for name, text in now.items() if self.before.get(name) != text]
        removed = [name for name in self.before if name not in now]
        if not changed and not removed:
            return {}
        return {
            METADATA: {"changed": {name: self.scope.metadata[name] for name in changed}, "removed": removed}
        }


def render_call(
    call: OpenCall, names: frozenset[str], arguments: Mapping[str, Any], user_valves: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the process is told of a call of a method that takes `names`, and no more."""
    scope, user = call.scope, call.scope.actor.user
    given = {name: value for name, value in arguments.items() if name in names}
    sharing = [name for name, value in given.items() if _has_metadata(value, scope)]
    for name in sharing:
        given[name] = {key: value for key, value in given[name].items() if key != METADATA}
    told: dict[str, Any] = {
        "user": {name: getattr(user, name) for name in (_USER if "__user__" in names else _IN_SHORT)},
        "target": dataclasses.asdict(scope.target),
        "arguments": given,
        "sharing": sharing,
        "user_valves": dict(user_valves),
        "task": scope.task,
    }
    if sharing or names & _OF_REQUEST:
        told[METADATA] = scope.metadata
    if "__request__" in names:
        told["facts"] = dataclasses.asdict(scope.facts)
    if "__tools__" in names:
        told["tools"] = call.lend(scope.tools)
    for name in ("model", "files", "messages", "task_body"):
        if f"__{name}__" in names:
            told[name] = getattr(scope, name)
    return told


def read_call(number: int, told: dict[str, Any], lent: Callable[[int], Callable[..., Any]]) -> ReceivedCall:
    """Return a call in the process; `lent` returns what calls the tool of a number."""
    user = told["user"]
    actor = CallActor(
        User(**{**user, "role": Role(user["role"])}), CredentialKind.SESSION, (), {}, call=number
    )
    tools = told.get("tools", {})
    metadata = told.get(METADATA, {})
    for name in told["sharing"]:
        told["arguments"][name][METADATA] = metadata
    scope = CallScope(
        actor=actor,
        target=EventTarget(**told["target"]),
        facts=_facts(told["facts"]) if "facts" in told else RequestFacts(),
        metadata=metadata,
        model=told.get("model"),
        files=told.get("files"),
        messages=told.get("messages"),
        tools={name: {**tool, "callable": lent(tool["callable"])} for name, tool in tools.items()},
        task=told["task"],
        task_body=told.get("task_body"),
    )
    before = {name: orjson.dumps(value) for name, value in metadata.items()}
    return ReceivedCall(scope, told["arguments"], told["user_valves"], before)


def take_metadata(metadata: dict[str, Any], changes: Any) -> None:
    """Change the metadata of a request as a plugin did; ValueError for what is no change."""
    if not isinstance(changes, dict):
        raise ValueError("it told no changes of the metadata")
    changed, removed = changes.get("changed"), changes.get("removed")
    if not isinstance(changed, dict) or not isinstance(removed, list):
        raise ValueError("it told no changes of the metadata")
    metadata.update(changed)
    for name in removed:
        metadata.pop(str(name), None)


def render_plugin(plugin: Plugin) -> dict[str, Any]:
    """Return what the process is told of its plugin."""
    return {
        "id": plugin.id,
        "family": plugin.family.value,
        "kind": plugin.kind.value,
        "user_id": plugin.user_id,
        "name": plugin.name,
        "content": plugin.content,
        "description": plugin.description,
        "valves": plugin.valves,
        "path": plugin.path,
        "created_at": plugin.created_at,
    }


def _has_metadata(value: Any, scope: CallScope) -> bool:
    return isinstance(value, dict) and METADATA in value and value[METADATA] is scope.metadata


def _facts(told: dict[str, Any]) -> RequestFacts:
    return RequestFacts(**{**told, "headers": tuple((name, value) for name, value in told["headers"])})
