import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.filters.conditions import CompareCondition, Operator
from gatewayd.scim.filters.list_query import MAX_START_INDEX, plan_query, start_index_of
from gatewayd.scim.records import ResourceQuery, ResourceType, SearchParameters

HUGE = 10**40


def planned(
    search: SearchParameters, resource: ResourceType = ResourceType.USER, provider: str = "okta"
) -> ResourceQuery:
    return plan_query(search, resource, provider)


def test_nothing_asked_for_is_the_first_hundred() -> None:
    assert planned(SearchParameters()) == ResourceQuery(provider="okta", offset=0, limit=100)


@pytest.mark.parametrize(
    ("start", "shown"), [(None, 1), (1, 1), (0, 1), (-5, 1), (-HUGE, 1), (7, 7), (HUGE, MAX_START_INDEX)]
)
def test_where_a_page_starts(start: int | None, shown: int) -> None:
    search = SearchParameters(start_index=start)
    assert start_index_of(search) == shown
    assert planned(search).offset == shown - 1


@pytest.mark.parametrize(
    ("count", "limit"),
    [(None, 100), (0, 0), (-1, 0), (-HUGE, 0), (3, 3), (200, 200), (201, 200), (HUGE, 200)],
)
def test_how_long_a_page_is(count: int | None, limit: int) -> None:
    assert planned(SearchParameters(count=count)).limit == limit


def test_every_number_fits_a_database() -> None:
    query = planned(SearchParameters(start_index=HUGE, count=HUGE))
    assert query.offset + query.limit < 2**31


def test_a_filter_becomes_a_condition() -> None:
    query = planned(SearchParameters(filter='USERNAME Eq "ada@x"'))
    assert query.condition == CompareCondition("userName", Operator.EQ, "ada@x")


@pytest.mark.parametrize("text", ["", " ", "userName", 'nothing eq "1"', "userName eq ada"])
def test_a_bad_filter_is_refused(text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        planned(SearchParameters(filter=text))
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "invalidFilter")


@pytest.mark.parametrize(
    ("resource", "name", "sort"),
    [
        (ResourceType.USER, "userName", "userName"),
        (ResourceType.USER, "USERNAME", "userName"),
        (ResourceType.USER, "urn:ietf:params:scim:schemas:core:2.0:User:userName", "userName"),
        (ResourceType.USER, "name.familyName", "name.familyName"),
        (ResourceType.USER, "active", "active"),
        (ResourceType.USER, "meta.lastModified", "meta.lastModified"),
        (ResourceType.USER, "emails", "emails.value"),
        (ResourceType.USER, "emails.value", "emails.value"),
        (ResourceType.USER, "externalId", "externalId"),
        (ResourceType.USER, "id", "id"),
        (ResourceType.GROUP, "displayname", "displayName"),
        (ResourceType.GROUP, "meta.created", "meta.created"),
    ],
)
def test_what_to_sort_by(resource: ResourceType, name: str, sort: str) -> None:
    query = planned(SearchParameters(sort_by=name, descending=True), resource)
    assert (query.sort, query.descending) == (sort, True)


def test_an_order_needs_something_to_sort_by() -> None:
    assert not planned(SearchParameters(descending=True)).descending


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (ResourceType.USER, ""),
        (ResourceType.USER, "nothing"),
        (ResourceType.USER, "password"),
        (ResourceType.USER, "name"),
        (ResourceType.USER, "meta"),
        (ResourceType.USER, "meta.location"),
        (ResourceType.USER, "meta.resourceType"),
        (ResourceType.USER, "emails.type"),
        (ResourceType.USER, "groups"),
        (ResourceType.USER, "groups.value"),
        (ResourceType.GROUP, "members"),
        (ResourceType.GROUP, "userName"),
        (ResourceType.USER, "x" * 10_000),
    ],
)
def test_what_cannot_be_sorted_by(resource: ResourceType, name: str) -> None:
    with pytest.raises(GatewayError, match="sortBy") as caught:
        planned(SearchParameters(sort_by=name), resource)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "invalidValue")
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "search",
    [
        SearchParameters(filter='externalId eq "7"'),
        SearchParameters(filter='userName eq "a" or not (externalid pr)'),
        SearchParameters(sort_by="externalId"),
    ],
)
def test_external_ids_of_nobody(search: SearchParameters) -> None:
    planned(search, provider="okta")
    with pytest.raises(GatewayError) as caught:
        planned(search, provider="")
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
