"""Implementation of `HostUsers`: accounts and groups for plugins."""

from collections.abc import Sequence
from typing import Any

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import User, UserChange
from gatewayd.accounts.serializers import render_groups
from gatewayd.accounts.users import Users
from gatewayd.plugin_host.actors import PluginActors, none_if_not_found
from gatewayd.plugins.interfaces import Record
from gatewayd.plugins.runtime.arguments import user_record


class UsersForPlugins:
    """A `plugins.interfaces.HostUsers` over the account services."""

    def __init__(self, users: Users, groups: Groups, actors: PluginActors) -> None:
        self._users = users
        self._groups = groups
        self._actors = actors

    async def find(self, user_id: str) -> Record | None:
        """Return an account in the format of `__user__`; None when absent."""
        return _render(await self._users.find(user_id))

    async def find_by_email(self, email: str) -> Record | None:
        """Return the account with an e-mail address, compared without case; None when absent."""
        return _render(await none_if_not_found(self._users.resolve(email))) if "@" in email else None

    async def list(self, query: str, offset: int, limit: int | None) -> Sequence[Record]:
        """Return the accounts whose name or address contains `query`, oldest first."""
        if limit is None:
            pages = self._users.pages((await self._users.list_ids(query))[offset:])
            return [user_record(user) async for page in pages for user in page]
        users, _ = await self._users.list(query=query, offset=offset, limit=limit)
        return [user_record(user) for user in users]

    async def change_settings(self, user_id: str, settings: Record) -> Record | None:
        """Merge into the settings of an account, top-level keys only; None when absent."""
        change = UserChange(settings=dict(settings))
        return _render(await none_if_not_found(self._users.change(user_id, change, None)))

    async def groups(self, user_id: str | None) -> Sequence[Record]:
        """Return the groups of a user, or all groups, sorted by name."""
        return await render_groups(await self._groups.list(user_id), self._groups)

    async def find_group(self, group_id: str) -> Record | None:
        """Return a group; None when absent."""
        group = await self._groups.find(group_id)
        return None if group is None else (await render_groups([group], self._groups))[0]

    async def permissions(self, user_id: str) -> Record | None:
        """Return the effective permissions of a user; None when absent."""
        actor = await self._actors.find_reader(user_id)
        return None if actor is None else actor.permissions


def _render(user: User | None) -> dict[str, Any] | None:
    return None if user is None else user_record(user)
