"""Providers, runtimes and tool servers on the page."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.site import Site, wait_until

KEY = "right-key"
VIEW = "/admin/connections"
SERVERS = "/api/v1/configs/tool_servers"


class Handler(BaseHTTPRequestHandler):
    """A provider that wants a key, and a tool server; it notes the keys that it was sent."""

    keys: list[str]

    def do_GET(self) -> None:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.keys.append(key)
        if self.path == "/openapi.json":
            operation = {"operationId": "look_up", "summary": "Look something up", "responses": {}}
            info = {"title": "Encyclopedia", "version": "2.1"}
            self._answer(200, {"openapi": "3.1.0", "info": info, "paths": {"/look": {"get": operation}}})
        elif key != KEY:
            self._answer(401, {"error": {"message": f"no such key {key}"}})
        else:
            self._answer(200, {"object": "list", "data": [{"id": "big"}, {"id": "small"}]})

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[tuple[str, list[str]]]:
    keys: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"keys": keys}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", keys
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provider(site: Site) -> Iterator[tuple[str, list[str]]]:
    """Return a provider with the keys that it was sent; the gateway forgets it afterwards."""
    with serving() as opened:
        yield opened
        site.ok("POST", "/openai/config/update", {"OPENAI_API_BASE_URLS": []})
        site.ok("POST", SERVERS, {"TOOL_SERVER_CONNECTIONS": []})


def begin(page: Page, url: str, key: str) -> Locator:
    page.goto(VIEW)
    page.get_by_role("button", name="Add provider").click()
    dialog = page.get_by_role("dialog", name="Add provider")
    dialog.get_by_label("Address").fill(url)
    dialog.get_by_label("Key").fill(key)
    return dialog


def test_a_provider_is_tested_stored_and_used(
    page: Page, site: Site, provider: tuple[str, list[str]]
) -> None:
    url, keys = provider
    dialog = begin(page, f"{url}/v1", "wrong-key")
    dialog.get_by_role("button", name="Test connection").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Check the key and the address")
    expect(dialog.get_by_role("alert")).not_to_contain_text("wrong-key")
    dialog.get_by_label("Key").fill(KEY)
    dialog.get_by_role("button", name="Test connection").click()
    expect(dialog.get_by_role("status")).to_contain_text("Works: 2 models · big and small")
    dialog.get_by_label("Name").fill("Acme")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    row = page.get_by_role("row").filter(has_text="Acme")
    expect(row).to_contain_text("In use")
    expect(row.get_by_role("cell").nth(1)).to_have_text("2")
    shown = site.ok("GET", "/openai/config")
    assert shown["OPENAI_API_KEYS"][-1] == "********"
    assert {"big", "small"} <= {model["id"] for model in site.ok("GET", "/api/models?refresh=true")["data"]}

    row.get_by_role("button", name="Actions for Acme").click()
    page.get_by_role("menuitem", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit provider")
    expect(dialog.get_by_label("Key", exact=True)).to_have_value("")
    expect(dialog).to_contain_text("A value is stored and not shown.")
    dialog.get_by_label("Name").fill("Acme two")
    keys.clear()
    dialog.get_by_role("button", name="Test connection").click()
    expect(dialog.get_by_role("status")).to_contain_text("Works")
    assert set(keys) == {KEY}
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row").filter(has_text="Acme two")).to_be_visible()
    assert KEY not in page.content()

    page.get_by_role("button", name="Actions for Acme two").click()
    page.get_by_role("menuitem", name="Remove connection").click()
    dialog = page.get_by_role("dialog", name="Remove Acme two?")
    dialog.get_by_role("button", name="Remove connection").click()
    expect(page.get_by_role("row").filter(has_text="Acme two")).to_be_hidden()
    wait_until(lambda: len(site.ok("GET", "/openai/config")["OPENAI_API_KEYS"]) == 1, "the removal")


def test_an_unreachable_provider_says_so_and_the_form_stays(page: Page) -> None:
    dialog = begin(page, "http://127.0.0.1:9/v1", "k")
    dialog.get_by_role("button", name="Test connection").click()
    expect(dialog.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(dialog.get_by_label("Address")).to_have_value("http://127.0.0.1:9/v1")


def test_a_wrong_address_is_told_when_the_field_is_left(page: Page) -> None:
    dialog = begin(page, "api.example.com", "k")
    expect(dialog.get_by_text("Enter an address that starts with http")).to_be_visible()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("Address").fill("https://user:pass@api.example.com")
    dialog.get_by_label("Key").focus()
    expect(dialog.get_by_text("contains a password")).to_be_visible()


def test_a_refused_name_stands_at_its_field_and_nothing_is_lost(page: Page, site: Site) -> None:
    dialog = begin(page, "http://127.0.0.1:9/v1", "k")
    dialog.get_by_label("Name").fill("hosted")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("another provider has the name 'hosted'")).to_be_visible()
    expect(dialog.get_by_label("Address")).to_have_value("http://127.0.0.1:9/v1")
    assert len(site.ok("GET", "/openai/config")["OPENAI_API_KEYS"]) == 1


def test_a_provider_of_the_file_is_locked_with_its_place(page: Page) -> None:
    page.goto(VIEW)
    row = page.get_by_role("row").filter(has_text="hosted")
    expect(row).to_contain_text("gatewayd.toml line 2")
    row.get_by_role("button", name="Actions for hosted").click()
    expect(page.get_by_role("menuitem")).to_have_text(["Test connection"])


def test_a_change_of_another_administrator_is_not_overwritten(
    page: Page, site: Site, provider: tuple[str, list[str]]
) -> None:
    dialog = begin(page, "http://127.0.0.1:9/v1", "k")
    site.ok("POST", "/openai/config/update", {"OPENAI_API_BASE_URLS": [f"{provider[0]}/v1"]})
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("the providers have changed since they were read")
    assert len(site.ok("GET", "/openai/config")["OPENAI_API_KEYS"]) == 2


def test_a_tool_server_is_tested_and_stored(page: Page, site: Site, provider: tuple[str, list[str]]) -> None:
    page.goto(f"{VIEW}?tab=servers")
    page.get_by_role("button", name="Add tool server").click()
    dialog = page.get_by_role("dialog", name="Add tool server")
    dialog.get_by_label("Id", exact=True).fill("books")
    dialog.get_by_label("Address").fill(provider[0])
    dialog.get_by_label("Key").fill("server-key")
    dialog.get_by_role("button", name="Test connection").click()
    expect(dialog.get_by_role("status").filter(has_text="Encyclopedia 2.1 · 1 tool")).to_be_visible()
    expect(dialog.get_by_text("look_up")).to_be_visible()
    assert provider[1][-1] == "server-key"
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row").filter(has_text="books")).to_contain_text("Administrators only")
    (stored,) = site.ok("GET", SERVERS)["TOOL_SERVER_CONNECTIONS"]
    assert (stored["info"]["id"], stored["key"]) == ("books", "********")


def test_others_are_refused(user_page: Page, site: Site) -> None:
    user_page.goto(VIEW)
    expect(user_page.get_by_role("heading", name="You may not do this").first).to_be_visible()
    assert site.call("GET", "/openai/config", None, site.user)[0] == 403
