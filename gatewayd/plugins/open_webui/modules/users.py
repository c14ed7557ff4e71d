"""Implementation of `open_webui.models.users` and `open_webui.models.groups`."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.placeholders import raise_not_provided
from gatewayd.plugins.runtime.call_context import current_asker


class UserSettings(AnswerRecord):
    """Settings of a user; `ui` belongs to the web page."""

    ui: dict[str, Any] | None = Field(default_factory=dict)


class UserModel(AnswerRecord):
    """A user; can be made from a `__user__` mapping."""

    id: str
    email: str = ""
    username: str | None = None
    role: str = "pending"
    name: str = ""
    profile_image_url: str | None = None
    profile_banner_image_url: str | None = None
    bio: str | None = None
    gender: str | None = None
    date_of_birth: Any = None
    timezone: str | None = None
    presence_state: str | None = None
    status_emoji: str | None = None
    status_message: str | None = None
    status_expires_at: int | None = None
    info: dict[str, Any] | None = None
    settings: UserSettings | None = None
    oauth: dict[str, Any] | None = None
    scim: dict[str, Any] | None = None
    last_active_at: int = 0
    updated_at: int = 0
    created_at: int = 0


class GroupModel(AnswerRecord):
    """A group."""

    id: str
    user_id: str | None = None
    name: str = ""
    description: str = ""
    data: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    permissions: dict[str, Any] | None = None
    created_at: int = 0
    updated_at: int = 0


def id_of(user: Any) -> str:
    """Return the id of a user given as a record, a mapping or an id."""
    if isinstance(user, str):
        return user
    if isinstance(user, Mapping):
        return str(user["id"])
    return str(user.id)


async def is_admin(host: PluginHost, user: Any) -> bool:
    """Whether a user is an administrator now, regardless of the record of the plugin.

    Runs on the loop of the daemon. The operator at the control socket has no account and is recognised by
    the actor of the running call.
    """
    account = await host.users.find(id_of(user))
    if account is not None:
        return account.get("role") == "admin"
    now = current_asker.get()
    return now is not None and now.user_id == id_of(user) and now.is_admin


class UsersTable(HostTable):
    """The class of `Users`."""

    @blocking
    async def get_user_by_id(self, id: str) -> UserModel | None:
        """Return a user; None when absent."""
        return UserModel.of(await self._host.users.find(id))

    @blocking
    async def get_user_by_email(self, email: str) -> UserModel | None:
        """Return the user with an e-mail address; None when absent."""
        return UserModel.of(await self._host.users.find_by_email(email))

    @blocking
    async def get_users(
        self, filter: Mapping[str, Any] | None = None, skip: int | None = None, limit: int | None = None
    ) -> AnswerDict[str, Any]:
        """Return `{"users": [...], "total": n}`; `filter` may have a `query`, `total` counts all matches."""
        query = str((filter or {}).get("query") or "")
        users = UserModel.each(await self._host.users.list(query, 0, None))
        first = skip or 0
        shown = AnswerList(users[first : None if limit is None else first + limit])
        return AnswerDict(users=shown, total=len(users))

    @blocking
    async def get_users_by_user_ids(self, user_ids: Sequence[str]) -> AnswerList[UserModel]:
        """Return the existing users among the ids, in that order."""
        found = [UserModel.of(await self._host.users.find(user_id)) for user_id in user_ids]
        return AnswerList(user for user in found if user is not None)

    @blocking
    async def get_num_users(self) -> int:
        """Return the number of users."""
        return len(await self._host.users.list("", 0, None))

    @blocking
    async def get_first_user(self) -> UserModel | None:
        """Return the user with the oldest account."""
        users = UserModel.each(await self._host.users.list("", 0, None))
        return min(users, key=lambda user: (user.created_at, user.id), default=None)

    @blocking
    async def get_super_admin_user(self) -> UserModel | None:
        """Return the administrator with the oldest account."""
        users = UserModel.each(await self._host.users.list("", 0, None))
        admins = [user for user in users if user.role == "admin"]
        return min(admins, key=lambda user: (user.created_at, user.id), default=None)

    @blocking
    async def get_user_settings_by_id(self, id: str) -> UserSettings | None:
        """Return the settings of a user; None when absent."""
        user = UserModel.of(await self._host.users.find(id))
        return None if user is None else user.settings

    @blocking
    async def update_user_settings_by_id(self, id: str, updated: Mapping[str, Any]) -> UserModel | None:
        """Merge into the settings of a user; None when absent."""
        return UserModel.of(await self._host.users.change_settings(id, updated))

    @blocking
    async def update_user_by_id(self, id: str, updated: Mapping[str, Any]) -> UserModel | None:
        """Change the settings of a user; NotProvidedError for any other field."""
        if set(updated) != {"settings"}:
            raise_not_provided(
                f"{self._name}.update_user_by_id with {', '.join(sorted(updated)) or 'nothing'}"
            )
        settings = updated["settings"]
        given = settings if isinstance(settings, Mapping) else settings.model_dump()
        return UserModel.of(await self._host.users.change_settings(id, given))


class GroupsTable(HostTable):
    """The class of `Groups`."""

    @blocking
    async def get_groups(self, filter: Mapping[str, Any] | None = None) -> AnswerList[GroupModel]:
        """Return all groups, or the groups of the user `member_id` of the filter."""
        member = (filter or {}).get("member_id")
        return GroupModel.each(await self._host.users.groups(member))

    @blocking
    async def get_groups_by_member_id(self, user_id: str) -> AnswerList[GroupModel]:
        """Return the groups of a user."""
        return GroupModel.each(await self._host.users.groups(user_id))

    @blocking
    async def get_group_by_id(self, id: str) -> GroupModel | None:
        """Return a group; None when absent."""
        return GroupModel.of(await self._host.users.find_group(id))


def make_users(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.users`."""
    return {
        "Users": UsersTable(bridge, "open_webui.models.users.Users"),
        "UserModel": UserModel,
        "User": UserModel,
        "UserResponse": UserModel,
        "UserSettings": UserSettings,
        "UsersTable": UsersTable,
    }


def make_groups(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.groups`."""
    groups = GroupsTable(bridge, "open_webui.models.groups.Groups")
    return {"Groups": groups, "GroupModel": GroupModel, "GroupResponse": GroupModel}
