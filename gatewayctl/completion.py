"""Shell completion of names and ids: fetched from the daemon, with a short time limit and without errors."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import typer
from typer.models import ParameterInfo

from gatewayctl.client import ControlClient, default_socket
from gatewayctl.failures import CommandError
from gatewayctl.transport import Transport
from gatewayctl.wire import routes

MAX_OFFERED: Final = 100
TIMEOUT_SECONDS: Final = 1.0
PLAIN: Final = re.compile(r"[\w@+/.][\w@%+=:,/.-]*")
"""Characters without a meaning for shells: users choose their names, and a shell would run special ones."""

Rows = Iterable[tuple[str, ...]]
Reader = Callable[[ControlClient, str], Rows]
Completer = Callable[[typer.Context, str], list[str]]


def users(client: ControlClient, _: str) -> Rows:
    """Return e-mail address and id of users."""
    return ((row.email, row.id) for row in client.call(routes.LIST_USERS, limit=MAX_OFFERED).users)


def groups(client: ControlClient, _: str) -> Rows:
    """Return name and id of groups."""
    return ((row.name, row.id) for row in client.call(routes.LIST_GROUPS).groups)


def models(client: ControlClient, _: str) -> Rows:
    """Return the ids of models."""
    return ((row.id,) for row in client.call(routes.LIST_MODELS).models)


def files(client: ControlClient, _: str) -> Rows:
    """Return the ids of files; commands do not accept names of files."""
    return ((row.id,) for row in client.call(routes.LIST_FILES, limit=MAX_OFFERED).files)


def collections(client: ControlClient, _: str) -> Rows:
    """Return name and id of collections."""
    return ((row.name, row.id) for row in client.call(routes.LIST_COLLECTIONS, limit=MAX_OFFERED).collections)


def keys(client: ControlClient, _: str) -> Rows:
    """Return the ids of API keys."""
    return ((row.id,) for row in client.call(routes.LIST_KEYS).keys)


def chats(client: ControlClient, _: str) -> Rows:
    """Return the ids of stored chats, most recently changed first."""
    return ((row.id,) for row in client.call(routes.LIST_CHATS, limit=MAX_OFFERED).chats)


def invitations(client: ControlClient, _: str) -> Rows:
    """Return the ids of invitations."""
    return ((row.id,) for row in client.call(routes.LIST_INVITATIONS).invitations)


def tasks(client: ControlClient, _: str) -> Rows:
    """Return the ids of running tasks."""
    return ((row.id,) for row in client.call(routes.LIST_TASKS).tasks)


def batches(client: ControlClient, _: str) -> Rows:
    """Return the ids of batches, newest first."""
    return ((row.id,) for row in client.call(routes.LIST_BATCHES).batches)


def nodes(client: ControlClient, _: str) -> Rows:
    """Return the names and ids of nodes."""
    return ((row.name, row.id) for row in client.call(routes.LIST_NODES).nodes)


def calls(client: ControlClient, _: str) -> Rows:
    """Return the ids of pending calls."""
    return ((row.id,) for row in client.call(routes.LIST_CALLS).calls)


def tool_servers(client: ControlClient, _: str) -> Rows:
    """Return the ids of tool servers."""
    return ((row.id,) for row in client.call(routes.LIST_TOOL_SERVERS).servers)


def settings(client: ControlClient, _: str) -> Rows:
    """Return the names of settings."""
    return ((row.name,) for row in client.call(routes.LIST_SETTINGS).settings)


def loggers(client: ControlClient, _: str) -> Rows:
    """Return the names of loggers whose level is known."""
    return ((row.logger,) for row in client.call(routes.LIST_LOG_LEVELS).levels)


def limits(client: ControlClient, _: str) -> Rows:
    """Return the ids of limits."""
    return ((row.id,) for row in client.call(routes.LIST_LIMITS).limits)


def permissions(client: ControlClient, _: str) -> Rows:
    """Return the names of permissions."""
    return ((row.name,) for row in client.call(routes.LIST_PERMISSIONS).permissions)


def holders(client: ControlClient, noun: str) -> Rows:
    """Return the principals of access lists: users by e-mail address, and groups."""
    yield from ((email,) for email, _ in users(client, noun))
    yield from ((f"group:{name}",) for name, _ in groups(client, noun))


def tools(client: ControlClient, _: str) -> Rows:
    """Return the ids of tools."""
    return ((row.id,) for row in client.call(routes.LIST_PLUGINS, "tool").plugins)


def filters(client: ControlClient, _: str) -> Rows:
    """Return the ids of filters."""
    return ((row.id,) for row in client.call(routes.LIST_PLUGINS, "function", kind="filter").plugins)


def actions(client: ControlClient, _: str) -> Rows:
    """Return the ids of actions."""
    return ((row.id,) for row in client.call(routes.LIST_PLUGINS, "function", kind="action").plugins)


def plugins(client: ControlClient, family: str) -> Rows:
    """Return the ids of the plugins of a family: function or tool."""
    return ((row.id,) for row in client.call(routes.LIST_PLUGINS, family).plugins)


def completing(read: Reader) -> Completer:
    """Return the completer for Typer: it offers names, or ids if no name begins with the typed text."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        # The root callback, which creates the session, does not run during completion.
        given = context.find_root().params.get("socket")
        client = ControlClient(Transport(Path(given or default_socket()), TIMEOUT_SECONDS))
        try:
            rows = list(read(client, _noun(context)))
        except (CommandError, OSError):
            # A failure offers nothing, because a prompt cannot show it.
            return []
        for values in zip(*rows, strict=True):
            found = [one for one in values if one.startswith(incomplete) and PLAIN.fullmatch(one)]
            if found:
                return found[:MAX_OFFERED]
        return []

    return complete


def choosing(*words: str) -> Callable[[str], list[str]]:
    """Return the completer of an option that takes one of a few words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def assigned(read: Reader) -> Reader:
    """Return the completer for the names of NAME=VALUE."""

    def names(client: ControlClient, noun: str) -> Rows:
        return ((f"{row[0]}=",) for row in read(client, noun))

    return names


BY_METAVAR: Final[Mapping[str, Reader]] = {
    "BATCH": batches,
    "CALL": calls,
    "CHAT": chats,
    "COLLECTION": collections,
    "GROUP": groups,
    "INVITATION": invitations,
    "KEY": keys,
    "LIMIT": limits,
    "LOGGER": loggers,
    "MODEL": models,
    "NODE": nodes,
    "PERMISSION": permissions,
    "PERMISSION=VALUE": assigned(permissions),
    "SETTING": settings,
    "SETTING=VALUE": assigned(settings),
    "TASK": tasks,
    "USER": users,
    "WHO": holders,
}
"""Completers by the metavar of an argument or option."""


def complete_by_metavar(annotation: Any) -> None:
    """Give a parameter the completer of its metavar, unless it has one."""
    for info in getattr(annotation, "__metadata__", ()):
        if isinstance(info, ParameterInfo) and info.autocompletion is None:
            read = BY_METAVAR.get(info.metavar or "")
            info.autocompletion = None if read is None else completing(read)


def _noun(context: Any) -> str:
    """Return the first word after the name of the program."""
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    return str(context.info_name)
