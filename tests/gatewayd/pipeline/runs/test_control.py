"""Tests for gatewayd.pipeline.runs.control."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.storage.chat_runs import ADMIN, OWNER, STRANGER, asking, running_world


async def test_owner_and_administrator_see_the_tasks_of_a_chat_and_nobody_else() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [asyncio.Event()]
        started = await world.runs.start(asking(), OWNER)
        for actor, seen in ((OWNER, list(started.task_ids)), (ADMIN, list(started.task_ids)), (STRANGER, [])):
            assert [info.id for info in await world.stopping.of_chat(actor, "c")] == seen
        assert [info.id for info in await world.stopping.every()] == list(started.task_ids)


@pytest.mark.parametrize("actor", [OWNER, ADMIN])
async def test_task_is_stopped_once(actor: object) -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["so far", asyncio.Event()]
        started = await world.runs.start(asking(), OWNER)
        await world.until("chat:completion")
        assert await world.stopping.stop(actor, started.task_ids[0])  # type: ignore[arg-type]
        assert not await world.stopping.stop(OWNER, started.task_ids[0])
        assert world.message().content == "so far"


async def test_foreign_task_is_as_one_that_is_not_there() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [asyncio.Event()]
        started = await world.runs.start(asking(), OWNER)
        assert not await world.stopping.stop(STRANGER, started.task_ids[0])
        with pytest.raises(GatewayError) as caught:
            await world.stopping.stop_chat(STRANGER, "c")
        assert caught.value.kind is ErrorKind.NOT_FOUND
        assert world.tasks.find(started.task_ids[0]) is not None


async def test_tasks_of_the_gateway_itself_are_not_theirs_to_stop() -> None:
    async with running_world() as world:
        task_id = world.tasks.spawn("chore", asyncio.sleep(3600))
        assert not await world.stopping.stop(ADMIN, task_id)
        assert task_id in world.tasks.list()


async def test_all_tasks_of_a_chat_are_stopped() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [asyncio.Event()]
        await world.runs.start(asking(message_ids={"m": "a1", "n": "a2"}), OWNER)
        assert await world.stopping.stop_chat(OWNER, "c") == 2
        assert await world.stopping.stop_chat(OWNER, "c") == 0
        assert world.message("a1").done
        assert world.message("a2").done


async def test_chat_that_is_not_kept_belongs_to_who_runs_something_in_it() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [asyncio.Event()]
        await world.runs.start(asking(chat_id="local:x"), OWNER)
        assert await world.stopping.of_chat(STRANGER, "local:x") == []
        with pytest.raises(GatewayError):
            await world.stopping.stop_chat(STRANGER, "local:x")
        assert await world.stopping.stop_chat(OWNER, "local:x") == 1


async def test_two_stops_at_once_do_not_cut_off_the_last_write() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["so far", asyncio.Event()]
        started = await world.runs.start(asking(), OWNER)
        await world.until("chat:completion")
        stops = [world.stopping.stop(OWNER, started.task_ids[0]) for _ in range(5)]
        assert any(await asyncio.gather(*stops))
        assert (world.message().content, world.message().done) == ("so far", True)
        assert world.events.types("a")[-1] == "chat:active"
