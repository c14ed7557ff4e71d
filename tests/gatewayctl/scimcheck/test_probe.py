"""Requests over HTTP and HTTPS, and why there is no answer."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.scimcheck.address import Base, read_base
from gatewayctl.scimcheck.probe import HttpProbe, explain, make_context
from gatewayctl.scimcheck.records import Ask, Unanswered
from tests.fakes.http.certificates import Authority


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked, or with a redirect."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = {
            "method": self.command,
            "target": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(length).decode(),
        }
        body = json.dumps(asked).encode()
        self.send_response(302 if "redirect" in self.path else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - named by the library

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Quiet(HTTPServer):
    """Keeps failures of the handshake to itself."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@contextlib.contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve the echo on a port of its own."""
    server = Quiet(("127.0.0.1", 0), Echo)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def probe_of(port: int, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> HttpProbe:
    scheme = "https" if context is not None else "http"
    return HttpProbe(read_base(f"{scheme}://{host}:{port}"), "the-token", context)


def test_requests_are_those_of_a_provider() -> None:
    with serving() as port:
        answer = probe_of(port).send(Ask("GET", "/Users", {"filter": 'userName eq "a&b"'}))
    asked = answer.resource
    assert asked["target"] == "/api/v1/scim/v2/Users?filter=userName+eq+%22a%26b%22"
    assert asked["headers"]["authorization"] == "Bearer the-token"
    assert asked["headers"]["accept"] == "application/scim+json"
    assert "content-type" not in asked["headers"]
    assert answer.headers["location"] == "/elsewhere"


def test_bodies_and_other_tokens() -> None:
    with serving() as port:
        posted = (
            probe_of(port).send(Ask("POST", "/Groups", body={"displayName": "é"}, token="other")).resource
        )
        bare = probe_of(port).send(Ask("GET", "/Users", token=None)).resource
    assert json.loads(posted["body"]) == {"displayName": "é"}
    assert posted["headers"]["content-type"] == "application/scim+json"
    assert posted["headers"]["authorization"] == "Bearer other"
    assert "authorization" not in bare["headers"]


def test_a_redirect_is_not_followed() -> None:
    with serving() as port:
        answer = probe_of(port).send(Ask("GET", "/redirect"))
    assert (answer.status, answer.headers["location"]) == (302, "/elsewhere")


def test_certificates_are_checked_unless_told_otherwise(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with serving(authority.serve("127.0.0.1")) as port:
        base = read_base(f"https://127.0.0.1:{port}")
        assert probe_of(port, authority.trust()).send(Ask("GET", "/Users")).status == 200
        with pytest.raises(Unanswered) as caught:
            probe_of(port, make_context(base, None, is_insecure=False)).send(Ask("GET", "/Users"))
        assert "is not trusted" in caught.value.fault.detail
        assert "--ca" in caught.value.fault.advice
        insecure = make_context(base, None, is_insecure=True)
        assert probe_of(port, insecure).send(Ask("GET", "/Users")).status == 200


def test_a_file_of_certificates(tmp_path: Path) -> None:
    (tmp_path / "certificates").mkdir()
    authority = Authority(tmp_path / "certificates")
    authority.serve("127.0.0.1")
    [pem] = (tmp_path / "certificates").iterdir()
    base = read_base("https://127.0.0.1")
    context = make_context(base, pem, is_insecure=False)
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert make_context(read_base("http://127.0.0.1"), pem, is_insecure=False) is None
    for bad in (tmp_path / "no", Path(__file__)):
        with pytest.raises(CommandError, match="cannot read --ca"):
            make_context(base, bad, is_insecure=False)


def test_plain_and_encrypted_are_told_apart(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with serving() as port, pytest.raises(Unanswered) as caught:
        probe_of(port, authority.trust()).send(Ask("GET", "/Users"))
    assert "http://" in caught.value.fault.advice
    with serving(authority.serve("127.0.0.1")) as port, pytest.raises(Unanswered) as caught:
        probe_of(port).send(Ask("GET", "/Users"))
    assert "https://" in caught.value.fault.advice


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Unanswered) as caught:
            probe_of(taken.getsockname()[1]).send(Ask("GET", "/Users"))
    assert caught.value.fault.detail.startswith("nobody listens on 127.0.0.1:")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (socket.gaierror(-2, "Name or service not known"), "there is no address for h"),
        (TimeoutError("timed out"), "no answer from h:443 in time"),
        (ConnectionResetError(104, "Connection reset by peer"), "closed the connection"),
        (http.client.BadStatusLine("x"), "does not speak HTTP"),
        (OSError(113, "No route to host"), "cannot reach h:443: no route to host"),
    ],
)
def test_other_reasons(error: OSError, detail: str) -> None:
    assert detail in explain(error, Base(is_secure=True, host="h", port=443, path="/")).detail
