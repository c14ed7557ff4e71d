"""Tests for gatewayd.http.public.scim.messages."""

from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.scim.messages import (
    LIST_RESPONSE,
    MAX_INTEGER,
    QueryParameters,
    list_reply,
    parse_projection,
    parse_search,
    read_query,
    scim_reply,
    search_reply,
)
from gatewayd.http.responses.json_parts import PartsReply
from gatewayd.scim.records import ResourceType, ScimSearchResult, SearchParameters


def query(text: str) -> QueryParameters:
    return read_query(make_mocked_request("GET", f"/x?{text}"))


def refusal(asked: QueryParameters) -> tuple[str | None, str | None]:
    with pytest.raises(GatewayError) as caught:
        parse_search(asked)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    return caught.value.code, caught.value.param


def content(answer: web.StreamResponse) -> Any:
    assert isinstance(answer, web.Response)
    assert isinstance(answer.body, bytes)
    return orjson.loads(answer.body)


def test_a_query_without_parameters_asks_for_nothing_in_particular() -> None:
    assert query("") == {}
    assert parse_search({}) == SearchParameters()
    assert not parse_projection({}, ResourceType.USER).is_asked


def test_each_parameter_has_its_place() -> None:
    asked = query("filter=id%20pr&startindex=3&COUNT=7&sortBy=userName&sortOrder=Descending&other=1")
    assert parse_search(asked) == SearchParameters("id pr", 3, 7, "userName", descending=True)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("007", 7),
        ("-12", -12),
        ("9" * 15, 10**15 - 1),
        ("9" * 16, MAX_INTEGER),
        ("-" + "9" * 9000, -MAX_INTEGER),
        ("0" * 9000 + "5", 5),
    ],
)
def test_numbers_of_any_length_are_read(text: str, number: int) -> None:
    assert parse_search({"count": text}).count == number
    assert parse_search({"startIndex": text}).start_index == number


@pytest.mark.parametrize("value", ["", " 1", "1 ", "+1", "1.0", "1e3", "0x1", "--1", "-", "\u0661", "1\n"])
def test_what_is_no_whole_number_is_refused(value: str) -> None:
    assert refusal({"count": value}) == ("invalidValue", "count")


def test_numbers_of_a_body_are_kept_in_bounds_too() -> None:
    assert parse_search({"count": 2**63, "startIndex": -(2**63)}) == SearchParameters(
        start_index=-MAX_INTEGER, count=MAX_INTEGER
    )


def test_names_are_listed_or_joined() -> None:
    for sent in ("userName,emails", ["userName", "emails"], ["userName,emails"]):
        projection = parse_projection({"attributes": sent}, ResourceType.USER)
        assert (projection.wants("userName"), projection.wants("active")) == (True, False)
    excluded = parse_projection({"excludedAttributes": ["groups"]}, ResourceType.USER)
    assert (excluded.wants("groups"), excluded.wants("active")) == (False, True)


def test_answers_have_the_media_type_of_scim() -> None:
    answer = scim_reply({"id": "1"}, 201, {"Location": "/x"})
    assert (answer.status, answer.headers["Location"]) == (201, "/x")
    assert answer.headers["Content-Type"] == "application/scim+json"
    assert content(answer) == {"id": "1"}


def test_nothing_to_show_is_an_answer_without_a_body() -> None:
    answer = scim_reply(None)
    assert isinstance(answer, web.Response)
    assert (answer.status, answer.body) == (204, None)


async def test_lists_tell_where_they_are() -> None:
    assert content(await list_reply([{"id": "1"}], 1)) == {
        "schemas": [LIST_RESPONSE],
        "totalResults": 1,
        "startIndex": 1,
        "itemsPerPage": 1,
        "Resources": [{"id": "1"}],
    }
    page = content(await search_reply(ScimSearchResult([], 9, 10), []))
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (9, 10, 0)
    assert page["Resources"] == []


async def test_a_large_list_comes_in_parts() -> None:
    resources = [{"id": str(number), "members": [{"value": "m" * 40}] * 50} for number in range(200)]
    answer = await list_reply(resources, 200)
    assert isinstance(answer, PartsReply)
    assert (answer.status, answer.content_type) == (200, "application/scim+json")
    assert (answer.content_length or 0) > 500_000
