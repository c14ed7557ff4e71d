"""How models are shown with what is kept about them."""

import pytest

from gatewayd.catalog.records import ModelRecord
from gatewayd.errors import GatewayError
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.http.control.models.serializers import ModelViews
from tests.fakes.daemons.control_socket import Control


def views(control: Control) -> ModelViews:
    return ModelViews(control.catalog, AccessLists(control.accounts.users, control.accounts.groups))


async def test_odd_records_are_shown(control: Control) -> None:
    record = ModelRecord(
        id="a",
        user_id="u",
        name="A",
        base_model_id="alpha",
        params={"system": 5, "x": 1},
        meta={
            "knowledge": [{"id": "k1"}, {"id": "k2", "name": "docs"}, 7],
            "toolIds": ["t", 3],
            "filterIds": 5,
        },
    )
    shown = await views(control).show(None, record)
    assert (shown.available, shown.system, shown.params) == (False, "", {"x": 1})
    assert (shown.knowledge, shown.tools, shown.filters) == (["k1", "docs"], ["t"], [])


async def test_a_model_without_a_record(control: Control) -> None:
    model, record = await views(control).find("alpha")
    assert record is None
    shown = await views(control).show(model, record)
    assert (shown.id, shown.available, shown.recorded, shown.base) == ("alpha", True, False, None)


async def test_nothing(control: Control) -> None:
    with pytest.raises(GatewayError, match="cannot find model 'gamma'"):
        await views(control).find("gamma")
    with pytest.raises(ValueError, match="needed"):
        await views(control).show(None, None)
