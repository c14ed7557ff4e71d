"""Tests for gatewayd.plugin_host.models."""

from tests.fakes.plugins.host_services import Hosting


async def test_records(made: Hosting) -> None:
    models = made.host.models
    found = await models.find_record("small")
    assert found is not None
    assert (found["name"], found["params"]) == ("Small", {"top_k": 3})
    assert await models.find_record("dear") is None
    assert [each["id"] for each in await models.list_records(None)] == ["small"]
    assert [each["id"] for each in await models.list_records(made.ann.id)] == ["small"]
    await made.catalog.grant("small", [], by="test")
    assert await models.list_records(made.ann.id) == []
    assert len(await models.list_records(made.admin.id)) == 1


async def test_what_a_user_may_use(made: Hosting) -> None:
    models = made.host.models
    (small,) = await models.list(made.ann.id)
    assert (small["id"], small["name"], "params" in small["info"]) == ("small", "Small", False)
    shown = {each["id"]: each for each in await models.list(made.admin.id)}
    assert set(shown) == {"small", "dear"}
    assert shown["small"]["info"]["params"] == {"top_k": 3}
    assert await models.list("nobody") == []


async def test_all(made: Hosting) -> None:
    found = await made.host.models.all()
    assert set(found) == {"small", "dear"}
    assert found["small"]["info"]["params"] == {"top_k": 3}
