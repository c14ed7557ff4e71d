"""Tests for gatewayd.upstream.tools.openapi_operations."""

from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.tools.openapi_operations import (
    MAX_FUNCTIONS,
    OpenApiOperation,
    read_description,
    request_target,
    tool_name,
)
from gatewayd.upstream.tools.openapi_schemas import SchemaError
from tests.fakes.http.tool_servers import TICKETS, description, json_body, operation, parameter


def only(document: dict[str, Any]) -> OpenApiOperation:
    (found,) = read_description(document).operations
    return found


def one(**more: Any) -> OpenApiOperation:
    return only(description(things={"post": operation("make", **more)}))


def test_a_description_says_who_it_is_and_what_it_offers() -> None:
    found = read_description(TICKETS)
    assert (found.title, found.version) == ("Tickets", "7")
    names = [each.name for each in found.operations]
    assert names[:3] == ["get_ticket", "change_ticket", "list_tickets"]
    assert len(names) == 11


def test_parameters_and_properties_are_one_object() -> None:
    found = read_description(TICKETS, ["change_ticket"]).operations[0]
    assert found.spec == {
        "name": "change_ticket",
        "description": "Does change_ticket.",
        "parameters": {
            "type": "object",
            "properties": {
                "ticket": {"type": "string", "description": "Its number."},
                "title": {"type": "string"},
                "parent": {"type": "object"},
            },
            "required": ["ticket", "title"],
        },
    }
    assert (found.method, found.path, found.has_body) == ("PUT", "/tickets/{ticket}", True)


def test_own_parameters_win_over_those_of_the_path() -> None:
    item = {
        "parameters": [parameter("a", "query"), parameter("h", "header")],
        "get": operation("read", parameters=[parameter("a", "query", "integer", required=True)]),
    }
    schema = only(description(things=item)).spec["parameters"]
    assert schema == {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_bodies_that_are_composed() -> None:
    schema = {
        "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}}],
        "oneOf": [{"properties": {"c": {}}, "required": ["c"]}, {"properties": {"d": {}}, "required": ["d"]}],
    }
    parameters = one(**json_body(schema)).spec["parameters"]
    assert (list(parameters["properties"]), parameters["required"]) == (["a", "b", "c", "d"], ["a"])


def test_a_body_that_is_no_object_has_a_name() -> None:
    found = one(**json_body({"type": "array", "items": {"type": "string"}}))
    assert found.is_bare
    assert found.spec["parameters"]["properties"] == {"body": {"type": "array", "items": {"type": "string"}}}
    assert found.spec["parameters"]["required"] == ["body"]


def test_json_is_chosen_among_the_forms_of_a_body() -> None:
    content = {
        "text/xml": {"schema": {"type": "string"}},
        "application/json": {"schema": {"properties": {"a": {}}}},
    }
    assert list(one(requestBody={"content": content}).spec["parameters"]["properties"]) == ["a"]
    assert one(requestBody={}).has_body


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (None, "no 'paths'"),
        ([], "no 'paths'"),
        ({"paths": []}, "no 'paths'"),
        (description(a={"$ref": "#/nowhere"}), "refers to '#/nowhere'"),
        (description(a={"get": operation("x", parameters=[{"$ref": "#/y"}])}), "refers to '#/y'"),
        (description(a={"get": operation("x", **json_body({"$ref": "b.json"}))}), "refers to 'b.json'"),
        (
            description(
                a={"get": operation("x", parameters=[parameter(str(n), "query") for n in range(300)])}
            ),
            "parameters",
        ),
    ],
)
def test_descriptions_that_are_none(document: Any, sentence: str) -> None:
    with pytest.raises(SchemaError, match=sentence):
        read_description(document)


def test_odd_parts_are_left_out() -> None:
    document = {
        "info": "x",
        "paths": {
            "/a": {"get": 3, "post": operation("b", parameters=[3, {}, {"name": 4, "in": "query"}])},
            "/c": None,
            "/d": {"get": {"operationId": 4}, "put": {"operationId": " "}},
            "e": {"get": operation("e", requestBody=3, description=4, summary=None)},
        },
    }
    found = read_description(document)
    assert [(each.name, each.path) for each in found.operations] == [("b", "/a"), ("e", "/e")]
    assert found.title == ""


def test_too_many_operations_are_told_to_be_chosen_from() -> None:
    paths = {f"p{n}": {"get": operation(f"f{n}")} for n in range(10_000)}
    with pytest.raises(SchemaError, match=f"10000 operations, and the limit is {MAX_FUNCTIONS}"):
        read_description(description(**paths))
    assert [each.name for each in read_description(description(**paths), ["f9", "f3"]).operations] == [
        "f3",
        "f9",
    ]


def test_names_are_those_that_models_take() -> None:
    assert tool_name("a.b c/ü") == "a_b_c__"
    assert len(tool_name("x" * 100)) == 64
    assert one().name == "make"


def located(path: str, **arguments: Any) -> str:
    parameters = [parameter("q", "query"), parameter("r", "query")]
    found = only({"paths": {path: {"get": operation("f", parameters=parameters)}}})
    return request_target(found, arguments)


def test_addresses() -> None:
    assert (
        located("/a/{b}/c", b="x y/ü?#", q="1&2", r=[True, 3])
        == "/a/x%20y%2F%C3%BC%3F%23/c?q=1%262&r=true&r=3"
    )
    assert located("/a/{b}", b=["x", 2], q=None, r={"k": "ä"}) == "/a/x,2?r=%7B%22k%22%3A+%22%C3%A4%22%7D"
    assert located("/a/{b}", b="\ud800") == "/a/%3F"
    assert located("@evil.test/{b}", b=1) == "/@evil.test/1"


@pytest.mark.parametrize("value", [None, "", ".", "..", [".."]])
def test_arguments_stay_inside_their_place(value: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        located("/a/{b}/c", b=value)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


def test_two_arguments_cannot_make_a_way_out() -> None:
    with pytest.raises(GatewayError, match="out of its path"):
        located("/a/{b}{c}", b=".", c=".")
