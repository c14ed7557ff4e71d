"""Tests for gatewayd.chats.transfer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.chats import folder_paths
from gatewayd.chats.folders import FolderFields
from gatewayd.chats.records import MAX_ITEMS, ChatQuery
from gatewayd.chats.transfer import MAX_IMPORTED_CHATS
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.time_slices import LoopPacer
from tests.fakes.storage.chats_site import ChatHouse, document

MAY_ALL = {"chat": {"import": True, "export": True}, "features": {"folders": True}}


class Listed:
    """`Forms` that are all there."""

    def __init__(self, forms: list[Any]) -> None:
        self._forms = forms

    def __len__(self) -> int:
        return len(self._forms)

    async def each(self) -> AsyncIterator[Any]:
        for form in self._forms:
            yield form


async def test_what_goes_out_comes_in() -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    await house.chats.create(actor, document())
    records = [record async for record in await house.transfer.give_all(actor, ChatQuery())]
    made = await house.transfer.take(actor, Listed(records))
    taken = [record async for record in house.transfer.records(made)]
    assert [record["chat"] for record in taken] == [record["chat"] for record in records]
    assert (taken[0]["updated_at"], taken[0]["archived"]) == (records[0]["updated_at"], False)


async def test_the_same_import_again_makes_other_chats_and_a_check_makes_none() -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    forms = Listed([{"chat": document(), "meta": {"tags": ["A b"]}}] * 2)
    checked = await house.transfer.check(actor, forms)
    assert [(chat.title, chat.tags) for chat in checked] == [("Birds", ("a_b",))] * 2
    assert (await house.chats.list(actor, ChatQuery()))[1] == 0
    made = [*await house.transfer.take(actor, forms), *await house.transfer.take(actor, forms)]
    found, total = await house.chats.list(actor, ChatQuery())
    assert {chat.id for chat in made} == {chat["id"] for chat in found}
    assert total == 4


async def test_chats_come_back_into_their_folders() -> None:
    house = ChatHouse()
    owner, other = [await house.accounts.actor(await house.accounts.add_user(name)) for name in ("a", "b")]
    owner, other = (replace(each, permissions=MAY_ALL) for each in (owner, other))
    work = await house.folders.create(owner, FolderFields(name="Work"))
    year = await house.folders.create(owner, FolderFields(name="2024", parent_id=work.id))
    await house.chats.create(owner, document(), year.id)
    await house.chats.create(owner, document())
    records = [record async for record in await house.transfer.give_all(owner, ChatQuery())]
    assert sorted(record.get("folder_path", []) for record in records) == [[], ["Work", "2024"]]
    await house.folders.create(other, FolderFields(name="work"))
    await house.transfer.check(other, Listed(records))
    assert len(await house.folders.list(other)) == 1
    for actor in (other, other, owner):
        made = await house.transfer.take(actor, Listed(records))
        folders = {folder.id: folder for folder in await house.folders.list(actor)}
        (placed,) = [folders[chat.folder_id] for chat in made if chat.folder_id]
        assert (placed.name, folders[placed.parent_id or ""].name.lower()) == ("2024", "work")
        assert len(folders) == 2
    assert placed.id == year.id
    without = replace(other, permissions={"chat": MAY_ALL["chat"]})
    assert {chat.folder_id for chat in await house.transfer.take(without, Listed(records))} == {None}


@pytest.mark.parametrize(
    "path",
    ["Work", [1], [""], ["a\x00"], ["x" * 10_000], ["a"] * 17, {"a": 1}],
    ids=lambda path: str(path)[:9],
)
async def test_bad_folders(path: Any) -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    with pytest.raises(GatewayError) as caught:
        await house.transfer.check(actor, Listed([{"chat": document(), "folder_path": path}]))
    assert caught.value.param == "chats.0.folder_path"


async def test_an_import_names_a_bounded_number_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_paths, "MAX_FOLDERS", 3)
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    forms = [{"chat": document(), "folder_path": [name]} for name in "abc"]
    assert len(await house.transfer.take(actor, Listed(forms))) == 3
    for more in (["d"], ["a", "d"]):
        with pytest.raises(GatewayError) as caught:
            await house.transfer.take(actor, Listed([{**forms[0], "folder_path": more}]))
        assert caught.value.kind is ErrorKind.TOO_LARGE
    with pytest.raises(GatewayError, match="more than 3 folders"):
        await house.transfer.check(actor, Listed([*forms, {**forms[0], "folder_path": ["d"]}]))


async def test_a_large_message_is_refused_before_anything_is_stored() -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    large = document()
    large["history"]["messages"]["a1"]["files"] = [1] * (MAX_ITEMS + 1)
    for method in (house.transfer.check, house.transfer.take):
        with pytest.raises(GatewayError) as caught:
            await method(actor, Listed([{"chat": document()}, {"chat": large}]))
        assert caught.value.kind is ErrorKind.TOO_LARGE
    assert (await house.chats.list(actor, ChatQuery()))[1] == 0


async def test_a_chat_that_is_deleted_meanwhile_is_left_out() -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    made = [await house.chats.create(actor, document()) for _ in range(2)]
    records = await house.transfer.give_all(actor, ChatQuery())
    first = await anext(records)
    (gone,) = [record["id"] for record in made if record["id"] != first["id"]]
    await house.chats.remove(actor, gone)
    assert [record async for record in records] == []


@pytest.mark.parametrize("forms", [None, {}, Listed([{"chat": {}}] * (MAX_IMPORTED_CHATS + 1))])
async def test_bad_lists(forms: Any) -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    with pytest.raises(GatewayError, match="cannot accept chats"):
        await house.transfer.take(actor, forms)


async def test_copies_have_titles_that_can_be_kept() -> None:
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    made = await house.chats.create(actor, document("x" * 1000))
    copy = await house.transfer.clone(actor, made["id"])
    assert (len(copy["title"]), copy["chat"]["branchPointMessageId"]) == (1000, "a1")


async def test_only_an_administrator_imports_for_others() -> None:
    house = ChatHouse()
    ann = await house.accounts.actor(await house.accounts.add_user())
    boss = await house.accounts.actor(await house.accounts.add_user("boss", Role.ADMIN))
    (made,) = await house.transfer.take(boss, Listed([{"chat": document()}]), ann.user_id)
    assert made.user_id == ann.user_id
    (own,) = await house.transfer.take(ann, Listed([{"chat": document()}]), ann.user_id)
    assert own.user_id == ann.user_id
    with pytest.raises(GatewayError, match="cannot import chats for another user"):
        await house.transfer.take(ann, Listed([{"chat": document()}]), boss.user_id)


async def test_everything_may_be_that_of_one_user() -> None:
    house = ChatHouse()
    boss = await house.accounts.actor(await house.accounts.add_user("boss", Role.ADMIN))
    for name in ("ann", "bob"):
        actor = await house.accounts.actor(await house.accounts.add_user(name))
        await house.chats.create(actor, document(name))

    async def titles(user_id: str | None = None) -> list[str]:
        return sorted([each["title"] async for each in await house.transfer.give_everything(boss, user_id)])

    assert await titles() == ["ann", "bob"]
    assert await titles(actor.user_id) == ["bob"]


async def test_others_are_served_while_much_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopPacer, "seconds", 0.0)
    house = ChatHouse()
    actor = await house.accounts.actor(await house.accounts.add_user())
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    # Nothing is stored: the last one is wrong.
    with pytest.raises(GatewayError, match=r"chats\.50\.chat"):
        await house.transfer.take(actor, Listed([{"chat": document()}] * 50 + [{"chat": 5}]))
    counting.cancel()
    assert turns >= 50
