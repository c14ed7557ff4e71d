"""Permission tree: its leaves, the merge of trees, and the default permissions."""

import difflib
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import ValueStore
from gatewayd.accounts.records import Actor, CredentialKind, Group, PermissionTree, Role, User
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.transactions import after_commit

log = logging.getLogger(__name__)

# Name of the stored value that holds the default permissions.
STORED_NAME: Final = "USER_PERMISSIONS"


def _leaves(names: str, value: bool) -> dict[str, bool]:
    return dict.fromkeys(names.split(), value)


BUILTIN_PERMISSIONS: Final[PermissionTree] = {
    "workspace": _leaves(
        "models knowledge prompts tools skills models_import models_export prompts_import prompts_export"
        " tools_import tools_export skills_import skills_export",
        False,
    ),
    "sharing": _leaves(
        "models public_models knowledge public_knowledge prompts public_prompts tools public_tools skills"
        " public_skills notes public_notes folders public_chats open_chats public_calendars",
        False,
    ),
    "access_grants": _leaves("allow_users allow_groups", True),
    "chat": {
        **_leaves(
            "controls valves system_prompt params file_upload web_upload delete delete_message"
            " continue_response regenerate_response rate_response edit share export import stt tts call"
            " multiple_models temporary",
            True,
        ),
        "temporary_enforced": False,
    },
    "features": {
        "api_keys": False,
        "notes": True,
        "folders": True,
        "channels": True,
        "direct_tool_servers": False,
        "web_search": True,
        "image_generation": True,
        "code_interpreter": True,
        "memories": True,
        "automations": False,
        "calendar": True,
        "webhooks": False,
    },
    "settings": {"interface": True},
}

# Leaves that restrict instead of granting: administrators do not have them.
RESTRICTIONS: Final = frozenset({("chat", "temporary_enforced")})


def copy(tree: Mapping[str, Mapping[str, bool]]) -> PermissionTree:
    """Return a deep copy of a tree."""
    return {section: dict(leaves) for section, leaves in tree.items()}


def check(tree: Any) -> PermissionTree:
    """Return a copy of a partial tree; raise invalid_request naming an unknown leaf or wrong value."""
    if not isinstance(tree, Mapping):
        raise invalid("cannot accept permissions: expected an object", param="permissions")
    for section, leaves in tree.items():
        _refuse_unknown(str(section), BUILTIN_PERMISSIONS, "permissions")
        if not isinstance(leaves, Mapping):
            raise invalid(f"cannot accept permissions.{section}: expected an object", param="permissions")
        for leaf, value in leaves.items():
            _refuse_unknown(str(leaf), BUILTIN_PERMISSIONS[section], f"permissions.{section}")
            if not isinstance(value, bool):
                raise invalid(
                    f"cannot accept permissions.{section}.{leaf}: expected true or false", param="permissions"
                )
    return copy(tree)


def known_leaves(tree: Any) -> PermissionTree:
    """Return the leaves of a tree that this version knows; leaves of other versions are dropped."""
    if not isinstance(tree, Mapping):
        raise invalid("cannot accept permissions: expected an object", param="permissions")
    kept: dict[str, Any] = {}
    for section in BUILTIN_PERMISSIONS.keys() & tree.keys():
        leaves = tree[section]
        if isinstance(leaves, Mapping):
            leaves = {leaf: leaves[leaf] for leaf in leaves if leaf in BUILTIN_PERMISSIONS[section]}
        kept[section] = leaves
    return check(kept)


def overlay(base: PermissionTree, partial: PermissionTree) -> PermissionTree:
    """Return `base`, with its leaves overridden by those of `partial`."""
    return {section: {**leaves, **partial.get(section, {})} for section, leaves in base.items()}


def merge(base: PermissionTree, partial: PermissionTree) -> PermissionTree:
    """Return `base` with every leaf that `partial` grants; no leaf of `base` is revoked."""
    merged = copy(base)
    for section, leaves in partial.items():
        for leaf, granted in leaves.items():
            if granted and leaf in merged.get(section, {}):
                merged[section][leaf] = True
    return merged


def differences(before: PermissionTree, after: PermissionTree) -> dict[str, bool]:
    """Return the leaves of `after` that differ from `before`, for example `{"features.api_keys": True}`."""
    return {
        f"{section}.{leaf}": value
        for section, leaves in after.items()
        for leaf, value in leaves.items()
        if before.get(section, {}).get(leaf) is not value
    }


class Permissions:
    """The default permissions: built in, then configured, then stored by an administrator.

    `configured` holds only the leaves that the configuration names. With `persistent` the stored tree
    overrides them; otherwise they override the stored tree and cannot be changed at run time.
    """

    def __init__(
        self,
        values: ValueStore,
        configured: PermissionTree,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
        *,
        persistent: bool = True,
    ) -> None:
        self._values = values
        self._configured = check(configured)
        self._changes = changes
        self._clock = clock
        self._persistent = persistent
        self._stored: PermissionTree = {}
        self._defaults = self._combine({})

    async def load(self) -> None:
        """Read the stored tree: at start, and after a change by another process."""
        self._stored = known_leaves((await self._values.load()).get(STORED_NAME, {}))
        self._defaults = self._combine(self._stored)

    def configure(self, configured: PermissionTree) -> None:
        """Apply the leaves of a reloaded configuration; the stored tree stays."""
        self._configured = check(configured)
        self._defaults = self._combine(self._stored)
        self._changes.publish(AccountChange(None))

    def defaults(self) -> PermissionTree:
        """Return the complete default tree, which applies to accounts with the role user."""
        return copy(self._defaults)

    async def read_defaults(self) -> PermissionTree:
        """Return the complete default tree as it is stored now, for a change of some of its leaves."""
        return copy(self._combine(known_leaves((await self._values.load()).get(STORED_NAME, {}))))

    def initial(self) -> PermissionTree:
        """Return the default tree without stored values: built in, then configured."""
        return overlay(copy(BUILTIN_PERMISSIONS), self._configured)

    async def set_defaults(self, tree: PermissionTree, by: str) -> PermissionTree:
        """Store a tree and return the complete one; a missing leaf gets its built-in value.

        Raises invalid_request for an unknown leaf, conflict for a leaf that the configuration fixes.
        """
        wanted = overlay(copy(BUILTIN_PERMISSIONS), check(tree))
        combined = self._combine(wanted)
        for section, leaves in wanted.items():
            for leaf, value in leaves.items():
                if combined[section][leaf] is not value:
                    raise GatewayError(
                        ErrorKind.CONFLICT,
                        f"cannot set {section}.{leaf}: the configuration sets it, and"
                        " ENABLE_PERSISTENT_CONFIG is off",
                        param=f"{section}.{leaf}",
                    )
        await self._values.put({STORED_NAME: wanted}, at=self._clock(), by=by)
        after_commit(lambda: self._keep(wanted, combined))
        self._changes.publish(AccountChange(None))
        return copy(combined)

    def effective_permissions(self, user: User, groups: Iterable[Group]) -> PermissionTree:
        """Return the effective permissions of a user.

        Role user: the defaults and all grants of the groups. Administrators: everything, but
        `features.api_keys` only from a group, as the default permissions apply to the role user only. Pending
        accounts: the defaults without `features.api_keys`.
        """
        tree = self.defaults()
        if user.role is Role.ADMIN:
            tree = {
                section: {leaf: (section, leaf) not in RESTRICTIONS for leaf in leaves}
                for section, leaves in tree.items()
            }
        if user.role is not Role.USER:
            tree["features"]["api_keys"] = False
        for group in groups:
            tree = merge(tree, group.permissions)
        return tree

    def _combine(self, stored: PermissionTree) -> PermissionTree:
        below, above = (self._configured, stored) if self._persistent else (stored, self._configured)
        return overlay(overlay(copy(BUILTIN_PERMISSIONS), below), above)

    def _keep(self, stored: PermissionTree, combined: PermissionTree) -> None:
        self._stored = stored
        self._defaults = combined


def require(actor: Actor, section: str, leaf: str) -> None:
    """Raise forbidden, naming the permission, if an actor lacks it."""
    if not actor.may(section, leaf):
        raise GatewayError(
            ErrorKind.FORBIDDEN,
            f"cannot do this: the permission {section}.{leaf} is missing",
            code="permission",
        )


def is_exempt(actor: Actor, *, bypass_admins: bool) -> bool:
    """Tell whether an actor bypasses access lists: administrators by `bypass_admins` or control socket.

    The actor of the control socket may do everything; the setting applies to administrators over HTTP.
    """
    return actor.is_admin and (bypass_admins or actor.kind is CredentialKind.CONTROL)


def _refuse_unknown(name: str, names: Iterable[str], where: str) -> None:
    known_names = list(names)
    if name in known_names:
        return
    near = difflib.get_close_matches(name, known_names, n=1)
    hint = f", did you mean {near[0]!r}" if near else ""
    raise invalid(f"cannot accept {where}: unknown name {name!r}{hint}", param="permissions")
