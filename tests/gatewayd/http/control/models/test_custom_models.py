"""Models that stand on others."""

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.collections import NewCollection
from gatewayctl.wire.models import AccessChange, NewModel
from gatewayctl.wire.plugins import NewPlugin
from tests.fakes.daemons.control_documents import boss, refused
from tests.fakes.daemons.control_plugins import FILTER, TOOL
from tests.fakes.daemons.control_socket import Control


@pytest.fixture(autouse=True)
async def owner(control: Control) -> None:
    await boss(control)


async def test_one_with_everything(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
    await call(client.call, routes.INSTALL_PLUGIN, "tool", "weather", body=NewPlugin(content=TOOL))
    await call(client.call, routes.INSTALL_PLUGIN, "function", "loud", body=NewPlugin(content=FILTER))
    wanted = NewModel(
        id="help/desk",
        base="beta/b:1",
        name="Help",
        system="Be kind.",
        params={"temperature": 0.2},
        knowledge=["docs"],
        tools=["Weather", "server:maps"],
        filters=["loud"],
    )
    made = await call(client.call, routes.CREATE_MODEL, body=wanted)
    assert (made.outcome, made.id, made.name, made.base) == ("created", "help/desk", "Help", "beta/b:1")
    shown = await call(client.call, routes.GET_MODEL, id="help/desk")
    assert (shown.available, shown.recorded, shown.system) == (True, True, "Be kind.")
    assert (shown.params, shown.knowledge) == ({"temperature": 0.2}, ["docs"])
    assert (shown.tools, shown.filters, shown.actions) == (["weather", "server:maps"], ["loud"], [])
    record = control.catalog.find_record("help/desk")
    assert record is not None
    assert record.params == {"temperature": 0.2, "system": "Be kind."}
    assert [item["type"] for item in record.meta["knowledge"]] == ["collection"]
    assert (record.meta["toolIds"], record.meta["filterIds"]) == (["weather", "server:maps"], ["loud"])
    gone = await call(client.call, routes.REMOVE_MODEL, id="help/desk")
    assert (gone.outcome, gone.base) == ("removed", "beta/b:1")
    assert (await refused(control, client.call, routes.GET_MODEL, id="help/desk")).kind == "not_found"


async def test_dry_runs_keep_nothing(control: Control) -> None:
    client, call = control.client, control.call
    made = await call(client.call, routes.CREATE_MODEL, body=NewModel(id="desk", base="alpha"), dry_run=True)
    assert (made.outcome, made.dry_run) == ("created", True)
    assert control.catalog.find_record("desk") is None
    await call(client.call, routes.CREATE_MODEL, body=NewModel(id="desk", base="alpha"))
    await call(client.call, routes.REMOVE_MODEL, id="desk", dry_run=True)
    assert control.catalog.find_record("desk") is not None


@pytest.mark.parametrize(
    ("fields", "kind", "named"),
    [
        ({"id": "alpha"}, "conflict", "alpha"),
        ({"id": "used"}, "conflict", "used"),
        ({"base": "gamma"}, "not_found", "gamma"),
        ({"base": "used"}, "invalid_request", "used"),
        ({"knowledge": ["none"]}, "not_found", "none"),
        ({"tools": ["none"]}, "not_found", "none"),
        ({"filters": ["none"]}, "not_found", "none"),
        ({"actions": ["loud"]}, "not_found", "loud"),
        ({"id": ""}, "invalid_request", "id"),
    ],
)
async def test_what_is_refused(control: Control, fields: dict[str, object], kind: str, named: str) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.INSTALL_PLUGIN, "function", "loud", body=NewPlugin(content=FILTER))
    await call(client.call, routes.CREATE_MODEL, body=NewModel(id="used", base="alpha"))
    wanted = NewModel.model_validate({"id": "desk", "base": "alpha", **fields})
    failure = await refused(control, client.call, routes.CREATE_MODEL, body=wanted)
    assert (failure.kind, named in failure.message) == (kind, True)
    assert control.catalog.find_record("desk") is None


async def test_what_is_kept_about_a_listed_model_is_forgotten(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.GRANT_MODEL, body=AccessChange(model="alpha", everyone=True))
    gone = await call(client.call, routes.REMOVE_MODEL, id="alpha")
    assert (gone.outcome, gone.available) == ("removed", True)
    assert (await call(client.call, routes.GET_MODEL, id="alpha")).grants == []
    assert (await refused(control, client.call, routes.REMOVE_MODEL, id="alpha")).kind == "not_found"
    assert (await refused(control, client.call, routes.REMOVE_MODEL, id="gamma")).kind == "not_found"
