"""Tests for gatewayd.chats.access."""

import pytest

from gatewayd.accounts.records import Role
from gatewayd.chats.access import require_chat
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.storage.chats_site import ChatHouse, document


@pytest.mark.parametrize("admin_access", [True, False])
async def test_who_may_what(admin_access: bool) -> None:
    house = ChatHouse(admin_access=admin_access)
    access = house.chats.access
    owner, other = [await house.accounts.actor(await house.accounts.add_user(name)) for name in ("a", "b")]
    admin = await house.accounts.actor(await house.accounts.add_user("c", Role.ADMIN))
    chat_id = (await house.chats.create(owner, document()))["id"]
    assert (
        (await access.owned(owner, chat_id)).id == (await access.get_changeable(owner, chat_id)).id == chat_id
    )
    with pytest.raises(GatewayError, match="cannot find chat"):
        await access.owned(other, chat_id)
    assert access.sees_all(admin) is admin_access
    assert not access.sees_all(owner)
    with pytest.raises(GatewayError) as caught:
        await access.get_changeable(admin, chat_id)
    assert caught.value.kind is (ErrorKind.FORBIDDEN if admin_access else ErrorKind.NOT_FOUND)
    for actor in (owner, other) if admin_access else (owner, other, admin):
        with pytest.raises(GatewayError) as caught:
            access.require_all(actor)
        assert caught.value.kind is ErrorKind.FORBIDDEN


@pytest.mark.parametrize("chat_id", ["", "x" * 256, "a\0", "\ud800", "a\nb"])
async def test_odd_ids(chat_id: str) -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    for find in (house.chats.get(actor, chat_id), house.chats.access.shared(chat_id)):
        with pytest.raises(GatewayError) as caught:
            await find
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_permissions_do_not_bind_administrators() -> None:
    house = ChatHouse()
    user = await house.accounts.actor(await house.accounts.add_user())
    admin = await house.accounts.actor(await house.accounts.add_user("c", Role.ADMIN))
    for actor in (user, admin):
        actor.permissions["chat"]["share"] = False
    require_chat(admin, "share")
    with pytest.raises(GatewayError, match=r"chat\.share"):
        require_chat(user, "share")


def test_the_services_share_their_access() -> None:
    services = ChatHouse().services
    assert services.tags._access is services.chats.access
