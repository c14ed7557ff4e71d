"""Implementation of `open_webui.utils.access_control`: permissions and access lists."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking


class AccessControl(HostTable):
    """The functions of the module, over the effective permissions of users."""

    @blocking
    async def has_permission(
        self, user_id: str, permission_key: str, default_permissions: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether a user has a permission such as `chat.delete`; the defaults are already included."""
        del default_permissions
        held: Any = await self._host.users.permissions(user_id)
        for part in permission_key.split("."):
            held = held.get(part) if isinstance(held, Mapping) else None
        return held is True

    @blocking
    async def get_permissions(
        self, user_id: str, default_permissions: Mapping[str, Any] | None = None
    ) -> AnswerDict[str, Any]:
        """Return the effective permissions of a user; empty when the user is absent."""
        del default_permissions
        return AnswerDict(await self._host.users.permissions(user_id) or {})

    @blocking
    async def has_access(
        self,
        user_id: str,
        type: str = "write",
        access_control: Any = None,
        user_group_ids: Iterable[str] | None = None,
        strict: bool = True,
    ) -> bool:
        """Whether grants allow a user to `read` or `write`.

        Grants are a list of `{principal_type, principal_id, permission}`, or the older
        `{"read": {"user_ids", "group_ids"}, ...}`; None allows every user to read.
        """
        if access_control is None:
            return type == "read" or not strict
        groups = user_group_ids
        if groups is None:
            groups = [str(group["id"]) for group in await self._host.users.groups(user_id)]
        allows = _old_allows if isinstance(access_control, Mapping) else _grants_allow
        return allows(access_control, type, user_id, set(groups))


def _old_allows(control: Mapping[str, Any], kind: str, user_id: str, groups: set[str]) -> bool:
    allowed = control.get(kind) or {}
    return user_id in (allowed.get("user_ids") or ()) or bool(groups & set(allowed.get("group_ids") or ()))


def _grants_allow(grants: Iterable[Any], kind: str, user_id: str, groups: set[str]) -> bool:
    return any(_fits(grant, kind, user_id, groups) for grant in grants)


def _fits(grant: Any, kind: str, user_id: str, groups: set[str]) -> bool:
    read: Callable[[str], Any] = (
        grant.get if isinstance(grant, Mapping) else lambda name: getattr(grant, name, None)
    )
    if read("permission") != kind:
        return False
    if read("principal_type") == "group":
        return read("principal_id") in groups
    return read("principal_id") in ("*", user_id)


def make_access(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.access_control`."""
    access = AccessControl(bridge, "open_webui.utils.access_control")
    return {name: getattr(access, name) for name in ("has_permission", "get_permissions", "has_access")}
