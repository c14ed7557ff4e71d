"""The state between migrations: what was stays, and classes are there when something looks at them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tortoise import fields
from tortoise.migrations import operations as ops
from tortoise.migrations.operations import Operation

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import APP, sqlite
from gatewayd.storage.engine.migration_state import MigrationState

BIRD, NEST = f"{APP}.Bird", f"{APP}.Nest"


def create(name: str, **more: fields.Field[object]) -> Operation:
    return ops.CreateModel(name, [("id", fields.IntField(primary_key=True)), *more.items()])


CREATE_BIRD = create("Bird")
CREATE_NEST = create("Nest", bird=fields.ForeignKeyField(BIRD, related_name="nests"))
ADD_COLOUR = ops.AddField("Bird", "colour", fields.CharField(max_length=9, default="grey"))


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[MigrationState]:
    location = sqlite(tmp_path / "gatewayd.db")
    async with Database.open(location):
        yield MigrationState(location.connection)


def advance(state: MigrationState, *operations: Operation) -> None:
    for operation in operations:
        operation.state_forward(APP, state)


@pytest.mark.database
async def test_a_state_that_is_over_stays_as_it_was(state: MigrationState) -> None:
    advance(state, CREATE_BIRD)
    before = state.clone()
    advance(state, ADD_COLOUR, ops.AlterModelOptions("Bird", {"table_description": "birds"}))
    bird = before.apps.get_model(BIRD)
    assert "colour" not in bird._meta.db_fields
    assert before.models[APP, "Bird"].options.get("table_description") is None
    assert before.apps.get_model(BIRD) is bird
    advance(state, ops.DeleteModel("Bird"))
    assert "colour" not in before.apps.get_model(BIRD)._meta.db_fields
    assert state.apps.apps[APP] == {}


@pytest.mark.database
@pytest.mark.parametrize("alone", [False, True])
async def test_classes_are_made_when_they_are_needed(state: MigrationState, alone: bool) -> None:
    if alone:
        state.advance_models()
    advance(state, CREATE_BIRD, CREATE_NEST, ADD_COLOUR)
    assert (APP in state.apps.apps) is not alone
    state.make_classes()
    state.validate_relations_initialized()
    bird, nest = state.apps.get_model(BIRD), state.apps.get_model(NEST)
    assert bird._meta.db_fields == {"id", "colour"}
    assert getattr(nest._meta.fields_map["bird"], "related_model") is bird  # noqa: B009 - unknown to its type
    assert "nests" in bird._meta.fetch_fields
    # Both can be asked for what belongs to the other.
    for query in (bird.filter(nests__id=1), nest.filter(bird__colour="blue")):
        assert "JOIN" in query.sql()
    state.make_classes()
    assert state.apps.get_model(BIRD) is bird


@pytest.mark.database
async def test_only_classes_that_changed_are_prepared(state: MigrationState) -> None:
    advance(state, CREATE_BIRD, create("Stone"))
    stone, bird = (state.apps.get_model(f"{APP}.{name}") for name in ("Stone", "Bird"))
    query = stone._meta.basequery
    advance(state, CREATE_NEST, ADD_COLOUR)
    assert state.apps.get_model(f"{APP}.Stone")._meta.basequery is query
    assert state.apps.get_model(BIRD) is not bird
