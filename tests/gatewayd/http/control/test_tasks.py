"""`/v1/tasks`."""

import logging

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.tasks import TaskStop
from tests.fakes.daemons.control_documents import refused
from tests.fakes.daemons.control_socket import Control


async def test_tasks_are_listed_by_chat_and_user(control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    live, client = control.live, control.client
    chat_id = await live.chat(ann)
    first, second = live.work(ann, chat_id, "a1"), live.work(ann)
    third = live.work(bob, "local:x")

    async def ids(**how: str) -> list[str]:
        return [task.id for task in (await control.call(client.call, routes.LIST_TASKS, **how)).tasks]

    assert await ids() == [first, second, third]
    assert await ids(user=ann.email) == [first, second]
    assert await ids(chat=chat_id) == [first]
    assert await ids(chat="local:x") == [third]
    assert await ids(chat=chat_id, user=bob.id) == []
    [task] = (await control.call(client.call, routes.LIST_TASKS, chat=chat_id)).tasks
    assert (task.name, task.user, task.user_id) == ("answer", ann.email, ann.id)
    assert (task.chat_id, task.message_id) == (chat_id, "a1")
    assert task.started_at is not None
    assert (
        await refused(control, client.call, routes.LIST_TASKS, user="zoe@example.org")
    ).kind == "not_found"
    assert (await refused(control, client.call, routes.LIST_TASKS, chat="none")).kind == "not_found"


async def test_tasks_are_stopped_by_id_and_by_chat(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    ann = await control.accounts.add_user("ann")
    live, client = control.live, control.client
    chat_id = await live.chat(ann)
    first, second, third = live.work(ann, chat_id), live.work(ann, chat_id), live.work(ann)
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        stopped = await control.call(client.call, routes.STOP_TASKS, body=TaskStop(task=third))
        assert [task.id for task in stopped.tasks] == [third]
        assert [info.id for info in live.tasks.started()] == [first, second]
        stopped = await control.call(client.call, routes.STOP_TASKS, body=TaskStop(chat=chat_id))
    assert [task.id for task in stopped.tasks] == [first, second]
    assert live.tasks.started() == []
    assert [vars(line)["target"] for line in caplog.records] == [third, first, second]
    assert (await control.call(client.call, routes.STOP_TASKS, body=TaskStop(chat=chat_id))).tasks == []


async def test_what_is_not_there_cannot_be_stopped(control: Control) -> None:
    client = control.client
    # A task of the gateway itself is nobody's.
    own = control.live.tasks.spawn("clean", control.live.hub.run())
    for wanted in (TaskStop(task="none"), TaskStop(task=own), TaskStop(chat="none")):
        assert (await refused(control, client.call, routes.STOP_TASKS, body=wanted)).kind == "not_found"
    for wanted in (TaskStop(), TaskStop(task="a", chat="b")):
        assert (await refused(control, client.call, routes.STOP_TASKS, body=wanted)).kind == "invalid_request"
    assert own in control.live.tasks.list()
