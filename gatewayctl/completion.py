"""Completes names and ids at the prompt of a shell: the daemon is asked for some, shortly and silently."""

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
"""What no shell takes for more than a word: a shell runs what is in a line, and users choose their names."""

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
    """Return the ids of files, which their names are of no use for."""
    return ((row.id,) for row in client.call(routes.LIST_FILES, limit=MAX_OFFERED).files)


def collections(client: ControlClient, _: str) -> Rows:
    """Return name and id of collections."""
    return ((row.name, row.id) for row in client.call(routes.LIST_COLLECTIONS, limit=MAX_OFFERED).collections)


def keys(client: ControlClient, _: str) -> Rows:
    """Return the ids of API keys."""
    return ((row.id,) for row in client.call(routes.LIST_KEYS).keys)


def chats(client: ControlClient, _: str) -> Rows:
    """Return the ids of stored chats, last changed first."""
    return ((row.id,) for row in client.call(routes.LIST_CHATS, limit=MAX_OFFERED).chats)


def tasks(client: ControlClient, _: str) -> Rows:
    """Return the ids of tasks that run."""
    return ((row.id,) for row in client.call(routes.LIST_TASKS).tasks)


def calls(client: ControlClient, _: str) -> Rows:
    """Return the ids of calls that wait for an answer."""
    return ((row.id,) for row in client.call(routes.LIST_CALLS).calls)


def tool_servers(client: ControlClient, _: str) -> Rows:
    """Return the ids of tool servers."""
    return ((row.id,) for row in client.call(routes.LIST_TOOL_SERVERS).servers)


def settings(client: ControlClient, _: str) -> Rows:
    """Return the names of settings."""
    return ((row.name,) for row in client.call(routes.LIST_SETTINGS).settings)


def permissions(client: ControlClient, _: str) -> Rows:
    """Return the names of permissions."""
    return ((row.name,) for row in client.call(routes.LIST_PERMISSIONS).permissions)


def holders(client: ControlClient, noun: str) -> Rows:
    """Return whom an access list names: users by e-mail address, and groups."""
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
    """Return what Typer calls: it offers names, or ids where no name begins with what was typed."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        # The callback of the root, which makes the session, does not run while the shell completes.
        given = context.find_root().params.get("socket")
        client = ControlClient(Transport(Path(given or default_socket()), TIMEOUT_SECONDS))
        try:
            rows = list(read(client, _noun(context)))
        except (CommandError, OSError):
            # Nothing is offered: a prompt is no place for a failure.
            return []
        for values in zip(*rows, strict=True):
            found = [one for one in values if one.startswith(incomplete) and PLAIN.fullmatch(one)]
            if found:
                return found[:MAX_OFFERED]
        return []

    return complete


def assigned(read: Reader) -> Reader:
    """Return what offers the names that something is assigned to, as in NAME=VALUE."""

    def names(client: ControlClient, noun: str) -> Rows:
        return ((f"{row[0]}=",) for row in read(client, noun))

    return names


BY_METAVAR: Final[Mapping[str, Reader]] = {
    "CALL": calls,
    "CHAT": chats,
    "COLLECTION": collections,
    "GROUP": groups,
    "KEY": keys,
    "MODEL": models,
    "PERMISSION": permissions,
    "PERMISSION=VALUE": assigned(permissions),
    "SETTING": settings,
    "SETTING=VALUE": assigned(settings),
    "TASK": tasks,
    "USER": users,
    "WHO": holders,
}
"""What completes an argument or an option by the word that stands for it in the manual."""


def complete_by_metavar(annotation: Any) -> None:
    """Give a parameter of a command the completer of its metavar, unless it has one."""
    for info in getattr(annotation, "__metadata__", ()):
        if isinstance(info, ParameterInfo) and info.autocompletion is None:
            read = BY_METAVAR.get(info.metavar or "")
            info.autocompletion = None if read is None else completing(read)


def _noun(context: Any) -> str:
    """Return the first word after the name of the program."""
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    return str(context.info_name)
