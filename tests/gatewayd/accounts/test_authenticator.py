import asyncio

import pytest

from gatewayd.accounts import authenticator as module
from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import ApiKey, CredentialKind, GroupChange, Role, User, UserChange
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import BY_PASSWORD, Accounts


async def refused(accounts: Accounts, credential: str, path: str = "/api/models") -> ErrorKind:
    with pytest.raises(GatewayError) as caught:
        await accounts.authenticator.authenticate(credential, "GET", path)
    return caught.value.kind


async def with_key(accounts: Accounts, role: Role = Role.USER) -> tuple[User, ApiKey, str]:
    user = await accounts.add_user("ann", role)
    await accounts.add_user("chief", Role.ADMIN)
    await accounts.grant_keys(user)
    key, value = await accounts.keys.issue(user, "one")
    return user, key, value


async def test_a_key_and_a_session_name_the_same_account(accounts: Accounts) -> None:
    user, key, value = await with_key(accounts)
    by_key = await accounts.authenticator.authenticate(value, "GET", "/api/models")
    by_session = await accounts.authenticator.authenticate(await accounts.session(user), "GET", "/api/models")
    assert (by_key.user, by_key.kind, by_key.key_id) == (user, CredentialKind.KEY, key.id)
    assert (by_session.user, by_session.kind) == (user, CredentialKind.SESSION)
    assert by_session.jti
    assert by_key.may("features", "api_keys")
    assert by_key.group_ids == by_session.group_ids != ()


@pytest.mark.parametrize(
    "credential", ["", "sk-", "sk-" + "0" * 64, "nonsense", "a.b.c", "\udfff", "x" * 5000]
)
async def test_unknown_credentials(accounts: Accounts, credential: str) -> None:
    await with_key(accounts)
    assert await refused(accounts, credential) is ErrorKind.UNAUTHENTICATED


async def test_what_is_cached_is_not_read_again(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, value = await with_key(accounts)
    first = await accounts.authenticator.authenticate(value, "GET", "/x")
    monkeypatch.delattr(type(accounts.keys_store), "find_by_digest")
    assert await accounts.authenticator.authenticate(value, "GET", "/x") is first


async def test_the_global_switch_stops_and_revives_keys(accounts: Accounts) -> None:
    user, _, value = await with_key(accounts, Role.ADMIN)
    await accounts.authenticator.authenticate(value, "GET", "/x")
    await accounts.runtime.set({"ENABLE_API_KEYS": False}, by="test")
    assert await refused(accounts, value) is ErrorKind.FORBIDDEN
    await accounts.authenticator.authenticate(await accounts.session(user), "GET", "/x")
    await accounts.runtime.set({"ENABLE_API_KEYS": True}, by="test")
    await accounts.authenticator.authenticate(value, "GET", "/x")


@pytest.mark.parametrize("role", [Role.USER, Role.ADMIN])
async def test_the_permission_stops_keys_on_the_next_request(accounts: Accounts, role: Role) -> None:
    user, _, value = await with_key(accounts, role)
    actor = await accounts.authenticator.authenticate(value, "GET", "/x")
    (group_id,) = actor.group_ids
    await accounts.groups.change(group_id, GroupChange(permissions={}))
    assert await refused(accounts, value) is ErrorKind.FORBIDDEN
    await accounts.groups.change(group_id, GroupChange(permissions={"features": {"api_keys": True}}))
    await accounts.authenticator.authenticate(value, "GET", "/x")
    await accounts.groups.remove_members(group_id, [user.id])
    assert await refused(accounts, value) is ErrorKind.FORBIDDEN
    await accounts.groups.add_members(group_id, [user.id])
    await accounts.authenticator.authenticate(value, "GET", "/x")
    await accounts.groups.remove(group_id)
    assert await refused(accounts, value) is ErrorKind.FORBIDDEN


async def test_endpoint_restrictions_bind_administrators_and_cached_keys(accounts: Accounts) -> None:
    user, _, value = await with_key(accounts, Role.ADMIN)
    await accounts.authenticator.authenticate(value, "GET", "/api/v1/auths/")
    await accounts.runtime.set(
        {"ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS": True, "API_KEYS_ALLOWED_ENDPOINTS": "/api/models"},
        by="test",
    )
    await accounts.authenticator.authenticate(value, "GET", "/api/models")
    assert await refused(accounts, value, "/api/v1/auths/") is ErrorKind.FORBIDDEN
    await accounts.authenticator.authenticate(await accounts.session(user), "GET", "/api/v1/auths/")


async def test_deactivation_and_removal_end_everything_at_once(accounts: Accounts) -> None:
    user, _, value = await with_key(accounts)
    session = await accounts.session(user)
    for credential in (value, session):
        await accounts.authenticator.authenticate(credential, "GET", "/x")
    await accounts.users.change(user.id, UserChange(active=False), None)
    assert {await refused(accounts, value), await refused(accounts, session)} == {ErrorKind.UNAUTHENTICATED}
    await accounts.users.change(user.id, UserChange(active=True), None)
    await accounts.authenticator.authenticate(value, "GET", "/x")
    assert await refused(accounts, session) is ErrorKind.UNAUTHENTICATED
    await accounts.users.remove(user.id, None)
    assert await refused(accounts, value) is ErrorKind.UNAUTHENTICATED


async def test_a_pending_account_is_known_but_not_verified(accounts: Accounts) -> None:
    user, _, value = await with_key(accounts)
    await accounts.users.change(user.id, UserChange(role=Role.PENDING), None)
    actor = await accounts.authenticator.authenticate(value, "GET", "/x")
    assert not actor.is_verified


@pytest.mark.parametrize("change", [UserChange(password="new"), UserChange(role=Role.ADMIN)])
async def test_sessions_end_with_a_password_or_role_change(accounts: Accounts, change: UserChange) -> None:
    user, _, value = await with_key(accounts)
    session = await accounts.session(user)
    await accounts.authenticator.authenticate(session, "GET", "/x")
    await accounts.users.change(user.id, change, None)
    assert await refused(accounts, session) is ErrorKind.UNAUTHENTICATED
    await accounts.authenticator.authenticate(value, "GET", "/x")


async def test_sign_out_ends_this_session_only(accounts: Accounts) -> None:
    user = await accounts.add_user()
    one, two = await accounts.session(user), await accounts.session(user)
    for session in (one, two):
        await accounts.authenticator.authenticate(session, "GET", "/x")
    await accounts.sessions.revoke(accounts.sessions.read(one))
    assert await refused(accounts, one) is ErrorKind.UNAUTHENTICATED
    await accounts.authenticator.authenticate(two, "GET", "/x")


async def test_revoked_and_expired_keys(accounts: Accounts) -> None:
    user, key, value = await with_key(accounts)
    _, short = await accounts.keys.issue(user, "short", accounts.time + 10)
    for credential in (value, short):
        await accounts.authenticator.authenticate(credential, "GET", "/x")
    accounts.time += 10
    assert await refused(accounts, short) is ErrorKind.UNAUTHENTICATED
    assert await refused(accounts, short) is ErrorKind.UNAUTHENTICATED
    await accounts.keys.revoke(key.id)
    assert await refused(accounts, value) is ErrorKind.UNAUTHENTICATED


async def test_cached_sessions_expire(accounts: Accounts) -> None:
    user = await accounts.add_user()
    token, _ = await accounts.sessions.issue(user, 60, BY_PASSWORD)
    await accounts.authenticator.authenticate(token, "GET", "/x")
    accounts.time += 60
    assert await refused(accounts, token) is ErrorKind.UNAUTHENTICATED


@pytest.mark.parametrize("everybody", [True, False])
async def test_a_change_during_the_reading_is_not_cached_over(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch, everybody: bool
) -> None:
    user, key, value = await with_key(accounts)
    real = accounts.users_store.find
    reading, go = asyncio.Event(), asyncio.Event()

    async def slow(user_id: str) -> User | None:
        found = await real(user_id)
        reading.set()
        await go.wait()
        return found

    monkeypatch.setattr(accounts.users_store, "find", slow)
    early = asyncio.get_running_loop().create_task(accounts.authenticator.authenticate(value, "GET", "/x"))
    await reading.wait()
    await accounts.keys_store.remove(key.id)
    accounts.changes.publish(AccountChange(None if everybody else user.id))
    go.set()
    await early
    assert await refused(accounts, value) is ErrorKind.UNAUTHENTICATED


async def test_use_is_written_in_batches(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    user, key, value = await with_key(accounts)
    accounts.time += 100
    await accounts.authenticator.authenticate(value, "GET", "/x")
    used = accounts.time
    assert (await accounts.keys.get(key.id)).last_used_at is None

    async def broken(seen: object) -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write")

    with monkeypatch.context() as patched:
        patched.setattr(accounts.keys_store, "touch", broken)
        with pytest.raises(GatewayError):
            await accounts.authenticator.flush()
    await accounts.authenticator.flush()
    assert (await accounts.keys.get(key.id)).last_used_at == used
    assert (await accounts.users.get(user.id)).last_active_at == used
    monkeypatch.setattr(accounts.keys_store, "touch", broken)
    await accounts.authenticator.flush()


async def test_the_cache_is_bounded(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 3)
    user = await accounts.add_user()
    for _ in range(10):
        await accounts.authenticator.authenticate(await accounts.session(user), "GET", "/x")
    assert len(accounts.authenticator._cache) == 3
    assert len(accounts.authenticator._cached_of[user.id]) == 3
    accounts.changes.publish(AccountChange(user.id))
    assert accounts.authenticator._cache == {}
    assert accounts.authenticator._cached_of == {}


class Doubt:
    """A freshness that tests take away; `renew` drops an actor, or fails."""

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        self.is_trusted = True
        self.is_away = False
        self.renewals = 0

    def is_fresh(self) -> bool:
        return self.is_trusted

    async def renew(self) -> None:
        self.renewals += 1
        if self.is_away:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read the change log")
        self.accounts.changes.publish(AccountChange(None))


async def test_a_cached_actor_is_used_only_while_it_is_trusted(accounts: Accounts) -> None:
    _, key, value = await with_key(accounts)
    doubt = Doubt(accounts)
    authenticator = module.Authenticator(
        accounts.users_store,
        accounts.keys_store,
        accounts.rules,
        accounts.sessions,
        accounts.changes,
        freshness=doubt,
    )
    await authenticator.authenticate(value, "GET", "/x")
    # Another process revokes the key: nothing is published here.
    await accounts.keys_store.remove(key.id)
    await authenticator.authenticate(value, "GET", "/x")
    assert doubt.renewals == 0
    doubt.is_trusted, doubt.is_away = False, True
    with pytest.raises(GatewayError) as caught:
        await authenticator.authenticate(value, "GET", "/x")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    doubt.is_away = False
    with pytest.raises(GatewayError) as caught:
        await authenticator.authenticate(value, "GET", "/x")
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED
    assert doubt.renewals == 2
