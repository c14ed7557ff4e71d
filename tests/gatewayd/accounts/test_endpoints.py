import pytest

from gatewayd.accounts.endpoints import EndpointRule, allows, parse, warnings_for

LIST = "/api/models, /api/v1/files/,/api/chat,, GET /api/v1/users ,/ollama/*,/api/v1/know*"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/models", True),
        ("GET", "/api/models/", True),
        ("GET", "/api/models/llama", True),
        ("GET", "/api/modelsx", False),
        ("GET", "/api/v1/models", False),
        ("POST", "/api/v1/files/", True),
        ("POST", "/api/v1/files", True),
        ("GET", "/api/v1/files/abc", False),
        ("POST", "/api/chat/completions", True),
        ("GET", "/api/v1/users", True),
        ("HEAD", "/api/v1/users/all", True),
        ("get", "/api/v1/users", True),
        ("POST", "/api/v1/users", False),
        ("POST", "/ollama/api/chat", True),
        ("GET", "/ollama/", True),
        ("GET", "/ollamas", False),
        ("GET", "/api/v1/knowledge/1", True),
        ("GET", "/api/v1/auths/", False),
        ("GET", "/API/models", False),
    ],
)
def test_the_matrix(method: str, path: str, allowed: bool) -> None:
    assert allows(parse(LIST), method, path) is allowed


@pytest.mark.parametrize("text", ["", " , ,", "*", "api/models", "FETCH /api/models"])
def test_lists_that_allow_nothing(text: str) -> None:
    assert not allows(parse(text), "GET", "/api/models")


def test_one_entry_for_everything() -> None:
    assert allows(parse("/*"), "DELETE", "/anything")
    assert allows(parse("/*"), "GET", "/")


def test_the_root_is_only_itself_and_what_is_below() -> None:
    assert allows(parse("/"), "GET", "/")
    assert not allows(parse("/"), "GET", "/api")


def test_parsing() -> None:
    assert parse(" get  /a ,/b") == (EndpointRule("GET", "/a"), EndpointRule(None, "/b"))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("api/models", "starts with a slash"),
        ("*", "every path is '/*'"),
        ("/api/*/models", "only at the end"),
        ("FETCH /api", "is no method"),
        ("/api//x", "no routed path"),
        ("/api/../x", "no routed path"),
        ("/api?x=1", "no routed path"),
        ("/api/%41", "no routed path"),
        ("GET /api /x", "no routed path"),
    ],
)
def test_entries_that_match_nothing_are_told(entry: str, reason: str) -> None:
    warnings = warnings_for(f"/api/models,{entry}")
    assert len(warnings) == 1
    assert reason in warnings[0]


def test_good_lists_have_no_warnings() -> None:
    assert warnings_for(LIST) == []
