"""The stores over an open database, and the account services over the stores."""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts.admin_contact import AdminContact
from gatewayd.accounts.authenticator import Authenticator
from gatewayd.accounts.change_notifier import AccountChangeNotifier
from gatewayd.accounts.current_rights import CurrentRights
from gatewayd.accounts.devices import DeviceCookies
from gatewayd.accounts.directory.sign_in import DirectorySignIn
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.identity.external_accounts import ExternalAccounts
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.keys import Keys
from gatewayd.accounts.links.invitations import Invitations
from gatewayd.accounts.links.sign_in_links import SignInLinks
from gatewayd.accounts.links.tokens import LinkTokens
from gatewayd.accounts.password_rules import PasswordRules, common_passwords
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import PermissionTree
from gatewayd.accounts.runtime_settings import ConfiguredValue, RuntimeSettings
from gatewayd.accounts.sessions import Sessions, SessionStores
from gatewayd.accounts.setup import Setup
from gatewayd.accounts.sign_in import SignIn, SignInGuard, SignInLimits
from gatewayd.accounts.sign_up import SignUp, SignUpOptions
from gatewayd.accounts.signing_file import (
    PLUGIN_FILE,
    SigningSecrets,
    drop_expired,
    read_secrets,
    write_private,
)
from gatewayd.accounts.users import Users
from gatewayd.assembly.sign_in import make_directory
from gatewayd.bus.redis_attempts import RedisAttempts
from gatewayd.bus.redis_client import RedisClient
from gatewayd.cluster.fresh_transactor import FreshTransactor
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.encryption import SecretKeys
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugin_host.settings import derive_secret
from gatewayd.settings import Settings
from gatewayd.settings.permissions import PERMISSION_LEAVES
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.identities import TortoiseIdentities
from gatewayd.storage.keys import TortoiseKeys, TortoiseRevocations
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.sign_in.one_time_links import TortoiseOneTimeLinks
from gatewayd.storage.sign_in.sessions import TortoiseSessions
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import CallbackTransactor

log = logging.getLogger(__name__)

SIGNING_FILE: Final = "secret-key"
NEVER: Final = 2**53
"""The end of sessions of a former secret that the configuration names: it is taken out there."""


@dataclass(frozen=True, slots=True)
class AccountStores:
    """The stores over one open database."""

    users: TortoiseUsers
    groups: TortoiseGroups
    keys: TortoiseKeys
    revocations: TortoiseRevocations
    sessions: TortoiseSessions
    links: TortoiseOneTimeLinks
    values: TortoiseValues
    models: TortoiseModels
    identities: TortoiseIdentities


@dataclass(frozen=True, slots=True)
class LinkServices:
    """The services of links that work once."""

    tokens: LinkTokens
    invitations: Invitations
    sign_in_links: SignInLinks


@dataclass(frozen=True, slots=True)
class AccountServices:
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
    links: LinkServices
    sign_in: SignIn
    sign_in_guard: SignInGuard
    sign_up: SignUp
    external: ExternalAccounts
    directory: DirectorySignIn | None
    authenticator: Authenticator
    contact: AdminContact
    commits: CallbackTransactor
    fresh: FreshTransactor
    """The same, for changes that read what is remembered."""

    changes: AccountChangeNotifier


def make_stores(reader: QueryReader, secret: SecretKeys) -> AccountStores:
    """Return the stores. They find the open database by context and read long results through `reader`.

    `secret` is the secret of the gateway, which encrypts tokens of identity providers.
    """
    return AccountStores(
        TortoiseUsers(reader),
        TortoiseGroups(reader),
        TortoiseKeys(),
        TortoiseRevocations(),
        TortoiseSessions(),
        TortoiseOneTimeLinks(),
        TortoiseValues(),
        TortoiseModels(),
        TortoiseIdentities(secret),
    )


def make_guard(settings: Settings, secret: str, redis: RedisClient | None) -> SignInGuard:
    """Return the limits of failed sign-ins; those of nodes count together in Redis."""
    shared = None if redis is None else RedisAttempts(redis)
    return SignInGuard(DeviceCookies(secret), sign_in_limits(settings), shared=shared)


def make_sign_in(
    settings: Settings, stores: AccountStores, passwords: Passwords, guard: SignInGuard
) -> SignIn:
    """Return the sign-in with a password."""
    limits = sign_in_limits(settings)
    return SignIn(stores.users, passwords, guard, limits, enabled=settings.enable_password_auth)


async def make_accounts(
    settings: Settings,
    stores: AccountStores,
    database: Database,
    stack: AsyncExitStack,
    freshness: Freshness = ALWAYS_FRESH,
    redis: RedisClient | None = None,
) -> AccountServices:
    """Return the account services with their stored state loaded."""
    changes, commits = AccountChangeNotifier(), CallbackTransactor(database)
    persistent = settings.enable_persistent_config
    rules = PasswordRules(settings.password_min_length, [settings.webui_name], common_passwords())
    passwords = Passwords(rules)
    stack.callback(passwords.close)
    runtime = RuntimeSettings(stores.values, configured_values(settings), persistent, changes)
    permissions = Permissions(stores.values, configured_permissions(settings), changes, persistent=persistent)
    await runtime.load()
    await permissions.load()
    key_rules = KeyRules(stores.groups, permissions, runtime)
    users = Users(stores.users, stores.groups, commits, passwords, changes)
    groups = Groups(stores.groups, commits, changes)
    keys = Keys(stores.keys, key_rules, changes)
    secrets = signing_secrets(settings)
    session_stores = SessionStores(stores.sessions, stores.revocations, commits)
    sessions = Sessions(secrets.current, session_stores, changes, former=secrets.former)
    setup = Setup(users, groups, keys, runtime, commits)
    guard = make_guard(settings, secrets.current, redis)
    external = ExternalAccounts(
        users,
        groups,
        runtime,
        stores.identities,
        commits,
        may_create_first=settings.enable_initial_admin_signup,
    )
    await make_administrator(settings, setup)
    return AccountServices(
        users=users,
        groups=groups,
        keys=keys,
        key_rules=key_rules,
        current=CurrentRights(stores.users, key_rules),
        passwords=passwords,
        permissions=permissions,
        runtime=runtime,
        sessions=sessions,
        setup=setup,
        links=make_links(stores, users, groups, commits),
        sign_in=make_sign_in(settings, stores, passwords, guard),
        sign_in_guard=guard,
        sign_up=SignUp(users, groups, runtime, sign_up_options(settings)),
        external=external,
        directory=make_directory(settings, external, guard, stack),
        authenticator=Authenticator(
            stores.users, stores.keys, key_rules, sessions, changes, freshness=freshness
        ),
        contact=AdminContact(users, runtime),
        commits=commits,
        fresh=FreshTransactor(commits, freshness),
        changes=changes,
    )


def make_links(
    stores: AccountStores, users: Users, groups: Groups, commits: CallbackTransactor
) -> LinkServices:
    """Return the services of links that work once."""
    tokens = LinkTokens(stores.links)
    return LinkServices(tokens, Invitations(tokens, users, groups), SignInLinks(tokens, users, commits))


async def make_administrator(settings: Settings, setup: Setup) -> None:
    """Create the administrator that the configuration names, if there is no account yet."""
    password = settings.webui_admin_password.get_secret_value()
    if not settings.webui_admin_email or not password:
        return
    try:
        made = await setup.ensure(settings.webui_admin_email, settings.webui_admin_name, password)
    except GatewayError as error:
        if error.kind is not ErrorKind.INVALID_REQUEST:
            raise
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED, f"cannot make the administrator of webui_admin_email: {error.message}"
        ) from error
    if made is not None:
        log.info("first administrator made", extra={"user": made.email})


def sign_in_limits(settings: Settings) -> SignInLimits:
    """Return the limits of failed sign-ins."""
    return SignInLimits(
        failures=settings.signin_failure_limit,
        by_address=settings.signin_address_failure_limit,
        by_account=settings.signin_account_failure_limit,
    )


def sign_up_options(settings: Settings) -> SignUpOptions:
    """Return the options of sign-up that cannot change at run time."""
    return SignUpOptions(
        initial_admin=settings.enable_initial_admin_signup,
        limit=settings.signup_limit,
        by_address=settings.signup_address_limit,
    )


def configured_values(settings: Settings) -> Mapping[str, ConfiguredValue]:
    """Return the configured values of the settings that may change at run time."""
    return {
        name: ConfiguredValue(each.value, each.origin, each.explicit)
        for name, each in settings.runtime_values().items()
    }


def configured_permissions(settings: Settings) -> PermissionTree:
    """Return the configured default permissions; all others are built in."""
    origins = settings.origins
    tree: PermissionTree = {}
    for leaf in PERMISSION_LEAVES:
        if origins[leaf.name].explicit:
            tree.setdefault(leaf.section, {})[leaf.leaf] = getattr(settings, leaf.name)
    return tree


def signing_secrets(settings: Settings) -> SigningSecrets:
    """Return the secrets that sign sessions: the configured ones, or those in data_dir, made there once."""
    given = settings.webui_secret_key.get_secret_value()
    if given:
        former = settings.webui_secret_key_previous.get_secret_value()
        return SigningSecrets(given, {former: NEVER} if former else {})
    path = settings.data_dir / SIGNING_FILE
    try:
        if not path.exists():
            write_private(path, f"{ids.new_secret(32)}\n")
        return read_secrets(path)
    except OSError as error:
        raise GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot keep the signing secret: {error}") from error


def signing_keys(settings: Settings) -> SecretKeys:
    """Return the secrets as encryption uses them."""
    secrets = signing_secrets(settings)
    return SecretKeys(secrets.current.encode(), tuple(each.encode() for each in secrets.former))


def plugin_secret(settings: Settings) -> str:
    """Return the secret of plugins, which outlives the signing secret that it was derived from."""
    path = settings.data_dir / PLUGIN_FILE
    if path.exists():
        return path.read_text().strip()
    secrets = signing_secrets(settings)
    derived = derive_secret([secrets.current, *secrets.former][-1])
    if secrets.former:
        write_private(path, f"{derived}\n")
    return derived


def forget_former(settings: Settings) -> None:
    """Forget former secrets whose sessions have ended, once nothing is encrypted with them."""
    if not settings.webui_secret_key.get_secret_value():
        drop_expired(settings.data_dir / SIGNING_FILE, ids.now())
