import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd import __version__
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.connector import UrlOrigin
from gatewayd.upstream.http.errors import TransportError
from gatewayd.upstream.http.request_head import CONNECTION_HEADERS, build_head

OURS = f"User-Agent: gatewayd/{__version__}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"


def refusal(*request) -> str:
    with pytest.raises(TransportError) as caught:
        build_head(*request)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    return caught.value.sentence


def test_whole_head():
    head = build_head("POST", "http://acme.test/v1/x?a=%26&b", {"Authorization": "Bearer k", "X-A": " é "})
    assert head.origin == UrlOrigin("acme.test", 80, is_tls=False)
    expected = (
        f"POST /v1/x?a=%26&b HTTP/1.1\r\nHost: acme.test\r\n{OURS}Authorization: Bearer k\r\nX-A: é\r\n"
        "Content-Length: 4\r\n\r\n"
    )
    assert head.join(b"body") == expected.encode()
    assert head.has_answer_body


def test_what_the_caller_gives_takes_the_place_of_ours():
    given = {"host": "other", "user-agent": "a", "ACCEPT": "b", "accept-encoding": "identity;q=1"}
    lines = build_head("GET", "http://acme.test/", given).join(None).decode().split("\r\n")
    assert lines == [
        "GET / HTTP/1.1",
        "host: other",
        "user-agent: a",
        "ACCEPT: b",
        "accept-encoding: identity;q=1",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("GET", None, None),
        ("HEAD", None, None),
        ("DELETE", None, None),
        ("DELETE", b"x", b"1"),
        ("GET", b"", b"0"),
        ("POST", None, b"0"),
        ("POST", b"", b"0"),
        ("PUT", None, b"0"),
        ("PATCH", b"xx", b"2"),
    ],
)
def test_length(method, body, length):
    head = build_head(method, "http://acme.test/", {}).join(body)
    assert head.endswith(b"\r\n\r\n")
    assert head.count(b"\r\n\r\n") == 1
    assert (head.partition(b"Content-Length: ")[2].strip() or None) == length


@pytest.mark.parametrize(
    ("url", "origin", "host", "target"),
    [
        ("http://a.test", UrlOrigin("a.test", 80, is_tls=False), "a.test", "/"),
        ("https://a.test:443/x", UrlOrigin("a.test", 443, is_tls=True), "a.test", "/x"),
        ("https://a.test:8443/x#y", UrlOrigin("a.test", 8443, is_tls=True), "a.test:8443", "/x"),
        ("http://[::1]:81/?q", UrlOrigin("::1", 81, is_tls=False), "[::1]:81", "/?q"),
        ("http://BÜCHER.test/ü x", UrlOrigin("xn--bcher-kva.test", 80, is_tls=False), None, "/%C3%BC%20x"),
        ("http://a.test/x%2Fy//z", UrlOrigin("a.test", 80, is_tls=False), "a.test", "/x%2Fy//z"),
    ],
)
def test_url(url, origin, host, target):
    head = build_head("GET", url, {})
    lines = head.lines.decode().split("\r\n")
    assert head.origin == origin
    assert lines[0] == f"GET {target} HTTP/1.1"
    assert lines[1] == f"Host: {host or origin.host}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/x",
        "a.test/x",
        "ftp://a.test/",
        "http://",
        "http:///x",
        "http://a.test:99999/",
        "http://a.test:0/",
        "http://user@a.test/",
        "http://:secret@a.test/",
        "http://a.test/\r\nX: y",
        "http://a.test/\nx",
        "http://a.test/\x00",
        "http://a.test/\x7f",
        "http://a.te\tst/",
        "http://a.test/\ud800",
        "http://[::1/",
        "http://" + "漢" * 100_000,
    ],
)
def test_url_that_cannot_be_asked_for(url):
    assert refusal("GET", url, {}) == "its URL is invalid"


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\rb", "a\x00b", "\x1b", "\x7f", "\ud800"])
def test_value_that_cannot_be_sent(value):
    sentence = refusal("GET", "http://a.test/", {"X-A": value})
    assert sentence == "the value of header 'X-A' has characters that cannot be sent"


@pytest.mark.parametrize(
    "name", ["", "X A", "X:", "X\r\nY", "é", *sorted(CONNECTION_HEADERS), "Content-length"]
)
def test_header_that_cannot_be_sent(name):
    assert refusal("GET", "http://a.test/", {name: "v"}) == f"a header named {name!r} cannot be sent"


@pytest.mark.parametrize("method", ["", "G ET", "GET\r\n", "GÉT"])
def test_method_that_is_not_one(method):
    assert refusal(method, "http://a.test/", {}) == "the method of the request is invalid"


def test_head_requests_have_an_answer_without_body():
    assert not build_head("HEAD", "http://a.test/", {}).has_answer_body


@given(
    st.text(), st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), st.binary(max_size=20)
)
def test_nothing_that_is_given_adds_a_line(path, headers, body):
    try:
        head = build_head("POST", f"http://a.test/{path}", headers)
    except TransportError:
        return
    start, end, rest = head.join(body).partition(b"\r\n\r\n")
    assert (end, rest) == (b"\r\n\r\n", b"")
    names = {name.lower() for name in headers}
    defaults = {"host", "user-agent", "accept", "accept-encoding"} - names
    assert len(start.split(b"\r\n")) == 2 + len(defaults) + len(headers)
    assert not {b"\r", b"\n", b"\x00"} & {bytes([c]) for c in start.replace(b"\r\n", b"")}
