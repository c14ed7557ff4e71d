"""Completes names and ids at the prompt of a shell: the daemon is asked for some, shortly and silently."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import typer

from gatewayctl.client import ControlClient, default_socket
from gatewayctl.failures import CommandError
from gatewayctl.transport import Transport

MAX_OFFERED: Final = 100
TIMEOUT_SECONDS: Final = 1.0
PLAIN: Final = re.compile(r"[\w@+/.][\w@%+=:,/.-]*")
"""What no shell takes for more than a word: a shell runs what is in a line, and users choose their names."""

Rows = Iterable[tuple[str, ...]]
Completer = Callable[[typer.Context, str], list[str]]


def users(client: ControlClient, _: str) -> Rows:
    """Return e-mail address and id of users."""
    return ((row.email, row.id) for row in client.list_users(limit=MAX_OFFERED).users)


def groups(client: ControlClient, _: str) -> Rows:
    """Return name and id of groups."""
    return ((row.name, row.id) for row in client.list_groups().groups)


def models(client: ControlClient, _: str) -> Rows:
    """Return the ids of models."""
    return ((row.id,) for row in client.list_models().models)


def files(client: ControlClient, _: str) -> Rows:
    """Return the ids of files, which their names are of no use for."""
    return ((row.id,) for row in client.list_files(limit=MAX_OFFERED).files)


def collections(client: ControlClient, _: str) -> Rows:
    """Return name and id of collections."""
    return ((row.name, row.id) for row in client.list_collections(limit=MAX_OFFERED).collections)


def plugins(client: ControlClient, family: str) -> Rows:
    """Return the ids of the plugins of a family: function or tool."""
    return ((row.id,) for row in client.list_plugins(family).plugins)


def completing(read: Callable[[ControlClient, str], Rows]) -> Completer:
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


def _noun(context: Any) -> str:
    """Return the first word after the name of the program."""
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    return str(context.info_name)
