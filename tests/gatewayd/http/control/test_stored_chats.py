"""`/v1/chats`."""

import asyncio
import logging
from typing import Any

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.stored_chats import ChatExport, ChatImport
from gatewayd.chats.records import ChatChange, Message
from gatewayd.chats.renderer import render_history
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.http.control.stored_chats import message_of, sort_history
from tests.fakes.daemons.control_documents import refused
from tests.fakes.daemons.control_socket import Control
from tests.fakes.storage.chats_site import document, node


async def exported(control: Control, **which: str) -> list[dict[str, Any]]:
    wanted = ChatExport(**which)
    return await asyncio.to_thread(lambda: list(control.client.stream(routes.EXPORT_CHATS, wanted)))


async def test_lists_are_by_owner_state_and_text(control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    live, client = control.live, control.client
    birds = await live.chat(ann)
    bees = await live.chat(bob, "Bees")
    old = await live.chat(ann, "Old")
    await live.house.store.change(old, ChatChange(archived=True), 9)

    async def ids(**how: Any) -> tuple[set[str], int]:
        found = await control.call(client.call, routes.LIST_CHATS, **how)
        return {chat.id for chat in found.chats}, found.total

    assert await ids() == ({birds, bees}, 2)
    assert await ids(user=ann.email) == ({birds}, 1)
    assert await ids(archived=True) == ({old}, 1)
    assert await ids(query="bees") == ({bees}, 1)
    assert await ids(query="heron", user=bob.id) == ({bees}, 1)
    assert await ids(query="archived:true bird") == (set(), 0)
    page, total = await ids(limit=1, offset=1)
    assert (len(page), total) == (1, 2)
    [shown] = (await control.call(client.call, routes.LIST_CHATS, user="bob@example.org")).chats
    assert (shown.title, shown.user, shown.user_id, shown.archived) == ("Bees", bob.email, bob.id, False)
    assert shown.created_at is not None
    assert (
        await refused(control, client.call, routes.LIST_CHATS, user="zoe@example.org")
    ).kind == "not_found"
    assert (await refused(control, client.call, routes.LIST_CHATS, limit=0)).param == "limit"


async def test_a_chat_is_shown_with_its_current_branch_or_all_messages(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    messages = {
        "q1": node("q1", None, content=[{"type": "text", "text": "what"}, {"type": "image_url"}]),
        "a1": node("a1", "q1", "assistant", content="old", done=True, error={"content": "it broke"}),
        "a2": node(
            "a2",
            "q1",
            "assistant",
            content="new",
            model="m",
            statusHistory=[{"description": "looking", "done": True}],
            sources=[{"source": {"name": "s"}}],
            timestamp=7,
        ),
    }
    chat_id = await control.live.chat(ann, history={"messages": messages, "currentId": "a2"})
    shown = await control.call(control.client.call, routes.GET_CHAT, chat_id)
    assert (shown.id, shown.user, shown.current_id) == (chat_id, ann.email, "a2")
    assert [message.id for message in shown.messages] == ["q1", "a2"]
    question, answer = shown.messages
    assert (question.content, question.parent_id, question.role) == ("what", None, "user")
    assert (answer.model, answer.status[0]["description"], answer.sources) == (
        "m",
        "looking",
        [{"source": {"name": "s"}}],
    )
    assert answer.created_at == "1970-01-01T00:00:07Z"
    tree = await control.call(control.client.call, routes.GET_CHAT, chat_id, tree=True)
    assert [(each.id, each.current, each.error) for each in tree.messages] == [
        ("q1", True, None),
        ("a1", False, "it broke"),
        ("a2", True, None),
    ]


async def test_messages_are_in_order_however_long_the_chat_is() -> None:
    line = [Message(f"m{number}", f"m{number - 1}" if number else None, "user") for number in range(5000)]
    fork = [Message("x", "m0", "user"), Message("y", "x", "user"), Message("root", None, "user")]
    nodes, _ = await render_history([*fork, *line], None)
    ordered = [each["id"] for each in sort_history(nodes)]
    assert ordered == ["root", "m0", "x", "y", *(f"m{number}" for number in range(1, 5000))]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, None),
        (False, None),
        (True, "failed"),
        ("broke", "broke"),
        ({"content": "broke"}, "broke"),
        ({"content": {"detail": 1}}, "failed"),
        ({"other": 1}, "failed"),
    ],
)
def test_failures_have_the_forms_that_clients_keep(error: Any, told: str | None) -> None:
    shown = message_of({**node("a", None), "timestamp": 0, "error": error, "model": 3}, is_current=True)
    assert (shown.error, shown.model, shown.created_at) == (told, None, None)


async def test_what_goes_out_comes_in(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    live = control.live
    birds = await live.chat(ann)
    await live.chat(ann, "Bees")
    await live.chat(bob, "Cats")
    assert [each["title"] for each in await exported(control, id=birds)] == ["Birds"]
    assert {each["title"] for each in await exported(control, user=ann.email)} == {"Birds", "Bees"}
    assert len(await exported(control)) == 3
    records = await exported(control, id=birds)
    wanted = ChatImport(user=bob.email, chats=records)
    tried = await control.call(control.client.call, routes.IMPORT_CHATS, body=wanted, dry_run=True)
    assert (tried.dry_run, tried.outcome, len(tried.chats)) == (True, "created", 1)
    assert live.house.told == []
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        made = await control.call(control.client.call, routes.IMPORT_CHATS, body=wanted)
    assert [(line.getMessage(), vars(line)["target"]) for line in caplog.records] == [
        ("chat import", bob.email)
    ]
    assert [(target.user_id, event["type"]) for target, event in live.house.told] == [(bob.id, "chat:list")]
    [chat] = made.chats
    assert (chat.user, chat.title, chat.id == birds) == (bob.email, "Birds", False)
    [copy] = await exported(control, id=chat.id)
    assert copy["chat"] == records[0]["chat"]


async def test_imports_are_whole_or_not_at_all(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    client = control.client
    good, bad = {"chat": document()}, {"chat": {"history": 3}}
    failure = await refused(
        control, client.call, routes.IMPORT_CHATS, body=ChatImport(user=ann.email, chats=[good, bad])
    )
    assert (failure.kind, failure.param) == ("invalid_request", "chats.1.chat.history")
    assert (await control.call(client.call, routes.LIST_CHATS)).total == 0
    failure = await refused(
        control, client.call, routes.IMPORT_CHATS, body=ChatImport(user="zoe@example.org", chats=[good])
    )
    assert failure.kind == "not_found"


async def test_an_export_that_breaks_says_so(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = await control.accounts.add_user("ann")
    await control.live.chat(ann)
    await control.live.chat(ann)
    given: list[dict[str, Any]] = []
    find = control.live.house.chats.find_record

    async def breaks(chat_id: str) -> Any:
        if given:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read: the database is locked")
        given.append({})
        return await find(chat_id)

    monkeypatch.setattr(control.live.house.chats, "find_record", breaks)
    with pytest.raises(CommandError, match="the database is locked") as caught:
        await exported(control)
    assert caught.value.kind == "unavailable"


async def test_only_a_real_delete_deletes_and_stops(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    live, client = control.live, control.client
    chat_id = await live.chat(ann)
    task_id = live.work(ann, chat_id)
    tried = await control.call(client.call, routes.REMOVE_CHAT, chat_id, dry_run=True)
    assert (tried.dry_run, tried.outcome, tried.title) == (True, "removed", "Birds")
    assert live.tasks.find(task_id) is not None
    assert (await control.call(client.call, routes.GET_CHAT, chat_id)).id == chat_id
    removed = await control.call(client.call, routes.REMOVE_CHAT, chat_id)
    assert (removed.dry_run, removed.user) == (False, ann.email)
    told = {"type": "chat:list", "data": {"chat_id": chat_id, "folder_id": None}}
    assert live.house.told == [(EventTarget(ann.id, chat_id), told)]
    assert live.tasks.find(task_id) is None


async def test_unknown_chats_are_not_found(control: Control) -> None:
    client = control.client
    for chat_id in ("x", "../a", "x" * 300, "a\0b"):
        for endpoint in (routes.GET_CHAT, routes.REMOVE_CHAT):
            assert (await refused(control, client.call, endpoint, chat_id)).kind == "not_found"
        with pytest.raises(CommandError) as caught:
            await exported(control, id=chat_id)
        assert caught.value.kind == "not_found"
    with pytest.raises(CommandError) as caught:
        await exported(control, user="zoe@example.org")
    assert caught.value.kind == "not_found"


async def test_where_chats_are_private_the_operator_reads_none(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    chat_id = await control.live.chat(ann)
    control.live.house.chats.access._admin_access = False
    client = control.client
    assert (await refused(control, client.call, routes.LIST_CHATS)).kind == "forbidden"
    assert (await refused(control, client.call, routes.GET_CHAT, chat_id)).kind == "not_found"
    with pytest.raises(CommandError, match="ENABLE_ADMIN_CHAT_ACCESS"):
        await exported(control)
    made = await control.call(
        client.call, routes.IMPORT_CHATS, body=ChatImport(user=ann.email, chats=[{"chat": document()}])
    )
    assert made.chats[0].user == ann.email
