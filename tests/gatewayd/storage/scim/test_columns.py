"""The tables of attributes are those that SCIM has, and their columns exist."""

import pytest

from gatewayd.scim.attributes import AttributeType, attributes_by_path
from gatewayd.scim.filters.conditions import CompareCondition, Condition, Operator, PresentCondition, Value
from gatewayd.scim.records import ResourceQuery, ResourceType
from gatewayd.storage.engine.database import Database
from gatewayd.storage.scim.columns import EXTERNAL_IDS, SUBJECTS, ValueTable, ValueType, attribute_table
from gatewayd.storage.scim.directory import TortoiseDirectory

VALUES: dict[ValueType, Value] = {
    ValueType.FOLDED: "x",
    ValueType.EXACT: "x",
    ValueType.CONSTANT: "x",
    ValueType.BOOLEAN: True,
    ValueType.SECONDS: 1,
    ValueType.MICROSECONDS: 1,
}
TYPES = {
    AttributeType.STRING: {ValueType.FOLDED, ValueType.EXACT, ValueType.CONSTANT},
    AttributeType.BOOLEAN: {ValueType.BOOLEAN},
    AttributeType.DATE_TIME: {ValueType.SECONDS, ValueType.MICROSECONDS},
}

UNSEARCHED = {
    "members.display",
    "roles",
    *(f"roles.{part}" for part in ("value", "display", "type", "primary")),
}
"""What providers call members is kept for the answer alone."""


@pytest.mark.parametrize("resource", ResourceType)
def test_every_attribute_that_filters_may_name_has_a_row(resource: ResourceType) -> None:
    known = attributes_by_path(resource)
    simple = {name for name, place in known.items() if place.attribute.kind in TYPES} - UNSEARCHED
    complex_ones = {
        name for name, place in known.items() if place.attribute.kind is AttributeType.COMPLEX
    } - UNSEARCHED
    assert set(attribute_table(resource).fields) == simple
    assert set(attribute_table(resource).wholes) == complex_ones


@pytest.mark.parametrize("resource", ResourceType)
def test_rows_have_the_characteristics_of_their_attributes(resource: ResourceType) -> None:
    known = attributes_by_path(resource)
    for name, field in attribute_table(resource).fields.items():
        place = known[name]
        assert field.type in TYPES[place.attribute.kind], name
        assert (field.type is ValueType.FOLDED) == (
            place.attribute.kind is AttributeType.STRING and not place.attribute.is_case_exact
        ), name
        is_multiple = place.parent is not None and place.parent.is_multiple
        assert (field.side is not None and field.side.is_multiple) == is_multiple, name
    for name, whole in attribute_table(resource).wholes.items():
        assert isinstance(whole, ValueTable) == known[name].attribute.is_multiple, name


@pytest.mark.parametrize("resource", ResourceType)
@pytest.mark.parametrize("by_subject", [False, True])
async def test_every_row_is_understood_by_the_engines(
    database: Database, resource: ResourceType, by_subject: bool
) -> None:
    directory, table = TortoiseDirectory(), attribute_table(resource, by_subject=by_subject)
    is_user = resource is ResourceType.USER
    conditions: list[Condition] = [PresentCondition(name) for name in (*table.fields, *table.wholes)]
    conditions += [
        CompareCondition(name, Operator.NE, VALUES[field.type]) for name, field in table.fields.items()
    ]
    for condition in conditions:
        query = ResourceQuery(condition, "okta", by_subject=by_subject)
        page = await (directory.list_users(query) if is_user else directory.list_groups(query))
        assert page.total == 0, condition
    for name, field in table.fields.items():
        if field.type is not ValueType.CONSTANT:
            query = ResourceQuery(provider="okta", by_subject=by_subject, sort=name)
            await (directory.list_users(query) if is_user else directory.list_groups(query))


def test_by_subject_only_external_ids_of_users_mean_something_else() -> None:
    users, by_subject = (
        attribute_table(ResourceType.USER),
        attribute_table(ResourceType.USER, by_subject=True),
    )
    assert (users.fields["externalid"].side, by_subject.fields["externalid"].side) == (EXTERNAL_IDS, SUBJECTS)
    assert {**by_subject.fields, "externalid": users.fields["externalid"]} == users.fields
    assert attribute_table(ResourceType.GROUP, by_subject=True) is attribute_table(ResourceType.GROUP)
