"""Every account service over the stores in memory, with a clock that tests turn."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gatewayd.accounts.authenticator import Authenticator
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.current_rights import CurrentRights
from gatewayd.accounts.devices import DeviceCookies
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.identity.attempts import SignInAttempts
from gatewayd.accounts.identity.discovery import ProviderDirectory
from gatewayd.accounts.identity.external_accounts import ExternalAccounts
from gatewayd.accounts.identity.identity_links import IdentityLinks
from gatewayd.accounts.identity.person_tokens import PersonTokens
from gatewayd.accounts.identity.provider_login import ProviderLogin
from gatewayd.accounts.identity.provider_logout import ProviderLogout
from gatewayd.accounts.identity.providers import ProviderOptions
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.keys import Keys
from gatewayd.accounts.links.invitations import Invitations
from gatewayd.accounts.links.sign_in_links import SignInLinks
from gatewayd.accounts.links.tokens import LinkTokens
from gatewayd.accounts.password_rules import PasswordRules, check_password
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import (
    Actor,
    CredentialKind,
    NewGroup,
    NewUser,
    PermissionTree,
    Role,
    SessionOrigin,
    SignInMethod,
    User,
)
from gatewayd.accounts.runtime_settings import ConfiguredValue, RuntimeSettings
from gatewayd.accounts.sessions import Sessions, SessionStores
from gatewayd.accounts.setup import Setup
from gatewayd.accounts.sign_in import SignIn, SignInGuard
from gatewayd.accounts.sign_up import SignUp, SignUpOptions
from gatewayd.accounts.users import Users
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.transactions import CallbackTransactor
from gatewayd.upstream.identity.client import IdentityProviderClient
from tests.fakes.accounts.memory_identities import MemoryIdentities
from tests.fakes.accounts.memory_stores import (
    Memory,
    MemoryGroups,
    MemoryKeys,
    MemoryOneTimeLinks,
    MemoryRevocations,
    MemorySessions,
    MemoryUsers,
    MemoryValues,
)
from tests.fakes.http.public_app import Client, bearer, serving

SECRET = "0123456789abcdef" * 4
NOON = 1_700_000_000
BY_PASSWORD = SessionOrigin(SignInMethod.PASSWORD)
EASY_SIGN_UP = SignUpOptions(initial_admin=True, limit=1000, by_address=1000)


class FakePasswords(Passwords):
    """Passwords without the cost: what is under test elsewhere."""

    def __init__(self) -> None:
        self.verified: list[str | None] = []
        self.rules: PasswordRules | None = None
        self.hashed = 0

    def check_new(self, password: str, about: Iterable[str], param: str = "password") -> None:
        if self.rules is not None:
            self.rules.check(password, about, param)

    async def hash(self, password: str) -> str:
        check_password(password)
        self.hashed += 1
        return f"hash:{password}"

    async def verify(self, password_hash: str | None, password: str) -> bool:
        self.verified.append(password_hash)
        return password_hash == f"hash:{password}"

    def needs_rehash(self, password_hash: str) -> bool:
        return False

    def close(self) -> None:
        pass


@dataclass
class Accounts:
    """The services, each made when it is first asked for."""

    memory: Memory = field(default_factory=Memory)
    configured: Mapping[str, ConfiguredValue] = field(default_factory=dict)
    configured_permissions: PermissionTree = field(default_factory=dict)
    persistent: bool = True
    time: int = NOON
    sign_up_options: SignUpOptions = EASY_SIGN_UP
    providers: Sequence[ProviderOptions] = ()

    def __post_init__(self) -> None:
        self.changes = AccountChangeNotifier()
        self.commits = CallbackTransactor(self.memory)
        self.users_store = MemoryUsers(self.memory)
        self.groups_store = MemoryGroups(self.memory)
        self.keys_store = MemoryKeys(self.memory)
        self.values_store = MemoryValues(self.memory)
        self.identities_store = MemoryIdentities(self.memory)
        self.passwords = FakePasswords()
        self.heard: list[AccountChange] = []
        self.changes.subscribe(self.heard.append)

    def clock(self) -> int:
        return self.time

    @cached_property
    def users(self) -> Users:
        return Users(
            self.users_store, self.groups_store, self.commits, self.passwords, self.changes, self.clock
        )

    @cached_property
    def groups(self) -> Groups:
        return Groups(self.groups_store, self.commits, self.changes, self.clock)

    @cached_property
    def permissions(self) -> Permissions:
        return Permissions(
            self.values_store,
            self.configured_permissions,
            self.changes,
            self.clock,
            persistent=self.persistent,
        )

    @cached_property
    def runtime(self) -> RuntimeSettings:
        return RuntimeSettings(self.values_store, self.configured, self.persistent, self.changes, self.clock)

    @cached_property
    def rules(self) -> KeyRules:
        return KeyRules(self.groups_store, self.permissions, self.runtime)

    @cached_property
    def current(self) -> CurrentRights:
        return CurrentRights(self.users_store, self.rules)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.keys_store, self.rules, self.changes, self.clock)

    @property
    def session_stores(self) -> SessionStores:
        return SessionStores(MemorySessions(self.memory), MemoryRevocations(self.memory), self.commits)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(SECRET, self.session_stores, self.changes, self.clock, self.clock)

    @cached_property
    def authenticator(self) -> Authenticator:
        return Authenticator(
            self.users_store, self.keys_store, self.rules, self.sessions, self.changes, self.clock
        )

    @cached_property
    def link_tokens(self) -> LinkTokens:
        return LinkTokens(MemoryOneTimeLinks(self.memory), self.clock, self.clock)

    @cached_property
    def invitations(self) -> Invitations:
        return Invitations(self.link_tokens, self.users, self.groups)

    @cached_property
    def sign_in_links(self) -> SignInLinks:
        return SignInLinks(self.link_tokens, self.users, self.commits)

    @cached_property
    def sign_in(self) -> SignIn:
        return SignIn(self.users_store, self.passwords, self.sign_in_guard, clock=self.clock)

    @cached_property
    def sign_in_guard(self) -> SignInGuard:
        return SignInGuard(DeviceCookies(SECRET, self.clock), clock=self.clock)

    @cached_property
    def sign_up(self) -> SignUp:
        return SignUp(self.users, self.groups, self.runtime, self.sign_up_options, self.clock)

    @cached_property
    def person_tokens(self) -> PersonTokens:
        return PersonTokens(self.login, self.identities_store, self.sessions, self.clock)

    @cached_property
    def external(self) -> ExternalAccounts:
        return ExternalAccounts(
            self.users, self.groups, self.runtime, self.identities_store, self.commits, clock=self.clock
        )

    @cached_property
    def provider_directory(self) -> ProviderDirectory:
        return ProviderDirectory(IdentityProviderClient(), self.clock)

    @cached_property
    def login(self) -> ProviderLogin:
        attempts = SignInAttempts(SECRET.encode(), self.identities_store, self.clock)
        return ProviderLogin(
            IdentityProviderClient(), self.provider_directory, attempts, self.providers, self.clock
        )

    @cached_property
    def provider_logout(self) -> ProviderLogout:
        directory = self.provider_directory
        return ProviderLogout(self.login, directory, self.identities_store, self.sessions, self.clock)

    @cached_property
    def identity_links(self) -> IdentityLinks:
        return IdentityLinks(self.users, self.users_store, self.identities_store, self.commits, self.login)

    @cached_property
    def setup(self) -> Setup:
        return Setup(self.users, self.groups, self.keys, self.runtime, self.commits)

    async def add_user(self, name: str = "ann", role: Role = Role.USER, **more: Any) -> User:
        self.time += 1
        return await self.users.create(NewUser(email=f"{name}@example.org", name=name, role=role, **more))

    async def grant_keys(self, *users: User) -> str:
        """Switch keys on and put the users into a group that may have them; return the group's id."""
        await self.runtime.set({"ENABLE_API_KEYS": True}, by="test")
        group, _ = await self.groups.ensure(
            NewGroup("key holders", permissions={"features": {"api_keys": True}})
        )
        await self.groups.add_members(group.id, [user.id for user in users])
        return group.id

    async def session(self, user: User, origin: SessionOrigin = BY_PASSWORD) -> str:
        return (await self.sessions.issue(user, 3600, origin))[0]

    async def actor(self, user: User) -> Actor:
        rights = await self.rules.rights(user)
        return Actor(user, CredentialKind.SESSION, rights.group_ids, rights.permissions)


@dataclass
class Site:
    """A served application over the account services, with one account of each role."""

    accounts: Accounts
    client: Client
    admin: User
    user: User
    pending: User

    async def call(self, method: str, path: str, who: User | str | None = None, body: Any = None) -> Any:
        """Send one request as an account (by session) or with a credential; return status and JSON."""
        credential = await self.accounts.session(who) if isinstance(who, User) else who
        headers = bearer(credential) if credential else {}
        sent = {} if body is None else {"json": body}
        async with self.client.request(method, path, headers=headers, **sent) as reply:
            return reply.status, await reply.json()

    async def get_ok(self, path: str, who: User | str | None = None) -> Any:
        status, body = await self.call("GET", path, who)
        assert status == 200, body
        return body

    async def post_ok(self, path: str, who: User | str | None = None, body: Any = None) -> Any:
        status, answer = await self.call("POST", path, who, body)
        assert status == 200, answer
        return answer


@asynccontextmanager
async def serving_accounts(accounts: Accounts, rows: Sequence[Route]) -> AsyncIterator[Site]:
    admin = await accounts.add_user("admin", Role.ADMIN, password="secret")
    user = await accounts.add_user("user", password="secret")
    pending = await accounts.add_user("pending", Role.PENDING, password="secret")
    async with serving(rows, authenticator=accounts.authenticator) as client:
        yield Site(accounts, client, admin, user, pending)


def _path_of(row: Route, value: str) -> str:
    return re.sub(r"{\w+}", value, row.path)


async def check_access(site: Site, rows: Sequence[Route]) -> int:
    """Check that each row refuses whom it must: 401 without an account, 403 with too little; count them."""
    refused = {
        RouteAccess.ACCOUNT: (),
        RouteAccess.VERIFIED: (site.pending,),
        RouteAccess.ADMIN: (site.pending, site.user),
    }
    checked = 0
    for row in rows:
        for who in refused.get(row.access, ()):
            status, body = await site.call(row.method, _path_of(row, site.user.id), who)
            assert (status, "detail" in body) == (403, True), (row.method, row.path, who.name)
        if row.access in refused:
            for credential in (None, "sk-unknown", "no.such.token"):
                status, _ = await site.call(row.method, _path_of(row, "x"), credential)
                assert status == 401, (row.method, row.path)
            checked += 1
    return checked
