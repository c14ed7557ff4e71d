import asyncio
import threading
from collections.abc import Iterator

import bcrypt
import pytest
from argon2 import extract_parameters

from gatewayd.accounts import passwords as module
from gatewayd.accounts.passwords import Passwords, is_known_hash
from gatewayd.errors import ErrorKind, GatewayError


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    made = Passwords()
    yield made
    made.close()


async def test_a_hash_fits_its_password_alone(passwords: Passwords) -> None:
    one, two = await passwords.hash("secret"), await passwords.hash("secret")
    assert one != two
    assert await passwords.verify(one, "secret")
    assert not await passwords.verify(one, "Secret")
    parameters = extract_parameters(one)
    assert parameters.type.name == "ID"
    assert (parameters.memory_cost, parameters.time_cost, parameters.parallelism) == (19456, 2, 1)


async def test_without_a_hash_nothing_fits_and_the_same_work_is_done(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    real = passwords._fits
    monkeypatch.setattr(passwords, "_fits", lambda known, given: done.append(known) or real(known, given))
    assert not await passwords.verify(None, "secret")
    assert [known.startswith("$argon2id$v=19$m=19456,t=2,p=1$") for known in done] == [True]


async def test_what_is_no_hash_fits_nothing(passwords: Passwords) -> None:
    assert not await passwords.verify("*", "secret")


@pytest.mark.parametrize("bad", ["", "x" * 4097, "\ud800"])
async def test_unusable_passwords_are_refused(passwords: Passwords, bad: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await passwords.hash(bad)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "password")
    assert not await passwords.verify(None, bad)


async def test_weaker_hashes_are_recognised(passwords: Passwords) -> None:
    weak = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$YWFhYWFhYWFhYWFhYWFhYQ"
    assert passwords.needs_rehash(weak)
    assert not passwords.needs_rehash(await passwords.hash("secret"))


async def test_hashing_runs_beside_the_loop(passwords: Passwords) -> None:
    names: list[str] = []
    await passwords._run(lambda: names.append(threading.current_thread().name))
    assert names[0].startswith("passwords")


async def test_a_crowd_is_turned_away(passwords: Passwords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 1)
    release = threading.Event()
    blocked = asyncio.get_running_loop().create_task(passwords._run(release.wait))
    await asyncio.sleep(0)
    with pytest.raises(GatewayError) as caught:
        await passwords.hash("secret")
    release.set()
    await blocked
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await passwords.hash("secret")


def bcrypt_hash(password: str, prefix: bytes = b"2b") -> str:
    """Return a hash as Open WebUI stores it, with the least work."""
    return bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(4)).decode().replace("2b", prefix.decode(), 1)


@pytest.mark.parametrize("password", ["secret", "Pässwört", "x" * 100])
async def test_a_hash_of_bcrypt_fits_its_password_and_wants_to_be_replaced(
    passwords: Passwords, password: str
) -> None:
    for prefix in (b"2b", b"2a"):
        known = bcrypt_hash(password, prefix)
        assert is_known_hash(known)
        assert await passwords.verify(known, password)
        assert not await passwords.verify(known, f"not {password}")
        assert passwords.needs_rehash(known)


async def test_a_damaged_hash_of_bcrypt_fits_nothing(passwords: Passwords) -> None:
    assert not await passwords.verify("$2b$12$too-short", "secret")
    assert not is_known_hash("plain")


async def test_after_a_check_of_bcrypt_no_failure_is_faster(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    assert not await passwords.verify(None, "secret")
    assert await passwords.verify(bcrypt_hash("secret"), "secret")
    monkeypatch.setattr(passwords, "_bcrypt_seconds", 100.0)
    assert not await passwords.verify(None, "secret")
    assert await passwords.verify(await passwords.hash("secret"), "secret")
    assert pauses[0] <= 0
    assert 90 < pauses[1] <= 100
    assert len(pauses) == 2


async def test_without_the_extra_the_error_names_it(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = bcrypt_hash("secret")
    monkeypatch.setattr(module, "find_library", lambda _: None)
    with pytest.raises(GatewayError, match=r"gatewayd\[open-webui\]") as caught:
        await passwords.verify(known, "secret")
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
