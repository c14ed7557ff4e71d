"""`/v1/tool-servers`."""

import asyncio
import logging

import pytest
from pydantic import ValidationError

from gatewayctl.wire import routes
from gatewayctl.wire.models import Holders
from gatewayctl.wire.tool_servers import NewToolServer
from tests.fakes.daemons.control_documents import refused
from tests.fakes.daemons.control_plugins import SPEC
from tests.fakes.daemons.control_socket import Control

MAPS = NewToolServer(
    id="maps",
    url="http://127.0.0.1:9",
    key="hush",
    headers={"X-Chat": "{{CHAT_ID}}"},
    spec=SPEC,
    functions=["find"],
    timeout=5,
)


async def test_one_comes_and_goes(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client, call = control.client, control.call
    with caplog.at_level(logging.INFO):
        made = await call(client.call, routes.ADD_TOOL_SERVER, body=MAPS)
    assert "hush" not in caplog.text
    assert (made.outcome, made.name, made.type, made.keyed, made.headers) == (
        "created",
        "maps",
        "openapi",
        True,
        ["X-Chat"],
    )
    assert (made.described, made.functions, made.timeout, made.origin) == (True, ["find"], 5.0, "database")
    assert control.plugins.servers.rows["maps"].key == "hush"
    assert (await refused(control, client.call, routes.ADD_TOOL_SERVER, body=MAPS)).kind == "conflict"
    listed = await call(client.call, routes.LIST_TOOL_SERVERS)
    assert [server.id for server in listed.servers] == ["fixed", "maps"]
    assert listed.problems == ["cannot use tool_server_connections[1]"]
    assert "hush" not in listed.model_dump_json()
    assert (await call(client.call, routes.GET_TOOL_SERVER, "maps")).path == "openapi.json"
    gone = await call(client.call, routes.REMOVE_TOOL_SERVER, "maps")
    assert (gone.outcome, control.plugins.servers.rows) == ("removed", {})


async def test_what_it_offers_is_asked(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.ADD_TOOL_SERVER, body=MAPS)
    offer = await call(client.call, routes.CHECK_TOOL_SERVER, "maps")
    assert (offer.title, offer.version) == ("Maps", "3")
    [tool] = offer.tools
    assert (tool.name, tool.description, list(tool.parameters["properties"])) == (
        "find",
        "Find a place.",
        ["town"],
    )
    failure = await refused(control, client.call, routes.CHECK_TOOL_SERVER, "fixed")
    assert (failure.kind, "fixed" in failure.message.lower()) == ("upstream_unreachable", True)


async def test_dry_runs_keep_nothing(control: Control) -> None:
    client, call = control.client, control.call
    dry = await call(client.call, routes.ADD_TOOL_SERVER, body=MAPS, dry_run=True)
    assert (dry.outcome, dry.dry_run, control.plugins.servers.rows) == ("created", True, {})
    await call(client.call, routes.ADD_TOOL_SERVER, body=MAPS)
    await call(client.call, routes.GRANT_TOOL_SERVER, "maps", body=Holders(everyone=True), dry_run=True)
    await call(client.call, routes.REMOVE_TOOL_SERVER, "maps", dry_run=True)
    assert control.plugins.servers.rows["maps"].grants == ()


async def test_rights(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.ADD_TOOL_SERVER, body=MAPS)
    users = [await control.accounts.add_user(f"u{number}") for number in range(3)]
    await asyncio.gather(
        *(
            call(client.call, routes.GRANT_TOOL_SERVER, "maps", body=Holders(users=[user.id]))
            for user in users
        )
    )
    shown = await call(client.call, routes.GET_TOOL_SERVER, "maps")
    assert {grant.principal for grant in shown.grants} == {user.email for user in users}
    again = await call(client.call, routes.GRANT_TOOL_SERVER, "maps", body=Holders(users=[users[0].id]))
    assert again.outcome == "unchanged"
    less = await call(
        client.call, routes.REVOKE_TOOL_SERVER, "maps", body=Holders(users=[user.email for user in users])
    )
    assert (less.outcome, less.grants) == ("changed", [])
    # The secret stays through all of it.
    assert control.plugins.servers.rows["maps"].key == "hush"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://user:secret@x"}, "url"),
        ({"id": "a b"}, "info.id"),
        ({"key": "ä"}, "key"),
        ({"headers": {"a b": "x"}}, "headers"),
    ],
)
async def test_what_is_refused(control: Control, fields: dict[str, object], param: str) -> None:
    wanted = NewToolServer.model_validate({"id": "maps", "url": "http://x", **fields})
    failure = await refused(control, control.client.call, routes.ADD_TOOL_SERVER, body=wanted)
    assert (failure.kind, failure.param) == ("invalid_request", param)


async def test_those_of_the_settings_stay(control: Control) -> None:
    client = control.client
    for endpoint, body in (
        (routes.REMOVE_TOOL_SERVER, None),
        (routes.GRANT_TOOL_SERVER, Holders(everyone=True)),
    ):
        assert (await refused(control, client.call, endpoint, "fixed", body=body)).kind == "conflict"
        assert (await refused(control, client.call, endpoint, "none", body=body)).kind == "not_found"
    assert (await refused(control, client.call, routes.CHECK_TOOL_SERVER, "none")).kind == "not_found"


@pytest.mark.parametrize(
    "member", [{"functions": [7] * 1000}, {"headers": {str(number): 7 for number in range(1001)}}]
)
def test_of_many_bad_members_one_is_told(member: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        NewToolServer.model_validate({"id": "s", "url": "http://s.example", **member})
    assert caught.value.error_count() == 1
