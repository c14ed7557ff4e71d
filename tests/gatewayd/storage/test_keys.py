import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.keys import TortoiseKeys, TortoiseRevocations
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import key, user
from tests.gatewayd.storage.conftest import Stores

FULL = key("k1", "u1", name="Ключ", expires_at=2**40, last_used_at=3, created_at=1)


@pytest.fixture
async def owned(stores: Stores) -> Stores:
    """Return the stores with two users in them."""
    for user_id in ("u1", "u2"):
        await stores.users.add(user(user_id), None)
    return stores


@pytest.fixture
async def keys(database: Database) -> TortoiseKeys:
    """Return the store on a database with a user in it."""
    for user_id in ("u1", "u2"):
        await TortoiseUsers().add(user(user_id), None)
    return TortoiseKeys()


async def test_a_key_comes_back_as_it_was(owned: Stores) -> None:
    await owned.keys.add(FULL)
    assert await owned.keys.find("k1") == FULL
    assert await owned.keys.find_by_digest(FULL.digest) == FULL
    assert await owned.keys.list() == [FULL]
    assert await owned.keys.remove("k1")
    assert await owned.keys.list() == []


async def test_what_is_absent_is_none_or_false(owned: Stores) -> None:
    assert await owned.keys.find("k1") is None
    assert await owned.keys.find_by_digest("d") is None
    assert await owned.keys.list(user_id="u1") == []
    assert not await owned.keys.remove("k1")


async def test_a_name_is_taken_for_its_user_in_any_case(owned: Stores) -> None:
    await owned.keys.add(FULL)
    with pytest.raises(GatewayError) as caught:
        await owned.keys.add(key("k2", "u1", name="КЛЮЧ"))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.CONFLICT, "name")
    await owned.keys.add(key("k2", "u2", name="КЛЮЧ"))


async def test_keys_are_listed_oldest_first(owned: Stores) -> None:
    for key_id, user_id, at in (("k3", "u1", 1), ("k1", "u1", 2), ("k2", "u2", 0)):
        await owned.keys.add(key(key_id, user_id, created_at=at))
    assert [each.id for each in await owned.keys.list()] == ["k2", "k3", "k1"]
    assert [each.id for each in await owned.keys.list(user_id="u1")] == ["k3", "k1"]


async def test_touch_writes_many_and_never_goes_back(owned: Stores) -> None:
    await owned.keys.add(key("k1", "u1", created_at=1))
    await owned.keys.add(key("k2", "u1", created_at=2, last_used_at=10))
    await owned.keys.touch({"k2": 9, "k1": 5, "gone": 1})
    assert [each.last_used_at for each in await owned.keys.list()] == [5, 10]
    await owned.keys.touch({"k2": 11})
    assert [each.last_used_at for each in await owned.keys.list()] == [5, 11]


async def test_a_digest_belongs_to_one_key(keys: TortoiseKeys) -> None:
    await keys.add(FULL)
    with pytest.raises(GatewayError) as caught:
        await keys.add(key("k2", "u2", digest=FULL.digest))
    assert caught.value.kind is ErrorKind.CONFLICT


async def test_a_key_needs_its_user(keys: TortoiseKeys) -> None:
    with pytest.raises(GatewayError, match="does not exist") as caught:
        await keys.add(key("k1", "gone"))
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await keys.list() == []


@pytest.mark.parametrize(
    ("field", "value"), [("name", "\x00"), ("name", "n" * 256), ("expires_at", 2**63), ("digest", "d" * 65)]
)
async def test_what_cannot_be_stored_is_refused_by_name(
    keys: TortoiseKeys, field: str, value: object
) -> None:
    with pytest.raises(GatewayError) as caught:
        await keys.add(key("k1", "u1", **{field: value}))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)


async def test_what_cannot_be_stored_is_not_found(keys: TortoiseKeys) -> None:
    assert await keys.find("\x00") is None
    assert await keys.find_by_digest("d" * 65) is None
    assert await keys.list(user_id="\ud800") == []
    assert not await keys.remove("\x00")
    await keys.touch({"\x00": 1})


async def test_a_revoked_token_is_known(stores: Stores) -> None:
    await stores.revocations.add("j1", "u1", 10)
    assert await stores.revocations.contains("j1")
    assert not await stores.revocations.contains("j2")


async def test_revoking_twice_is_no_error(stores: Stores) -> None:
    await stores.revocations.add("j1", "u1", 10)
    await stores.revocations.add("j1", "u1", 10)
    assert await stores.revocations.prune(11) == 1


async def test_only_expired_tokens_are_forgotten(stores: Stores) -> None:
    for number in (9, 10, 11):
        await stores.revocations.add(f"j{number}", "u1", number)
    assert await stores.revocations.prune(10) == 1
    assert not await stores.revocations.contains("j9")
    assert await stores.revocations.contains("j10")
    assert await stores.revocations.prune(10) == 0


async def test_what_cannot_be_stored_was_not_revoked(database: Database) -> None:
    assert not await TortoiseRevocations().contains("\x00")
