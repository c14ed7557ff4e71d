import asyncio
import threading
from collections.abc import Iterator

import pytest
from argon2 import extract_parameters

from gatewayd.accounts import passwords as module
from gatewayd.accounts.passwords import Passwords
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
