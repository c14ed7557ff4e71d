import asyncio

import pytest

from gatewayd.accounts import signin as module
from gatewayd.accounts.records import Role, UserChange
from gatewayd.accounts.signin import Limit, SignIn, Tries
from gatewayd.errors import GatewayError, Kind
from tests.fakes.accounts import Accounts

HERE = "192.0.2.1"


async def failure(accounts: Accounts, email: str, password: str = "wrong", peer: str = HERE) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in.sign_in(email, password, peer)
    return caught.value


async def test_the_right_pair(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    assert await accounts.sign_in.sign_in(" ANN@example.org", "secret", HERE) == ann


async def test_pending_accounts_may_sign_in(accounts: Accounts) -> None:
    ann = await accounts.add_user(role=Role.PENDING, password="secret")
    assert await accounts.sign_in.sign_in(ann.email, "secret", HERE) == ann


async def test_every_failure_has_one_text_and_costs_one_verification(accounts: Accounts) -> None:
    await accounts.add_user("ann", password="secret")
    gone = await accounts.add_user("gone", password="secret")
    await accounts.users.change(gone.id, UserChange(active=False), None)
    await accounts.add_user("mute")
    pairs = [
        ("ann@example.org", "wrong"),
        ("ann@example.org", ""),
        ("nobody@example.org", "secret"),
        ("gone@example.org", "secret"),
        ("mute@example.org", "secret"),
        ("no address", "secret"),
        ("\udfff@x", "secret"),
    ]
    errors = [await failure(accounts, email, password) for email, password in pairs]
    assert {(error.kind, error.code, error.message) for error in errors} == {
        (Kind.INVALID_REQUEST, "invalid_credentials", "cannot sign in: wrong e-mail or password")
    }
    assert accounts.passwords.verified == ["hash:secret"] * 2 + [None] * 5


async def test_one_account_can_be_tried_fifteen_times(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    for number in range(15):
        assert (await failure(accounts, ann.email, peer=f"10.0.0.{number}")).kind is Kind.INVALID_REQUEST
        accounts.time += 1
    limited = await failure(accounts, ann.email, "secret", "10.9.9.9")
    assert (limited.kind, limited.retry_after) == (Kind.RATE_LIMITED, 165)
    accounts.time += 164
    assert (await failure(accounts, ann.email, "secret")).retry_after == 1
    accounts.time += 1
    assert await accounts.sign_in.sign_in(ann.email, "secret", HERE) == ann


async def test_a_crowd_at_once_gets_no_more_tries(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    errors = await asyncio.gather(*(failure(accounts, ann.email, peer=f"10.0.0.{n}") for n in range(40)))
    kinds = [error.kind for error in errors]
    assert kinds.count(Kind.INVALID_REQUEST) == 15
    assert kinds.count(Kind.RATE_LIMITED) == 25


@pytest.mark.parametrize(
    "peers", [("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::1", "2001:db8::ffff"), ("", "")]
)
async def test_one_peer_can_try_sixty_times(accounts: Accounts, peers: tuple[str, str]) -> None:
    for number in range(60):
        error = await failure(accounts, f"u{number}@x", peer=peers[number % 2])
        assert error.kind is Kind.INVALID_REQUEST
    assert (await failure(accounts, "another@x", peer=peers[0])).kind is Kind.RATE_LIMITED
    assert (await failure(accounts, "another@x", peer="203.0.113.9")).kind is Kind.INVALID_REQUEST


async def test_success_is_not_counted(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    for _ in range(100):
        await accounts.sign_in.sign_in(ann.email, "secret", HERE)


async def test_weak_hashes_are_renewed(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await accounts.add_user(password="secret")
    monkeypatch.setattr(accounts.passwords, "needs_rehash", lambda known: True)

    async def stronger(password: str) -> str:
        return f"stronger:{password}"

    monkeypatch.setattr(accounts.passwords, "hash", stronger)
    await accounts.sign_in.sign_in(ann.email, "secret", HERE)
    assert accounts.memory.tables.passwords[ann.id] == "stronger:secret"
    assert (await accounts.users.get(ann.id)).token_version == 0


async def test_a_busy_gateway_does_not_count(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await accounts.add_user(password="secret")

    async def busy(known: object, password: str) -> bool:
        raise GatewayError(Kind.UNAVAILABLE, "cannot now")

    with monkeypatch.context() as patched:
        patched.setattr(accounts.passwords, "verify", busy)
        for _ in range(20):
            assert (await failure(accounts, ann.email)).kind is Kind.UNAVAILABLE
    assert await accounts.sign_in.sign_in(ann.email, "secret", HERE) == ann


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRACKED", 5)
    tries = Tries(Limit(1, 60), lambda: 0)
    for number in range(50):
        tries.add(str(number))
    assert len(tries._times) == 5
    assert tries.wait("49") == 60
    assert tries.wait("0") == 0
    tries.take_back("49")
    tries.take_back("0")
    assert len(tries._times) == 4


async def test_passwords_can_be_switched_off(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    closed = SignIn(accounts.users_store, accounts.passwords, accounts.clock, enabled=False)
    with pytest.raises(GatewayError, match="ENABLE_PASSWORD_AUTH") as caught:
        await closed.sign_in(ann.email, "secret", HERE)
    assert caught.value.kind is Kind.FORBIDDEN
