"""Odd model ids, tool names and request ids, on every row that takes one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gatewayd.http.routes import BASES
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.failing_provider_site import make_key
from tests.fakes.daemons.role_site import Site, opened_roles
from tests.fakes.http.raw_http import send
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.questions import CHAT, EMBEDDING, MESSAGE, RUNTIME_CHAT, TURNS, Question


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s")) as opened:
        yield opened


NAMES = (
    "a/b/c", "100%", "%2F", "%", "é🙂", "a b", "a:1b", "x?y=1", "x#y", "x&y", "..a", "a+b", '"q"', "<script>",
    "'", "{id}", "${x}", "x" * 256, "a@b;c,d", "~", "مرحبا", "models",
)  # fmt: skip
PROVIDERS = """
[[providers]]
name = "hosted"
base_url = "{url}/v1"

[[providers]]
name = "runtime"
kind = "ollama"
base_url = "{url}"
prefix = "l/%"
"""


def test_models_may_have_any_printable_name(tmp_path: Path) -> None:
    with background_upstream(NAMES, kind=Everything) as provider:
        file = tmp_path / "gatewayd.toml"
        file.write_text(PROVIDERS.format(url=provider.url))
        with running_daemon(tmp_path / "s", "-f", str(file), ENABLE_API_KEYS="true") as daemon:
            signed = {"Authorization": f"Bearer {make_key(daemon)}"}
            for base in BASES:
                listed = daemon.call("GET", f"{base}/models?refresh=true", None, signed)[1]["data"]
                assert {model["id"] for model in listed} == {*NAMES, *(f"l/%{name}" for name in NAMES)}
            for name in NAMES:
                for base in BASES:
                    reply = send(
                        daemon.base_url, "GET", f"{base}/models/{quote(name, safe='')}", None, signed
                    )
                    assert (reply.status, reply.json.get("id")) == (200, name), (base, reply)
                for question, model in odd_questions(name):
                    body = question.asked(model, stream=False)
                    reply = send(daemon.base_url, "POST", question.path, body, signed)
                    assert reply.status == 200, (question, name, reply)
                    assert provider.last().json["model"] == name
            assert "Traceback" not in "".join(daemon.log)


def odd_questions(name: str) -> list[tuple[Question, str]]:
    return [(CHAT, name), (MESSAGE, name), (EMBEDDING, name), (RUNTIME_CHAT, f"l/%{name}")]


ODD_PATHS = (
    "none", "a%2Fb", "a/b/c", "..%2f..%2fhealth", "%25", "100%25", "%F0%9F%99%82", "a" * 7000, "%3Cscript%3E",
    "a%0d%0aX-Evil:%201", "%ff", "%C0%AE", "%ED%A0%80", "%", "%zz", "%2e%2e", "%00", "o%00m",
)  # fmt: skip


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("headers", [{}, {"anthropic-version": "2023-06-01"}], ids=["openai", "anthropic"])
def test_odd_ids_are_not_found(site: Site, base: str, headers: dict[str, str]) -> None:
    for path in ODD_PATHS:
        reply = site.send("GET", f"{base}/models/{path}", None, site.admin, headers)
        assert reply.status == 404, (path, reply)
        assert "x-evil" not in reply.headers
        assert len(reply.body) < 2048
        assert reply.json["detail"]


TOOL_NAMES = ("x\r\nX-Evil: 1", "a" * 10_000, "é\u2028", "\x00", "\x1b[31m", '", "')


@pytest.mark.parametrize("name", TOOL_NAMES, ids=range(len(TOOL_NAMES)))
def test_what_callers_name_stays_within_one_header(site: Site, name: str) -> None:
    tools: list[dict[str, Any]] = [{"type": "web_search_20250305", "name": name}]
    body = {"model": "o.m", "max_tokens": 5, "messages": TURNS, "tools": tools, name: 1}
    for stream in (False, True):
        sent = json.dumps({**body, "stream": stream}).encode()
        reply = site.send("POST", "/v1/messages", sent, site.admin)
        assert_one_header(reply)
    for stream in (False, True):
        asked = {"model": "o.m", "messages": TURNS, "options": {name: 1}, "stream": stream}
        reply = site.send("POST", "/ollama/api/chat", json.dumps(asked).encode(), site.admin)
        assert_one_header(reply)


def assert_one_header(reply: Any) -> None:
    assert reply.status == 200, reply
    assert "x-evil" not in reply.headers
    warning = reply.headers["x-gateway-warning"]
    assert 0 < len(warning) <= 2048
    assert warning.isprintable()
    assert warning.isascii()


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/models", "/ollama/api/tags"])
def test_request_ids_are_taken_over_if_they_are_sane(site: Site, path: str) -> None:
    method, body = ("POST", b"{}") if path == "/v1/messages" else ("GET", None)
    for given, kept in (
        ("abc-1.2_Z", True),
        ("a b", False),
        ("x" * 65, False),
        ("a\tb", False),
        ("é", False),
    ):
        sent = {"X-Request-Id": given.encode().decode("latin-1")}
        reply = site.send(method, path, body, site.admin, sent)
        assert (reply.headers["x-request-id"] == given) is kept
        assert reply.headers.get("request-id", reply.headers["x-request-id"]) == reply.headers["x-request-id"]
