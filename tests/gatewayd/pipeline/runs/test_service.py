"""Tests for gatewayd.pipeline.runs.service."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gatewayd.chats.records import Message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.runs.service import StartedRun
from gatewayd.tasks import TaskOwner
from tests.fakes.storage.chat_runs import ADMIN, OWNER, STRANGER, asking, running_world
from tests.fakes.storage.memory_chats import MemoryMessages

QUESTION = {"id": "q2", "parentId": "q", "content": "And then?"}


async def test_task_is_listed_before_the_reply_and_gone_after_the_last_write() -> None:
    async with running_world() as world:
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = [go_on, "hello"]
        started = await world.runs.start(asking(), OWNER)
        assert (started.chat_id, started.message_ids) == ("c", ("a",))
        listed = world.tasks.started(chat_id="c")
        assert [info.id for info in listed] == list(started.task_ids)
        assert (listed[0].purpose.user_id, listed[0].purpose.message_id) == ("owner", "a")
        go_on.set()
        await world.ended()
        assert world.message().done


async def test_several_answers_run_at_once() -> None:
    async with running_world() as world:
        both = asyncio.Barrier(2)
        world.pipeline.scripts = {"m": [both.wait, "of m"], "n": [both.wait, "of n"]}
        request = asking(
            message_ids=[{"model_id": "m", "message_id": "a1"}, {"model_id": "n", "message_id": "a2"}]
        )
        started = await world.runs.start(request, OWNER)
        assert len(set(started.task_ids)) == 2
        await asyncio.wait_for(world.ended(), 5)
        assert (world.message("a1").content, world.message("a2").content) == ("of m", "of n")
        assert (world.message("a1").parent_id, world.message("a1").attributes["model"]) == ("q", "m")
        assert [request.options["id"] for request in world.pipeline.asked] == ["a1", "a2"]


async def test_several_answers_do_not_share_what_filters_change() -> None:
    async with running_world() as world:
        await world.runs.start(asking(message_ids={"m": "a1", "n": "a2"}), OWNER)
        await world.ended()
        first, second = world.pipeline.asked
        first.body["messages"][0]["content"] = "changed"
        assert second.body["messages"][0]["content"] == "What is it?"


@pytest.mark.parametrize("chat_id", ["local:x", "temporary:x", "channel:x"])
async def test_chat_that_is_not_kept_is_answered_by_events_alone(chat_id: str) -> None:
    async with running_world() as world:
        await world.runs.start(asking(chat_id=chat_id), OWNER)
        await world.ended()
        done = [event for event in world.events.events("a") if event["data"].get("done")]
        assert done[0]["data"]["content"] == "hello"
        assert list(world.state.messages) == ["c"]


@pytest.mark.parametrize("session_id", ["s", ""])
@pytest.mark.parametrize("actor", [STRANGER, ADMIN])
async def test_foreign_chat_does_not_exist(session_id: str, actor: Any) -> None:
    async with running_world() as world:
        with pytest.raises(GatewayError) as caught:
            await world.runs.answer(asking(session_id=session_id), actor)
        assert caught.value.kind is ErrorKind.NOT_FOUND
        assert (world.tasks.started(), world.pipeline.asked) == ([], [])
        assert "a" not in world.state.messages["c"]


async def test_foreign_chat_without_a_message_does_not_exist() -> None:
    async with running_world() as world:
        with pytest.raises(GatewayError) as caught:
            await world.runs.answer(asking(id=None, session_id=None), STRANGER)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_unknown_chat_is_refused_to_who_does_not_wait() -> None:
    async with running_world() as world:
        with pytest.raises(GatewayError) as caught:
            await world.runs.answer(asking(chat_id="gone"), OWNER)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_unknown_chat_is_no_chat_to_who_waits() -> None:
    async with running_world() as world:
        answer = await world.runs.answer(asking(chat_id="gone", session_id="", stream=False), OWNER)
        assert not isinstance(answer, StartedRun)
        assert answer.completion is not None
        assert list(world.state.messages) == ["c"]
        assert world.events.told == []


async def test_model_that_is_not_there_is_refused_before_anything_is_kept() -> None:
    async with running_world() as world:
        with pytest.raises(GatewayError) as caught:
            await world.runs.start(asking(model="gone"), OWNER)
        assert caught.value.code == "model_not_found"
        assert "a" not in world.state.messages["c"]


async def test_without_a_chat_nothing_is_kept() -> None:
    async with running_world() as world:
        answer = await world.runs.answer(asking(chat_id=None, stream=False), OWNER)
        assert not isinstance(answer, StartedRun)
        assert world.events.told == []


async def test_question_is_kept_and_the_history_is_asked_with() -> None:
    async with running_world() as world:
        shown = '<details type="reasoning" done="true">\n<summary>x</summary>\n&gt; y\n</details>\nIt is.'
        world.state.messages["c"]["a1"] = Message("a1", "q", "assistant", content=shown)
        request = asking(user_message={**QUESTION, "parentId": "a1"})
        del request.body["messages"]
        await world.runs.start(request, OWNER)
        await world.ended()
        assert world.pipeline.asked[0].body["messages"] == [
            {"role": "user", "content": "What is it?"},
            {"role": "assistant", "content": "It is."},
            {"role": "user", "content": "And then?"},
        ]
        assert (world.message("q2").content, world.message("q2").parent_id) == ("And then?", "a1")
        assert world.message("a").parent_id == "q2"


async def test_messages_of_the_request_win_over_the_history() -> None:
    async with running_world() as world:
        await world.runs.start(asking(user_message=QUESTION), OWNER)
        await world.ended()
        assert world.pipeline.asked[0].body["messages"] == [{"role": "user", "content": "What is it?"}]


async def test_question_alone_is_asked_where_nothing_is_kept() -> None:
    async with running_world() as world:
        request = asking(chat_id="local:x", user_message=QUESTION)
        del request.body["messages"]
        await world.runs.start(request, OWNER)
        await world.ended()
        assert world.pipeline.asked[0].body["messages"] == [{"role": "user", "content": "And then?"}]


async def test_question_without_content_ends_the_answer_that_began() -> None:
    async with running_world() as world:
        world.state.messages["c"].clear()
        request = asking(user_message={"id": "q2", "content": ""})
        del request.body["messages"]
        with pytest.raises(GatewayError) as caught:
            await world.runs.start(request, OWNER)
        assert caught.value.param == "user_message"
        assert world.message("a").done
        assert "no content" in world.message("a").attributes["error"]["content"]
        assert (world.tasks.started(), world.room.taken) == ([], [])


async def test_chat_is_made_for_a_session_that_follows_nothing() -> None:
    async with running_world() as world:
        request = asking(chat_id=None, user_message={"id": "q", "content": "What is it?"})
        request.options["parent_id"] = None
        started = await world.runs.answer(request, OWNER)
        assert isinstance(started, StartedRun)
        await world.ended()
        made = world.state.chats[started.chat_id]
        assert (made.user_id, made.head) == ("owner", {"models": ["m"]})
        assert world.message("a", started.chat_id).content == "hello"
        assert world.message("a", started.chat_id).parent_id == "q"


async def test_no_chat_is_made_for_a_request_that_is_refused() -> None:
    async with running_world() as world:
        for wrong in ({"model": "gone"}, {"user_message": "nonsense"}):
            request = asking(**{"chat_id": None, **wrong})  # type: ignore[arg-type]
            request.options["parent_id"] = None
            with pytest.raises(GatewayError):
                await world.runs.answer(request, OWNER)
        assert list(world.state.chats) == ["c"]


async def test_extra_prompt_is_asked_with_and_not_kept() -> None:
    async with running_world() as world:
        await world.runs.start(asking(regeneration_prompt="Shorter."), OWNER)
        await world.ended()
        asked = world.pipeline.asked[0].body["messages"]
        assert asked[-1] == {"role": "user", "content": "Shorter."}
        assert sorted(world.state.messages["c"]) == ["a", "q"]


async def test_new_answer_takes_the_place_of_the_one_that_runs() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["old", asyncio.Event()]
        first = await world.runs.start(asking(), OWNER)
        await world.until("chat:completion")
        world.pipeline.scripts[""] = ["new"]
        second = await world.runs.start(asking(), OWNER)
        assert world.tasks.find(first.task_ids[0]) is None
        assert world.tasks.find(second.task_ids[0]) is not None
        await world.ended()
        assert world.message().content == "new"


async def test_new_answer_leaves_other_work_at_its_message() -> None:
    async with running_world() as world:
        action = world.tasks.spawn("action", asyncio.sleep(3600), TaskOwner("owner", "c", "a"))
        started = await world.runs.start(asking(), OWNER)
        while world.tasks.find(started.task_ids[0]) is not None:
            await asyncio.sleep(0)
        assert world.tasks.find(action) is not None


async def test_two_answers_that_begin_at_once_do_not_write_one_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put = MemoryMessages.put

    async def slow(store: MemoryMessages, chat_id: str, messages: Sequence[Message]) -> None:
        await asyncio.sleep(0)
        await put(store, chat_id, messages)

    monkeypatch.setattr(MemoryMessages, "put", slow)
    async with running_world() as world:
        replies = await asyncio.gather(
            world.runs.start(asking(), OWNER), world.runs.start(asking(), OWNER), return_exceptions=True
        )
        refused = [reply for reply in replies if isinstance(reply, GatewayError)]
        assert [error.kind for error in refused] == [ErrorKind.CONFLICT]
        await world.ended()


async def test_who_waits_gets_the_stream_and_the_message_is_kept_before_its_end() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["Hel", "lo"]
        answer = await world.runs.follow(asking(session_id=""), OWNER)
        assert answer.chunks is not None
        texts = [chunk.events[0]["choices"][0]["delta"]["content"] async for chunk in answer.chunks]
        assert texts == ["Hel", "lo"]
        assert (world.message().content, world.message().done) == ("Hello", True)


async def test_who_waits_gets_the_completion_after_it_is_kept() -> None:
    async with running_world() as world:
        answer = await world.runs.follow(asking(session_id="", stream=False), OWNER)
        assert answer.completion is not None
        assert answer.completion.body["choices"][0]["message"]["content"] == "hello"
        assert world.message().content == "hello"


async def test_who_leaves_does_not_end_the_answer() -> None:
    async with running_world() as world:
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = ["one", go_on, "two"]
        answer = await world.runs.follow(asking(session_id=""), OWNER)
        assert answer.chunks is not None
        await anext(answer.chunks)
        await answer.chunks.aclose()
        go_on.set()
        await world.ended()
        assert (world.message().content, world.message().done) == ("onetwo", True)


async def test_who_leaves_before_the_first_chunk_does_not_end_the_answer() -> None:
    async with running_world() as world:
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = [go_on, "hello"]
        caller = asyncio.ensure_future(world.runs.follow(asking(session_id="", stream=False), OWNER))
        await world.until("chat:active")
        caller.cancel()
        go_on.set()
        await world.ended()
        assert world.message().content == "hello"


async def test_who_leaves_while_it_begins_leaves_no_message_that_never_ends() -> None:
    async with running_world() as world:
        caller = asyncio.ensure_future(world.runs.start(asking(), OWNER))
        await asyncio.sleep(0)
        caller.cancel()
        while "a" not in world.state.messages["c"] or world.tasks.list():
            await asyncio.sleep(0)
        assert world.message().done


async def test_failure_before_the_first_chunk_is_raised_to_who_waits() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [
            GatewayError(ErrorKind.RATE_LIMITED, "cannot, too often", retry_after=3)
        ]
        with pytest.raises(GatewayError) as caught:
            await world.runs.follow(asking(session_id=""), OWNER)
        assert caught.value.retry_after == 3
        assert world.message().attributes["error"] == {"content": "cannot, too often"}


async def test_failure_after_the_first_chunk_is_raised_from_the_stream() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["one", GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on")]
        answer = await world.runs.follow(asking(session_id=""), OWNER)
        assert answer.chunks is not None
        await anext(answer.chunks)
        with pytest.raises(GatewayError):
            await anext(answer.chunks)


async def test_stop_ends_the_stream_of_who_waits() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["one", asyncio.Event()]
        answer = await world.runs.follow(asking(session_id=""), OWNER)
        assert answer.chunks is not None
        await anext(answer.chunks)
        await world.tasks.stop(world.tasks.started()[0].id)
        with pytest.raises(GatewayError):
            await anext(answer.chunks)


async def test_two_hundred_runs_are_all_kept() -> None:
    async with running_world() as world:
        gate = asyncio.Event()
        world.pipeline.scripts[""] = ["a", gate, "b"]
        numbers = range(200)
        await asyncio.gather(*(world.runs.start(asking(id=f"a{number}"), OWNER) for number in numbers))
        assert len(world.tasks.started(chat_id="c")) == 200
        gate.set()
        await asyncio.wait_for(world.ended(), 30)
        assert all(world.message(f"a{number}").content == "ab" for number in numbers)
        assert world.tasks.list() == {}


async def test_chats_that_are_not_kept_are_each_users_own() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["one", asyncio.Event()]
        first = await world.runs.start(asking(chat_id="local:x"), OWNER)
        second = await world.runs.start(asking(chat_id="local:x"), STRANGER)
        assert all(world.tasks.find(task_id) for task_id in (*first.task_ids, *second.task_ids))


async def test_each_answer_takes_a_place_until_it_ends_whatever_ends_it() -> None:
    async with running_world() as world:
        go_on = asyncio.Event()
        world.pipeline.scripts = {
            "m": [go_on, "hello"],
            "n": [go_on, GatewayError(ErrorKind.UPSTREAM_FAILED, "broken")],
        }
        started = await world.runs.start(asking(message_ids={"m": "a1", "n": "a2"}), OWNER)
        assert world.room.taken == ["owner", "owner"]
        go_on.set()
        await world.ended()
        assert world.room.taken == []
        go_on.clear()
        started = await world.runs.start(asking(), OWNER)
        assert world.room.taken == ["owner"]
        await world.tasks.stop(started.task_ids[0])
        assert world.room.taken == []


async def test_without_a_place_for_each_answer_nothing_begins() -> None:
    async with running_world() as world:
        world.room.limit = 1
        with pytest.raises(GatewayError) as caught:
            await world.runs.start(asking(message_ids={"m": "a1", "n": "a2"}), OWNER)
        assert caught.value.kind is ErrorKind.RATE_LIMITED
        assert (world.room.taken, world.tasks.started()) == ([], [])
        assert not world.state.messages["c"].keys() & {"a1", "a2"}
        await world.runs.start(asking(), OWNER)
        await world.ended()
