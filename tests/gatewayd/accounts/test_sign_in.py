import asyncio
from dataclasses import replace

import pytest

from gatewayd.accounts import attempts
from gatewayd.accounts.devices import DeviceCookies
from gatewayd.accounts.records import CredentialKind, Role, UserChange
from gatewayd.accounts.sign_in import KnownNetworks, SignIn, SignInClient, SignInGuard, SignInLimits
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

HERE = "192.0.2.1"


async def failure(
    accounts: Accounts, email: str, password: str = "wrong", peer: str = HERE, cookie: str = ""
) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in.sign_in(email, password, SignInClient(peer, cookie))
    return caught.value


async def test_the_right_pair(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    assert await accounts.sign_in.sign_in(" ANN@example.org", "secret", SignInClient(HERE)) == ann


async def test_pending_accounts_may_sign_in(accounts: Accounts) -> None:
    ann = await accounts.add_user(role=Role.PENDING, password="secret")
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE)) == ann


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
        # It took minutes once to find that it is no address.
        ("\u0301" * 1_000_000 + "@x", "secret"),
    ]
    errors = [await failure(accounts, email, password) for email, password in pairs]
    assert {(error.kind, error.code, error.message) for error in errors} == {
        (ErrorKind.INVALID_REQUEST, "invalid_credentials", "cannot sign in: wrong e-mail or password")
    }
    assert accounts.passwords.verified == ["hash:secret"] * 2 + [None] * 6


async def test_one_address_can_try_one_account_ten_times(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user(password="secret"), await accounts.add_user("bob", password="secret")
    for _ in range(10):
        assert (await failure(accounts, ann.email)).kind is ErrorKind.INVALID_REQUEST
        accounts.time += 1
    limited = await failure(accounts, ann.email, "secret")
    assert (limited.kind, limited.retry_after) == (ErrorKind.RATE_LIMITED, 890)
    # Nobody else is held up: not the person elsewhere, not another account here.
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient("203.0.113.9")) == ann
    assert await accounts.sign_in.sign_in(bob.email, "secret", SignInClient(HERE)) == bob
    accounts.time += 889
    assert (await failure(accounts, ann.email, "secret")).retry_after == 1
    accounts.time += 1
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE)) == ann


async def test_a_crowd_of_strangers_holds_up_nobody_who_was_here_before(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    home, cookie = "203.0.113.9", accounts.sign_in.issue_device_cookie(ann)
    await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(home))
    kinds = [(await failure(accounts, ann.email, peer=f"10.0.{n // 9}.1")).kind for n in range(900)]
    assert kinds.count(ErrorKind.INVALID_REQUEST) == 100
    assert kinds[100:] == [ErrorKind.RATE_LIMITED] * 800
    assert (await failure(accounts, ann.email, "secret", "192.0.2.77")).kind is ErrorKind.RATE_LIMITED
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(home)) == ann
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient("10.0.0.1", cookie)) == ann
    accounts.time += 3600
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient("192.0.2.77")) == ann


async def test_a_browser_that_was_here_before_is_counted_by_itself(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user(password="secret"), await accounts.add_user("bob", password="secret")
    cookie = accounts.sign_in.issue_device_cookie(ann)
    for number in range(150):
        await failure(accounts, f"u{number}@x")
    assert (await failure(accounts, ann.email, "secret")).kind is ErrorKind.RATE_LIMITED
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE, cookie)) == ann
    # The cookie is good for its account, and for no more tries than anybody has.
    assert (await failure(accounts, bob.email, "secret", cookie=cookie)).kind is ErrorKind.RATE_LIMITED
    kinds = [(await failure(accounts, ann.email, cookie=cookie)).kind for _ in range(12)]
    assert kinds == [ErrorKind.INVALID_REQUEST] * 10 + [ErrorKind.RATE_LIMITED] * 2


async def test_many_device_cookies_of_one_account_have_one_limit(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    home = SignInClient("203.0.113.9")
    assert await accounts.sign_in.sign_in(ann.email, "secret", home) == ann
    cookies = [accounts.sign_in.issue_device_cookie(ann) for _ in range(20)]
    kinds = [
        (await failure(accounts, ann.email, peer="10.0.0.1", cookie=cookies[n % 20])).kind for n in range(200)
    ]
    # A hundred of the cookies, and ten of the address, which counts as a stranger's then.
    assert kinds == [ErrorKind.INVALID_REQUEST] * 110 + [ErrorKind.RATE_LIMITED] * 90
    at_home = replace(home, device_cookie=cookies[0])
    assert await accounts.sign_in.sign_in(ann.email, "secret", at_home) == ann


async def test_a_crowd_at_once_gets_no_more_tries(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    errors = await asyncio.gather(*(failure(accounts, ann.email) for _ in range(40)))
    kinds = [error.kind for error in errors]
    assert kinds.count(ErrorKind.INVALID_REQUEST) == 10
    assert kinds.count(ErrorKind.RATE_LIMITED) == 30


@pytest.mark.parametrize(
    "peers", [("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::1", "2001:db8::ffff"), ("", "")]
)
async def test_one_address_can_try_a_hundred_times(accounts: Accounts, peers: tuple[str, str]) -> None:
    for number in range(100):
        error = await failure(accounts, f"u{number}@x", peer=peers[number % 2])
        assert error.kind is ErrorKind.INVALID_REQUEST
    assert (await failure(accounts, "another@x", peer=peers[0])).kind is ErrorKind.RATE_LIMITED
    assert (await failure(accounts, "another@x", peer="203.0.113.9")).kind is ErrorKind.INVALID_REQUEST


async def test_one_site_of_many_networks_can_try_four_hundred_times(accounts: Accounts) -> None:
    kinds = [(await failure(accounts, f"u{n}@x", peer=f"2001:db8:0:{n:x}::1")).kind for n in range(500)]
    assert kinds == [ErrorKind.INVALID_REQUEST] * 400 + [ErrorKind.RATE_LIMITED] * 100
    assert (await failure(accounts, "u@x", peer="2001:db8:1::1")).kind is ErrorKind.INVALID_REQUEST


async def test_the_limits_can_be_set(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    limits = SignInLimits(failures=2, by_address=3, by_account=4)
    guard = SignInGuard(DeviceCookies("s" * 32, accounts.clock), limits, accounts.clock)
    strict = SignIn(accounts.users_store, accounts.passwords, guard, limits, accounts.clock)

    async def kind(email: str, peer: str) -> ErrorKind:
        with pytest.raises(GatewayError) as caught:
            await strict.sign_in(email, "wrong", SignInClient(peer))
        return caught.value.kind

    assert [await kind(ann.email, HERE) for _ in range(3)] == [ErrorKind.INVALID_REQUEST] * 2 + [
        ErrorKind.RATE_LIMITED
    ]
    assert [await kind("b@x", HERE) for _ in range(2)] == [ErrorKind.INVALID_REQUEST, ErrorKind.RATE_LIMITED]
    assert [await kind(ann.email, f"10.0.0.{n}") for n in range(3)] == [ErrorKind.INVALID_REQUEST] * 2 + [
        ErrorKind.RATE_LIMITED
    ]


async def test_the_present_password_can_be_tried_ten_times(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    who = await accounts.actor(ann)
    for _ in range(10):
        with pytest.raises(GatewayError) as caught:
            await accounts.sign_in.confirm(who, "wrong")
        assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "password")
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in.confirm(who, "secret")
    assert (caught.value.kind, caught.value.retry_after) == (ErrorKind.RATE_LIMITED, 900)
    # It holds up no sign-in, and ends by itself.
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE)) == ann
    accounts.time += 900
    await accounts.sign_in.confirm(who, "secret")


async def test_a_key_confirms_no_password(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    key = replace(await accounts.actor(ann), kind=CredentialKind.KEY)
    with pytest.raises(GatewayError, match="sign in") as caught:
        await accounts.sign_in.confirm(key, "secret")
    assert caught.value.kind is ErrorKind.FORBIDDEN
    assert accounts.passwords.verified == []


async def test_success_is_not_counted(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    for _ in range(100):
        await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE))


async def test_weak_hashes_are_renewed(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await accounts.add_user(password="secret")
    monkeypatch.setattr(accounts.passwords, "needs_rehash", lambda known: True)

    async def stronger(password: str) -> str:
        return f"stronger:{password}"

    monkeypatch.setattr(accounts.passwords, "hash", stronger)
    await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE))
    assert accounts.memory.tables.passwords[ann.id] == "stronger:secret"
    assert (await accounts.users.get(ann.id)).token_version == 0


async def test_a_busy_gateway_does_not_count(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await accounts.add_user(password="secret")

    async def busy(known: object, password: str) -> bool:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot now")

    with monkeypatch.context() as patched:
        patched.setattr(accounts.passwords, "verify", busy)
        for _ in range(20):
            assert (await failure(accounts, ann.email)).kind is ErrorKind.UNAVAILABLE
    assert await accounts.sign_in.sign_in(ann.email, "secret", SignInClient(HERE)) == ann


async def test_passwords_can_be_switched_off(accounts: Accounts) -> None:
    ann = await accounts.add_user(password="secret")
    closed = SignIn(
        accounts.users_store,
        accounts.passwords,
        accounts.sign_in_guard,
        clock=accounts.clock,
        enabled=False,
    )
    with pytest.raises(GatewayError, match="ENABLE_PASSWORD_AUTH") as caught:
        await closed.sign_in(ann.email, "secret", SignInClient(HERE))
    assert caught.value.kind is ErrorKind.FORBIDDEN


def test_the_networks_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_TRACKED", 2)
    known = KnownNetworks()
    for name in ("a", "b", "a", "c"):
        known.add(name)
    assert [name in known for name in ("a", "b", "c")] == [True, False, True]
