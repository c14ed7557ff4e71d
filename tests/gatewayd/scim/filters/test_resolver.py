import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.attributes import ENTERPRISE, GROUP, USER, Attribute, attributes_by_path
from gatewayd.scim.attributes import AttributeType as Type
from gatewayd.scim.filters.conditions import (
    AllCondition,
    AnyCondition,
    CompareCondition,
    Condition,
    ElementCondition,
    NotCondition,
    Operator,
    PresentCondition,
)
from gatewayd.scim.filters.grammar import parse_filter
from gatewayd.scim.filters.resolver import compile_filter, has_external_id_eq, mentions_attribute
from gatewayd.scim.filters.syntax import (
    AttributeComparison,
    AttributeName,
    AttributePresence,
    Negation,
    ValueSelection,
)
from gatewayd.scim.records import ResourceType
from tests.fakes.accounts.scim_filters import filter_texts, spoilt_texts

NAMES = {
    ResourceType.USER: {
        *(
            "id",
            "userName",
            "displayName",
            "name.formatted",
            "name.familyName",
            "name.givenName",
            "externalId",
        ),
        *("active", "emails.value", "emails.type", "emails.primary", "groups.value", "groups.display"),
        *("roles.value", "roles.display", "roles.type", "roles.primary"),
        *("groups.type", "meta.created", "meta.lastModified", "meta.resourceType"),
    },
    ResourceType.GROUP: {
        *("id", "displayName", "externalId", "members.value", "members.display", "members.type"),
        *("meta.created", "meta.lastModified", "meta.resourceType"),
    },
}
"""What a condition may name."""

MULTIPLE = {ResourceType.USER: {"emails", "groups", "roles"}, ResourceType.GROUP: {"members"}}
EQ, NE = Operator.EQ, Operator.NE
NAME = AnyCondition(
    (
        PresentCondition("name.formatted"),
        PresentCondition("name.familyName"),
        PresentCondition("name.givenName"),
    )
)
META = AnyCondition(
    (
        PresentCondition("meta.resourceType"),
        PresentCondition("meta.created"),
        PresentCondition("meta.lastModified"),
    )
)


def compiled(text: str, resource: ResourceType = ResourceType.USER) -> Condition:
    return compile_filter(parse_filter(text), resource)


def refused(text: str, resource: ResourceType = ResourceType.USER) -> str:
    with pytest.raises(GatewayError) as caught:
        compiled(text, resource)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert (caught.value.code, caught.value.param) == ("invalidFilter", "filter")
    return caught.value.message.removeprefix("cannot accept filter: ")


def searchable(*types: Type) -> list[tuple[ResourceType, str, Attribute]]:
    return [
        (resource, place.name, place.attribute)
        for resource in ResourceType
        for place in attributes_by_path(resource).values()
        if place.attribute.kind in types
    ]


TEXTS = searchable(Type.STRING)
BOOLEANS = searchable(Type.BOOLEAN)
MOMENTS = searchable(Type.DATE_TIME)


# Names and operators --------------------------------------------------------------------------------------


def test_every_searchable_attribute_is_covered() -> None:
    found = {
        resource: {name for its, name, _ in TEXTS + BOOLEANS + MOMENTS if its is resource}
        for resource in NAMES
    }

    assert found == NAMES


@pytest.mark.parametrize("operator", list(Operator))
@pytest.mark.parametrize(("resource", "name", "attribute"), TEXTS)
def test_texts_have_every_operator(
    resource: ResourceType, name: str, attribute: Attribute, operator: Operator
) -> None:
    for written in (name, name.upper(), name.lower()):
        condition = compiled(f'{written} {operator} "Ada"', resource)

        assert condition == CompareCondition(name, operator, "Ada"), (
            "the spelling is the table's, the value as it came"
        )


@pytest.mark.parametrize(("resource", "name", "attribute"), TEXTS + BOOLEANS + MOMENTS)
def test_presence_and_null(resource: ResourceType, name: str, attribute: Attribute) -> None:
    assert compiled(f"{name} pr", resource) == PresentCondition(name)
    assert compiled(f"{name} ne null", resource) == PresentCondition(name)
    assert compiled(f"{name} eq null", resource) == NotCondition(PresentCondition(name))
    for operator in ("co", "sw", "ew", "gt", "ge", "lt", "le"):
        assert refused(f"{name} {operator} null", resource) == (
            f"{name} can be compared with null by eq and ne only, not by {operator}"
        )


@pytest.mark.parametrize(("resource", "name", "attribute"), TEXTS)
@pytest.mark.parametrize("value", ["true", "1", "1.5", "-3"])
def test_texts_take_strings_only(resource: ResourceType, name: str, attribute: Attribute, value: str) -> None:
    assert refused(f"{name} eq {value}", resource) == f"{name} takes a string in quotes"


@pytest.mark.parametrize(("resource", "name", "attribute"), BOOLEANS)
@pytest.mark.parametrize("operator", [EQ, NE])
@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("False", False), ('"true"', True), ('"True"', True), ('"FALSE"', False)],
)
def test_booleans_are_taken_as_strings_too(
    resource: ResourceType, name: str, attribute: Attribute, operator: Operator, text: str, value: bool
) -> None:
    condition = compiled(f"{name} {operator} {text}", resource)

    assert condition == CompareCondition(name, operator, value)
    assert isinstance(condition, CompareCondition)
    assert condition.value is value


@pytest.mark.parametrize("value", ['"yes"', '""', '"1"', "1", "0", "0.0", '" true"'])
def test_booleans_take_nothing_else(value: str) -> None:
    assert refused(f"active eq {value}") == "active takes true or false"


@pytest.mark.parametrize("operator", ["co", "sw", "ew", "gt", "ge", "lt", "le"])
@pytest.mark.parametrize("value", ["true", '"true"'])
def test_booleans_have_no_order_and_no_text(operator: str, value: str) -> None:
    assert (
        refused(f"active {operator} {value}")
        == f"active is a boolean, which does not support the operator {operator}"
    )
    assert refused(f"emails[primary {operator} {value}]") == (
        f"primary is a boolean, which does not support the operator {operator}"
    )


# Moments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", [EQ, NE, Operator.GT, Operator.GE, Operator.LT, Operator.LE])
@pytest.mark.parametrize(("resource", "name", "attribute"), MOMENTS)
def test_moments_have_an_order(
    resource: ResourceType, name: str, attribute: Attribute, operator: Operator
) -> None:
    assert compiled(f'{name} {operator} "1970-01-01T00:00:01Z"', resource) == CompareCondition(
        name, operator, 1_000_000
    )


@pytest.mark.parametrize("operator", ["co", "sw", "ew"])
def test_moments_are_no_texts(operator: str) -> None:
    assert refused(f'meta.created {operator} "2026"') == (
        f"meta.created is a dateTime, which does not support the operator {operator}"
    )


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01t00:00:00z", 0),
        (" 1970-01-01T00:00:00Z ", 0),
        ("1970-01-01T00:00:00+00:00", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.000001", 1),
        ("1970-01-01T00:00:00.1234567Z", 123_456),
        ("1970-01-01T00:00:00.99999999999999999999Z", 999_999),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2000-02-29T12:00:00Z", 951_825_600_000_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000_000),
        ("9999-12-31T23:59:59.999999-14:00", 253_402_351_199_999_999),
    ],
)
def test_moments_are_microseconds(text: str, microseconds: int) -> None:
    assert compiled(f'meta.created ge "{text}"') == CompareCondition(
        "meta.created", Operator.GE, microseconds
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2026", "2026-11-21", "20261121T100000Z", "2026-W47-6T10:00:00Z", "2026-11-21 10:00:00"),
        *("2026-11-21T10:00Z", "2026-11-21T10:00:00.Z", "2026-11-21T10:00:00+0200", "2026-11-21T10:00:00+2"),
        *("2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-11-21T25:00:00Z", "2026-11-21T10:60:00Z"),
        *("0000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "99999-01-01T00:00:00Z"),
        *("2026-11-21T10:00:00+24:00", "٢٠٢٦-11-21T10:00:00Z", "2026-11-21T10:00:00Z; DROP"),
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    assert refused(f'meta.lastModified gt "{text}"') == (
        f"meta.lastModified takes a time such as 2026-11-21T10:00:00Z, not {text!r}"
    )


@pytest.mark.parametrize("value", ["true", "1700000000", "1.5"])
def test_moments_take_strings_only(value: str) -> None:
    assert refused(f"meta.created gt {value}") == "meta.created takes a string in quotes"


# Complex attributes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "name"),
    [(ResourceType.USER, "emails"), (ResourceType.USER, "groups"), (ResourceType.GROUP, "members")],
)
@pytest.mark.parametrize("operator", list(Operator))
def test_a_multi_valued_attribute_stands_for_its_value(
    resource: ResourceType, name: str, operator: Operator
) -> None:
    assert compiled(f'{name} {operator} "x"', resource) == CompareCondition(f"{name}.value", operator, "x")
    assert compiled(f"{name} pr", resource) == PresentCondition(f"{name}.value")
    assert compiled(f"{name} eq null", resource) == NotCondition(PresentCondition(f"{name}.value"))


@pytest.mark.parametrize(("name", "any_part"), [("name", NAME), ("META", META)])
def test_another_complex_attribute_can_only_be_present(name: str, any_part: Condition) -> None:
    assert compiled(f"{name} pr") == any_part
    assert compiled(f"{name} ne null") == any_part
    assert compiled(f"{name} eq null") == NotCondition(any_part)
    assert refused(f'{name} eq "x"') == f"{name} is complex; name one of its sub-attributes"


@pytest.mark.parametrize(
    ("resource", "text", "condition"),
    [
        (
            ResourceType.USER,
            'emails[type eq "work" and value co "@x"]',
            ElementCondition(
                "emails",
                AllCondition(
                    (
                        CompareCondition("emails.type", EQ, "work"),
                        CompareCondition("emails.value", Operator.CO, "@x"),
                    )
                ),
            ),
        ),
        (
            ResourceType.USER,
            'emails[type eq "work"].value eq "a@b"',
            ElementCondition(
                "emails",
                AllCondition(
                    (CompareCondition("emails.type", EQ, "work"), CompareCondition("emails.value", EQ, "a@b"))
                ),
            ),
        ),
        (
            ResourceType.USER,
            f'EMAILS[Emails.Type ne "work" or {USER.urn}:emails.primary eq "True"]',
            ElementCondition(
                "emails",
                AnyCondition(
                    (
                        CompareCondition("emails.type", NE, "work"),
                        CompareCondition("emails.primary", EQ, True),
                    )
                ),
            ),
        ),
        (
            ResourceType.USER,
            "not (emails[not (type eq null)])",
            NotCondition(
                ElementCondition("emails", NotCondition(NotCondition(PresentCondition("emails.type"))))
            ),
        ),
        (
            ResourceType.USER,
            f'{USER.urn}:groups[display sw "x"]',
            ElementCondition("groups", CompareCondition("groups.display", Operator.SW, "x")),
        ),
        (
            ResourceType.GROUP,
            'members[value eq "u1"]',
            ElementCondition("members", CompareCondition("members.value", EQ, "u1")),
        ),
    ],
)
def test_value_paths_are_about_one_and_the_same_value(
    resource: ResourceType, text: str, condition: Condition
) -> None:
    assert compiled(text, resource) == condition


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name[givenName pr]", "name has no values to select from"),
        ("meta[created pr]", "meta has no values to select from"),
        ('userName[value eq "x"]', "userName has no values to select from"),
        ("schemas[value pr]", "User has no attribute 'schemas'"),
        ("emails[display pr]", "emails has no attribute 'display'"),
        ("emails[userName pr]", "emails has no attribute 'userName'"),
        ("emails[emails pr]", "emails has no attribute 'emails'"),
        ("emails[schemas pr]", "emails has no attribute 'schemas'"),
        ("emails[groups.value pr]", "emails has no attribute 'groups.value'"),
        ("emails[name.givenName pr]", "emails has no attribute 'name.givenName'"),
        (f"emails[{USER.urn}:value pr]", f"emails has no attribute '{USER.urn}:value'"),
        (f"emails[{USER.urn}:userName pr]", f"emails has no attribute '{USER.urn}:userName'"),
        ("groups[$ref pr]", "$ref cannot be searched"),
        ("addresses[type pr]", "User has no attribute 'addresses'"),
    ],
)
def test_value_paths_that_mean_nothing_are_refused(text: str, reason: str) -> None:
    assert refused(text) == reason


def test_a_selection_within_a_selection_is_refused() -> None:
    emails = AttributeName("emails")
    for inner in (AttributeName("value"), emails, AttributeName("emails", "value")):
        with pytest.raises(GatewayError) as caught:
            compile_filter(
                ValueSelection(emails, ValueSelection(inner, AttributePresence(AttributeName("type")))),
                ResourceType.USER,
            )
        assert caught.value.code == "invalidFilter"


# What is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "text", "name"),
    [
        (ResourceType.USER, 'nickName eq "x"', "nickName"),
        (ResourceType.USER, "title pr", "title"),
        (ResourceType.USER, 'emails.display eq "x"', "emails.display"),
        (ResourceType.USER, 'userName.value eq "x"', "userName.value"),
        (ResourceType.USER, "members pr", "members"),
        (ResourceType.USER, 'password eq "x"', "password"),
        (ResourceType.USER, f"{ENTERPRISE}:department pr", f"{ENTERPRISE}:department"),
        (ResourceType.USER, f'{GROUP.urn}:displayName eq "x"', f"{GROUP.urn}:displayName"),
        (ResourceType.USER, f"{USER.urn} pr", USER.urn),
        (ResourceType.USER, "urn:a:b:userName pr", "urn:a:b:userName"),
        (ResourceType.GROUP, 'userName eq "x"', "userName"),
        (ResourceType.GROUP, f'{USER.urn}:displayName eq "x"', f"{USER.urn}:displayName"),
        (ResourceType.GROUP, "active eq true", "active"),
    ],
)
def test_an_unknown_attribute_is_named_wherever_it_stands(
    resource: ResourceType, text: str, name: str
) -> None:
    reason = f"{resource} has no attribute {name!r}"

    assert refused(text, resource) == reason
    for frame in ("id pr and {}", "id pr or {}", "not ({})", 'id pr or (displayName eq "x" and not ({}))'):
        assert refused(frame.format(text), resource) == reason


@pytest.mark.parametrize("text", ["meta.location pr", 'meta.location eq "x"', "meta.location eq null"])
@pytest.mark.parametrize("resource", list(ResourceType))
def test_an_address_cannot_be_searched(resource: ResourceType, text: str) -> None:
    assert refused(text, resource) == "meta.location cannot be searched"


def test_the_address_of_a_member_cannot_be_searched() -> None:
    assert refused('members.$ref eq "x"', ResourceType.GROUP) == "members.$ref cannot be searched"
    assert refused("groups.$ref pr") == "groups.$ref cannot be searched"


def test_a_long_name_is_not_sent_back_whole() -> None:
    assert len(refused(f"{'a' * 8000} pr")) < 200
    assert len(refused(f'meta.created gt "{"1" * 8000}"')) < 200


# Schemas --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", list(ResourceType))
def test_every_resource_has_the_schema_of_its_type_and_no_other(resource: ResourceType) -> None:
    ours, other = (USER.urn, GROUP.urn) if resource is ResourceType.USER else (GROUP.urn, USER.urn)
    always, never = PresentCondition("id"), NotCondition(PresentCondition("id"))

    assert compiled("schemas pr", resource) == always
    assert compiled(f'schemas eq "{ours}"', resource) == always
    assert compiled(f'Schemas Eq "{ours.upper()}"', resource) == always
    assert compiled(f'schemas ne "{ours}"', resource) == never
    assert compiled(f'schemas eq "{other}"', resource) == never
    assert compiled(f'schemas ne "{other}"', resource) == always
    assert compiled("schemas eq null", resource) == never
    assert compiled("schemas ne null", resource) == always


def test_schemas_can_only_be_equal() -> None:
    assert refused('schemas co "User"') == "schemas can be compared by eq and ne only, not by co"


# What a condition is about --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "attribute", "is_named"),
    [
        ('externalId eq "x"', "externalId", True),
        ("externalId pr", "externalId", True),
        ('not (userName eq "a" or (active eq true and externalId ne "x"))', "externalId", True),
        ('userName eq "externalId"', "externalId", False),
        ('emails[type eq "work"]', "emails", True),
        ('emails[type eq "work"]', "emails.type", True),
        ('emails[type eq "work"]', "emails.value", False),
        ("emails.type pr", "emails", True),
        ("emails pr", "emails.value", True),
        ("name pr", "name", True),
        ("name.givenName pr", "name.familyName", False),
    ],
)
def test_names(text: str, attribute: str, is_named: bool) -> None:
    assert mentions_attribute(compiled(text), attribute) is is_named


@pytest.mark.parametrize(
    ("text", "is_lookup"),
    [
        ('externalId eq "x"', True),
        ('EXTERNALID EQ "x"', True),
        (f'{USER.urn}:externalId eq "x"', True),
        ('externalId eq "x" and active eq true', True),
        ('userName eq "a" or (active eq true and externalId eq "x")', True),
        ('externalId ne "x"', False),
        ('externalId sw "x"', False),
        ("externalId pr", False),
        ("externalId eq null", False),
        ('not (externalId eq "x")', False),
        ('userName eq "x"', False),
        ('emails[value eq "x"]', False),
    ],
)
def test_who_looks_for_an_external_id(text: str, is_lookup: bool) -> None:
    assert has_external_id_eq(compiled(text)) is is_lookup


# Any filter -----------------------------------------------------------------------------------------------


def check(condition: Condition, resource: ResourceType, within: str | None = None) -> None:
    """Check that a condition says only what the directory understands."""
    match condition:
        case CompareCondition() | PresentCondition():
            assert condition.attribute in NAMES[resource]
            assert within is None or condition.attribute.startswith(f"{within}.")
        case ElementCondition():
            assert within is None
            assert condition.attribute in MULTIPLE[resource]
            check(condition.condition, resource, condition.attribute)
        case NotCondition():
            check(condition.condition, resource, within)
        case AllCondition() | AnyCondition():
            assert len(condition.conditions) > 1
            for inner in condition.conditions:
                check(inner, resource, within)
    if isinstance(condition, CompareCondition):
        check_value(condition, resource)


def check_value(compare: CompareCondition, resource: ResourceType) -> None:
    kind = attributes_by_path(resource)[compare.attribute.lower()].attribute.kind
    assert type(compare.value) is {Type.STRING: str, Type.BOOLEAN: bool, Type.DATE_TIME: int}[kind]
    assert isinstance(compare.value, str) or -(2**63) <= compare.value < 2**63


RESOURCES_AND_TEXTS = st.one_of(
    *(st.tuples(st.just(resource), filter_texts(resource)) for resource in ResourceType)
)
RESOURCES_AND_SPOILT = st.one_of(
    *(st.tuples(st.just(resource), spoilt_texts(resource)) for resource in ResourceType)
)


@given(pair=RESOURCES_AND_TEXTS)
@settings(deadline=None)
def test_every_filter_that_means_something_is_compiled(pair: tuple[ResourceType, str]) -> None:
    resource, text = pair

    check(compiled(text, resource), resource)


@given(pair=RESOURCES_AND_SPOILT)
@settings(deadline=None, max_examples=300)
def test_every_other_filter_is_refused_whole(pair: tuple[ResourceType, str]) -> None:
    resource, text = pair
    condition = refusal = None
    try:
        condition = compiled(text, resource)
    except GatewayError as error:
        refusal = error

    if condition is not None:
        check(condition, resource)
    else:
        assert refusal is not None
        assert refusal.code == "invalidFilter"


def test_conditions_keep_the_order_of_what_was_written() -> None:
    node = Negation(AttributeComparison(AttributeName("userName"), EQ, "ada"))

    assert compile_filter(node, ResourceType.USER) == NotCondition(CompareCondition("userName", EQ, "ada"))
    assert compiled('id pr and userName eq "a" and active eq true or id pr') == AnyCondition(
        (
            AllCondition(
                (
                    PresentCondition("id"),
                    CompareCondition("userName", EQ, "a"),
                    CompareCondition("active", EQ, True),
                )
            ),
            PresentCondition("id"),
        )
    )
