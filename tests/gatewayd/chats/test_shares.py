"""Tests for gatewayd.chats.shares."""

from tests.fakes.storage.chats_site import ChatHouse, document


async def test_what_others_see_is_how_it_was() -> None:
    house = ChatHouse()
    owner = await house.accounts.actor(await house.accounts.add_user())
    chat_id = (await house.chats.create(owner, document()))["id"]
    await house.chats.toggle_pinned(owner, chat_id)
    await house.tags.add(owner, chat_id, "secret")
    record = await house.sharing.share(owner, chat_id)
    seen = await house.sharing.get(record["share_id"])
    assert (seen["id"], seen["pinned"], seen["meta"]) == (record["share_id"], False, {})
    assert seen["chat"] == record["chat"]
    await house.chats.remove_message(owner, chat_id, "a1")
    assert await house.sharing.get(record["share_id"]) == seen
