"""Tables of values: the default permissions and the runtime settings."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.accounts import permissions as trees
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import PermissionTree
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.state.interfaces import StateTable
from gatewayd.state.records import Fields, ObjectChange, StateAction, StateObject, join_path, located
from gatewayd.state.scope import StateScope

VALUE: Final = "value"
"""The only field of a permission or setting."""

DEFAULT_GROUP: Final = "DEFAULT_GROUP_ID"
"""The setting with the id of a group, which the document names."""


class PermissionTable(StateTable):
    """The default permissions. Those that differ from the configuration are exported; deleting resets one."""

    table = "permissions"

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all permissions as `section.leaf`."""
        initial = self._permissions.initial()
        return {
            name: StateObject({VALUE: value}, is_own=value is not initial[section][leaf])
            for name, section, leaf, value in _leaves(self._permissions.defaults())
        }

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the permissions; raises for an unknown one and for one that the configuration fixes."""
        for name, fields in wanted.items():
            with located(self.path(name)):
                # Only a change may conflict with the configuration.
                if held[name].fields != fields:
                    self._permissions.check_defaults(_tree(name, fields[VALUE]))
        return wanted

    def objects(self, value: Mapping[str, Any]) -> Mapping[str, Fields]:
        """Return the leaves of the tree; invalid_request for an unknown leaf or a wrong value."""
        with located(self.table):
            tree = trees.check(value)
        return {name: {VALUE: leaf} for name, _, _, leaf in _leaves(tree)}

    def document(self, objects: Mapping[str, Fields]) -> dict[str, Any]:
        """Return leaves as a tree."""
        tree: dict[str, Any] = {}
        for name, fields in objects.items():
            section, _, leaf = name.partition(".")
            tree.setdefault(section, {})[leaf] = fields[VALUE]
        return tree

    def path(self, name: str, *fields: str) -> str:
        """Return the path of a leaf."""
        return join_path(self.table, *name.split(".", 1))

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Set a permission, or reset it to the value of the configuration."""
        section, _, leaf = change.name.partition(".")
        is_reset = change.action is StateAction.DELETE
        value = self._permissions.initial()[section][leaf] if is_reset else change.values[VALUE]
        wanted = trees.overlay(self._permissions.defaults(), _tree(change.name, value))
        await self._permissions.set_defaults(wanted, scope.author)


class SettingTable(StateTable):
    """The runtime settings. Stored ones are exported; deleting one returns it to its configured value."""

    table = "settings"

    def __init__(self, runtime: RuntimeSettings) -> None:
        self._runtime = runtime

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all settings; the default group has its name as value."""
        found = {}
        for each in self._runtime.list():
            value = each.value
            if each.name == DEFAULT_GROUP:
                value = scope.group_names.get(str(value), value)
            found[each.name] = StateObject({VALUE: value}, is_own=each.origin == "stored")
        return found

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the settings with their values in stored form."""
        result: dict[str, Fields] = {}
        for name, fields in wanted.items():
            with located(self.path(name)):
                value = self._runtime.checked({name: fields[VALUE]})[name]
                if name == DEFAULT_GROUP and value:
                    value = scope.group(scope.group_names.get(str(value), str(value)))
                if held[name].fields[VALUE] != value:
                    self._runtime.check_settable(name)
            result[name] = {VALUE: value}
        return result

    def objects(self, value: Mapping[str, Any]) -> Mapping[str, Fields]:
        """Return each setting as an object with its value."""
        return {name: {VALUE: each} for name, each in value.items()}

    def document(self, objects: Mapping[str, Fields]) -> dict[str, Any]:
        """Return the values by name."""
        return {name: fields[VALUE] for name, fields in objects.items()}

    def path(self, name: str, *fields: str) -> str:
        """Return the path of a setting."""
        return join_path(self.table, name)

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Store a setting, or delete the stored value."""
        if change.action is StateAction.DELETE:
            await self._runtime.reset([change.name])
            return
        value = change.values[VALUE]
        if change.name == DEFAULT_GROUP and value:
            value = scope.group_id(value)
        await self._runtime.set({change.name: value}, scope.author)


def _leaves(tree: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str, Any]]:
    """Return name, section, leaf and value of each leaf, in the order of names."""
    return [
        (f"{section}.{leaf}", section, leaf, tree[section][leaf])
        for section in sorted(tree)
        for leaf in sorted(tree[section])
    ]


def _tree(name: str, value: bool) -> PermissionTree:
    section, _, leaf = name.partition(".")
    return {section: {leaf: value}}
