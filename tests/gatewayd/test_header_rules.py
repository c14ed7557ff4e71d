import pytest

from gatewayd.header_rules import MAX_HEADER_CHARACTERS, MAX_HEADERS, find_header_problem


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("X-Team", "a b"), ("aoai-evals", "preview")],
        [("X-Long", "x" * MAX_HEADER_CHARACTERS)],
    ],
)
def test_headers_that_a_request_can_have(headers):
    assert find_header_problem(headers, has_key=True) is None


def test_a_header_may_be_the_credential():
    assert find_header_problem([("Authorization", "Basic abc")], has_key=False) is None


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([("X Team", "a")], "no name of a header"),
        ([("", "a")], "no name of a header"),
        ([("x" * 200, "a")], "no name of a header"),
        ([("Host", "a")], "the gateway writes it"),
        ([("transfer-encoding", "chunked")], "the gateway writes it"),
        ([("X-A", "a"), ("x-a", "b")], "it is there twice"),
        ([("Authorization", "Basic abc")], "beside a key"),
        ([("X-A", "a\r\nX-B: b")], "visible ASCII"),
        ([("X-A", "")], "visible ASCII"),
        ([("X-A", " a")], "visible ASCII"),
        ([("X-A", "é")], "visible ASCII"),
        ([("X-A", "x" * (MAX_HEADER_CHARACTERS + 1))], "visible ASCII"),
        ([(f"X-{number}", "a") for number in range(MAX_HEADERS + 1)], "over 32"),
    ],
)
def test_headers_that_are_refused(headers, words):
    assert words in str(find_header_problem(headers, has_key=True))
