"""The tables of attributes are those that SCIM has, and their columns exist."""

import pytest

from gatewayd.scim.attributes import Kind, places
from gatewayd.scim.filters.conditions import Compare, Condition, Operator, Present, Value
from gatewayd.scim.records import Query, ResourceType
from gatewayd.storage.engine.database import Database
from gatewayd.storage.scim.columns import EXTERNAL_IDS, SUBJECTS, Side, Type, table_of
from gatewayd.storage.scim.directory import TortoiseDirectory

VALUES: dict[Type, Value] = {
    Type.FOLDED: "x",
    Type.EXACT: "x",
    Type.CONSTANT: "x",
    Type.BOOLEAN: True,
    Type.SECONDS: 1,
    Type.MICROSECONDS: 1,
}
TYPES = {
    Kind.STRING: {Type.FOLDED, Type.EXACT, Type.CONSTANT},
    Kind.BOOLEAN: {Type.BOOLEAN},
    Kind.DATE_TIME: {Type.SECONDS, Type.MICROSECONDS},
}

UNSEARCHED = {
    "members.display",
    "roles",
    *(f"roles.{part}" for part in ("value", "display", "type", "primary")),
}
"""What providers call members is kept for the answer alone."""


@pytest.mark.parametrize("resource", ResourceType)
def test_every_attribute_that_filters_may_name_has_a_row(resource: ResourceType) -> None:
    known = places(resource)
    simple = {name for name, place in known.items() if place.attribute.kind in TYPES} - UNSEARCHED
    complex_ones = {
        name for name, place in known.items() if place.attribute.kind is Kind.COMPLEX
    } - UNSEARCHED
    assert set(table_of(resource).fields) == simple
    assert set(table_of(resource).wholes) == complex_ones


@pytest.mark.parametrize("resource", ResourceType)
def test_rows_have_the_characteristics_of_their_attributes(resource: ResourceType) -> None:
    known = places(resource)
    for name, field in table_of(resource).fields.items():
        place = known[name]
        assert field.type in TYPES[place.attribute.kind], name
        assert (field.type is Type.FOLDED) == (
            place.attribute.kind is Kind.STRING and not place.attribute.is_case_exact
        ), name
        is_multiple = place.parent is not None and place.parent.is_multiple
        assert (field.side is not None and field.side.is_multiple) == is_multiple, name
    for name, whole in table_of(resource).wholes.items():
        assert isinstance(whole, Side) == known[name].attribute.is_multiple, name


@pytest.mark.parametrize("resource", ResourceType)
@pytest.mark.parametrize("by_subject", [False, True])
async def test_every_row_is_understood_by_the_engines(
    database: Database, resource: ResourceType, by_subject: bool
) -> None:
    directory, table = TortoiseDirectory(), table_of(resource, by_subject=by_subject)
    is_user = resource is ResourceType.USER
    conditions: list[Condition] = [Present(name) for name in (*table.fields, *table.wholes)]
    conditions += [Compare(name, Operator.NE, VALUES[field.type]) for name, field in table.fields.items()]
    for condition in conditions:
        query = Query(condition, "okta", by_subject=by_subject)
        page = await (directory.list_users(query) if is_user else directory.list_groups(query))
        assert page.total == 0, condition
    for name, field in table.fields.items():
        if field.type is not Type.CONSTANT:
            query = Query(provider="okta", by_subject=by_subject, sort=name)
            await (directory.list_users(query) if is_user else directory.list_groups(query))


def test_by_subject_only_external_ids_of_users_mean_something_else() -> None:
    users, by_subject = table_of(ResourceType.USER), table_of(ResourceType.USER, by_subject=True)
    assert (users.fields["externalid"].side, by_subject.fields["externalid"].side) == (EXTERNAL_IDS, SUBJECTS)
    assert {**by_subject.fields, "externalid": users.fields["externalid"]} == users.fields
    assert table_of(ResourceType.GROUP, by_subject=True) is table_of(ResourceType.GROUP)
