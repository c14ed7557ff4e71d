"""Tests for gatewayd.chats.service; the tests of its routes cover the rest."""

import asyncio
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.chats.json_limits import MAX_VALUES
from gatewayd.chats.records import ChatQuery, Message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskOwner
from tests.fakes.storage.chats_site import ChatHouse, document, node


class Trial(ChatHouse):
    actor: Actor

    async def open(self) -> str:
        self.actor = await self.accounts.actor(await self.accounts.add_user())
        return str((await self.chats.create(self.actor, document()))["id"])


@pytest.fixture
def trial() -> Trial:
    return Trial()


async def waiting(started: asyncio.Event) -> None:
    started.set()
    await asyncio.Event().wait()


async def test_deleting_stops_what_runs(trial: Trial) -> None:
    chat_id = await trial.open()
    other_id = (await trial.chats.create(trial.actor, document()))["id"]
    for each in (chat_id, other_id, chat_id):
        started = asyncio.Event()
        trial.tasks.spawn("answer", waiting(started), TaskOwner(trial.actor.user_id, each))
        await started.wait()
    await trial.chats.remove(trial.actor, chat_id)
    assert [task.purpose.chat_id for task in trial.tasks.started()] == [other_id]
    assert await trial.chats.remove_all(trial.actor) == 1
    assert trial.tasks.started() == []


async def test_a_foreign_chat_is_not_stopped(trial: Trial) -> None:
    chat_id = await trial.open()
    started = asyncio.Event()
    trial.tasks.spawn("answer", waiting(started), TaskOwner(trial.actor.user_id, chat_id))
    await started.wait()
    other = await trial.accounts.actor(await trial.accounts.add_user("other"))
    with pytest.raises(GatewayError):
        await trial.chats.remove(other, chat_id)
    assert len(trial.tasks.started()) == 1
    await trial.tasks.close()


async def test_appending_does_not_read_the_whole_chat(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_id = await trial.open()

    async def refuse(_: str) -> Any:
        raise AssertionError("the whole chat was read")

    monkeypatch.setattr(trial.messages, "list", refuse)
    made = await trial.chats.put_message(trial.actor, chat_id, "m", {"content": "x"})
    assert made == Message("m", "a1", "user", "x", timestamp=trial.accounts.time)


async def test_a_branch(trial: Trial) -> None:
    chat_id = await trial.open()
    shown = await trial.chats.branch(chat_id, "a1")
    assert [(one["id"], one["parentId"]) for one in shown] == [("q1", None), ("a1", "q1")]
    assert await trial.chats.branch(chat_id, "gone") == []


async def test_changes_at_the_same_time_are_all_kept(trial: Trial) -> None:
    chat_id = await trial.open()
    changes = [
        {"history": {"messages": {f"m{number}": node(f"m{number}", "a1")}}, f"k{number}": number}
        for number in range(10)
    ]
    await asyncio.gather(*(trial.chats.change(trial.actor, chat_id, change) for change in changes))
    record = await trial.chats.get(trial.actor, chat_id)
    assert len(record["chat"]["history"]["messages"]) == 12
    assert [record["chat"][f"k{number}"] for number in range(10)] == list(range(10))


async def test_lists(trial: Trial) -> None:
    chat_id = await trial.open()
    elements, total = await trial.chats.list(trial.actor, ChatQuery(user_id="somebody else"))
    assert ([element["id"] for element in elements], total) == ([chat_id], 1)
    with pytest.raises(GatewayError, match="cannot sort"):
        await trial.chats.list(trial.actor, ChatQuery(sort_by="user_id"))


@pytest.mark.parametrize("message_id", ["", "x" * 256, "a\0"])
async def test_bad_ids_of_messages(trial: Trial, message_id: str) -> None:
    chat_id = await trial.open()
    with pytest.raises(GatewayError) as caught:
        await trial.chats.put_message(trial.actor, chat_id, message_id, {"content": "x"})
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "message_id")
    with pytest.raises(GatewayError) as caught:
        await trial.chats.remove_message(trial.actor, chat_id, message_id)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_the_chats_of_all_are_for_who_may_see_them() -> None:
    house = Trial()
    await house.open()
    boss = await house.accounts.actor(await house.accounts.add_user("boss", Role.ADMIN))
    await house.chats.create(boss, document("Bees"))
    found, total = await house.chats.find_all(boss, ChatQuery(sort_by="title", descending=False))
    assert ([chat.title for chat in found], total) == (["Bees", "Birds"], 2)
    with pytest.raises(GatewayError, match="cannot show chats of other users"):
        await house.chats.find_all(house.actor, ChatQuery(user_id=house.actor.user_id))


async def test_whose_chat_it_is(trial: Trial) -> None:
    assert await trial.chats.find_owner(await trial.open()) == trial.actor.user_id
    assert await trial.chats.find_owner("none") is None


async def test_what_a_deletion_has_left_of_a_chat_is_not_copied(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_id = await trial.open()
    inner = trial.messages.list

    async def partly(wanted: str) -> Any:
        found = await inner(wanted)
        if wanted == chat_id:
            await trial.chats.remove(trial.actor, chat_id)
            return found[:1]
        return found

    monkeypatch.setattr(trial.messages, "list", partly)
    with pytest.raises(GatewayError) as caught:
        await trial.chats.copy(trial.actor, chat_id)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert (await trial.chats.list(trial.actor, ChatQuery()))[1] == 0


async def test_changes_together_stay_within_the_values_that_an_import_takes(trial: Trial) -> None:
    chat_id = await trial.open()
    half = [0] * (MAX_VALUES // 2)
    changes = (
        lambda more: trial.chats.put_message(trial.actor, chat_id, "a1", more),
        lambda more: trial.chats.change(trial.actor, chat_id, {"history": {"messages": {"u1": more}}}),
        lambda more: trial.chats.change(trial.actor, chat_id, more),
    )
    for change in changes:
        await change({"a": half})
        for more in ({"b": half}, {"a": half, "b": half[:-1]}):
            with pytest.raises(GatewayError, match="more than 20000 values") as caught:
                await change(more)
            assert caught.value.kind is ErrorKind.INVALID_REQUEST
        await change({"a": None, "b": half})
    record = await trial.chats.record(chat_id)
    assert (await trial.chats.create(trial.actor, record["chat"]))["chat"]["b"] == half
