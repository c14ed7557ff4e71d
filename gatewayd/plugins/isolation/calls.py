"""Encoding of method calls for a plugin process, and of the changes that a call makes."""

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

_METADATA_PARAMETERS: Final = frozenset({"__metadata__", "__features__"})
_USER_FIELDS: Final = (
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
"""Members of an account in `accounts.serializers.render_user`."""
_SHORT_USER_FIELDS: Final = ("id", "email", "name", "role")


@dataclass(slots=True)
class OpenCall:
    """A call that a process serves or has served; `level` is the number of enclosing plugin requests.

    `callables` are the tools passed to the plugin, which calls them by index. `open` counts the pending
    answer and the streams that have not ended.
    """

    number: int
    scope: CallScope
    level: int
    callables: list[Callable[..., Any]] = field(default_factory=list)
    open: int = 1

    def lend(self, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return tools for the process, with a number in place of each callable."""
        return {name: {**tool, "callable": self._number(tool["callable"])} for name, tool in tools.items()}

    def _number(self, function: Callable[..., Any]) -> int:
        self.callables.append(function)
        return len(self.callables) - 1


@dataclass(frozen=True, slots=True)
class CallActor(Actor):
    """The actor of a call in the process; `call` is the number of the call."""

    call: int = 0


@dataclass(slots=True)
class ReceivedCall:
    """A call received by the process; `before` has the received members of the metadata as JSON."""

    scope: CallScope
    arguments: dict[str, Any]
    user_valves: dict[str, Any]
    before: dict[str, bytes]

    def changes(self) -> dict[str, Any]:
        """Return the new and changed members of the metadata, and the names of removed ones.

        Empty when nothing changed.
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
    """Return the message of a call, limited to what a method with the parameters `names` needs."""
    scope, user = call.scope, call.scope.actor.user
    given = {name: value for name, value in arguments.items() if name in names}
    sharing = [name for name, value in given.items() if _has_metadata(value, scope)]
    for name in sharing:
        given[name] = {key: value for key, value in given[name].items() if key != METADATA}
    message: dict[str, Any] = {
        "user": {
            name: getattr(user, name)
            for name in (_USER_FIELDS if "__user__" in names else _SHORT_USER_FIELDS)
        },
        "target": dataclasses.asdict(scope.target),
        "arguments": given,
        "sharing": sharing,
        "user_valves": dict(user_valves),
        "task": scope.task,
    }
    if sharing or names & _METADATA_PARAMETERS:
        message[METADATA] = scope.metadata
    if "__request__" in names:
        message["facts"] = dataclasses.asdict(scope.facts)
    if "__tools__" in names:
        message["tools"] = call.lend(scope.tools)
    for name in ("model", "files", "messages", "task_body", "oauth_token"):
        if f"__{name}__" in names:
            message[name] = getattr(scope, name)
    return message


def read_call(
    number: int, message: dict[str, Any], make_caller: Callable[[int], Callable[..., Any]]
) -> ReceivedCall:
    """Return the call of a message, in the process; `make_caller` makes the callable of a numbered tool."""
    user = message["user"]
    actor = CallActor(
        User(**{**user, "role": Role(user["role"])}), CredentialKind.SESSION, (), {}, call=number
    )
    tools = message.get("tools", {})
    metadata = message.get(METADATA, {})
    for name in message["sharing"]:
        message["arguments"][name][METADATA] = metadata
    scope = CallScope(
        actor=actor,
        target=EventTarget(**message["target"]),
        facts=_facts(message["facts"]) if "facts" in message else RequestFacts(),
        metadata=metadata,
        model=message.get("model"),
        files=message.get("files"),
        messages=message.get("messages"),
        tools={name: {**tool, "callable": make_caller(tool["callable"])} for name, tool in tools.items()},
        task=message["task"],
        task_body=message.get("task_body"),
        oauth_token=message.get("oauth_token"),
    )
    before = {name: orjson.dumps(value) for name, value in metadata.items()}
    return ReceivedCall(scope, message["arguments"], message["user_valves"], before)


def take_metadata(metadata: dict[str, Any], changes: Any) -> None:
    """Apply the changes of a plugin to the metadata of a request; ValueError for invalid changes."""
    if not isinstance(changes, dict):
        raise ValueError("its changes of the metadata are invalid")
    changed, removed = changes.get("changed"), changes.get("removed")
    if not isinstance(changed, dict) or not isinstance(removed, list):
        raise ValueError("its changes of the metadata are invalid")
    metadata.update(changed)
    for name in removed:
        metadata.pop(str(name), None)


def render_plugin(plugin: Plugin) -> dict[str, Any]:
    """Return the record of a plugin for its process."""
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


def _facts(message: dict[str, Any]) -> RequestFacts:
    return RequestFacts(**{**message, "headers": tuple((name, value) for name, value in message["headers"])})
