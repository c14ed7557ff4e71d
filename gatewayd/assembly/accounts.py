"""The stores over an open database, and the account services over the stores."""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.accounts.authenticator import Authenticator
from gatewayd.accounts.changes import Changes
from gatewayd.accounts.contact import Contact
from gatewayd.accounts.current import CurrentRights
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.keyrules import KeyRules
from gatewayd.accounts.keys import Keys
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import PermissionTree
from gatewayd.accounts.runtime import ConfiguredValue, RuntimeSettings
from gatewayd.accounts.sessions import Sessions
from gatewayd.accounts.setup import Setup
from gatewayd.accounts.signin import SignIn
from gatewayd.accounts.signup import SignUp
from gatewayd.accounts.users import Users
from gatewayd.commits import Commits
from gatewayd.errors import GatewayError, Kind
from gatewayd.settings import Settings
from gatewayd.settings.permissions import LEAVES
from gatewayd.storage.database import Database
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.revocations import TortoiseRevocations
from gatewayd.storage.users import TortoiseUsers
from gatewayd.storage.values import TortoiseValues

SIGNING_FILE: Final = "secret-key"


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores over one open database."""

    users: TortoiseUsers
    groups: TortoiseGroups
    keys: TortoiseKeys
    revocations: TortoiseRevocations
    values: TortoiseValues
    models: TortoiseModels


@dataclass(frozen=True, slots=True)
class Accounts:
    """The account services."""

    users: Users
    groups: Groups
    keys: Keys
    key_rules: KeyRules
    current: CurrentRights
    passwords: Passwords
    permissions: Permissions
    runtime: RuntimeSettings
    sessions: Sessions
    setup: Setup
    sign_in: SignIn
    sign_up: SignUp
    authenticator: Authenticator
    contact: Contact
    commits: Commits
    changes: Changes


def make_stores() -> Stores:
    """Return the stores; they find the open database by context."""
    return Stores(
        TortoiseUsers(),
        TortoiseGroups(),
        TortoiseKeys(),
        TortoiseRevocations(),
        TortoiseValues(),
        TortoiseModels(),
    )


async def make_accounts(
    settings: Settings, stores: Stores, database: Database, stack: AsyncExitStack
) -> Accounts:
    """Return the account services with their stored state loaded."""
    changes, commits = Changes(), Commits(database)
    persistent = settings.enable_persistent_config
    passwords = Passwords()
    stack.callback(passwords.close)
    runtime = RuntimeSettings(stores.values, configured_values(settings), persistent, changes)
    permissions = Permissions(stores.values, configured_permissions(settings), changes, persistent=persistent)
    await runtime.load()
    await permissions.load()
    rules = KeyRules(stores.groups, permissions, runtime)
    users = Users(stores.users, stores.groups, commits, passwords, changes)
    groups = Groups(stores.groups, commits, changes)
    keys = Keys(stores.keys, rules, changes)
    sessions = Sessions(signing_secret(settings), stores.revocations, changes)
    return Accounts(
        users=users,
        groups=groups,
        keys=keys,
        key_rules=rules,
        current=CurrentRights(stores.users, rules),
        passwords=passwords,
        permissions=permissions,
        runtime=runtime,
        sessions=sessions,
        setup=Setup(users, groups, keys, runtime, commits),
        sign_in=SignIn(stores.users, passwords, enabled=settings.enable_password_auth),
        sign_up=SignUp(users, groups, runtime),
        authenticator=Authenticator(stores.users, stores.keys, rules, sessions, changes),
        contact=Contact(users, runtime),
        commits=commits,
        changes=changes,
    )


def configured_values(settings: Settings) -> Mapping[str, ConfiguredValue]:
    """Return what the configuration says about the settings that may change at run time."""
    return {
        name: ConfiguredValue(each.value, each.origin, each.explicit)
        for name, each in settings.runtime_values().items()
    }


def configured_permissions(settings: Settings) -> PermissionTree:
    """Return the default permissions that the configuration names; the others are built in."""
    origins = settings.origins
    tree: PermissionTree = {}
    for leaf in LEAVES:
        if origins[leaf.name].explicit:
            tree.setdefault(leaf.section, {})[leaf.leaf] = getattr(settings, leaf.name)
    return tree


def signing_secret(settings: Settings) -> str:
    """Return the secret that signs sessions: the configured one, or one made once and kept in data_dir."""
    given = settings.webui_secret_key.get_secret_value()
    if given:
        return given
    path = settings.data_dir / SIGNING_FILE
    try:
        if not path.exists():
            _keep_secret(path, ids.new_secret(32))
        return path.read_text().strip()
    except OSError as error:
        raise GatewayError(Kind.NOT_CONFIGURED, f"cannot keep the signing secret: {error}") from error


def _keep_secret(path: Path, secret: str) -> None:
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with part.open("w") as file:
        file.write(f"{secret}\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
