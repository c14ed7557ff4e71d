"""Foreign texts in the views for administrators are texts: nothing of them runs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.page.site import Site, opened_site

ATTACK = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script><a href="javascript:hit=1">go</a>'
SHORT = "<img src=x onerror=window.hit=1>"
VALVES = f'''"""
title: {SHORT}
description: {SHORT}
"""
from pydantic import BaseModel, Field

class Filter:
    class Valves(BaseModel):
        word: str = Field({SHORT!r}, title={SHORT!r}, description={SHORT!r})

    def __init__(self):
        self.valves = self.Valves()

    def inlet(self, body):
        raise ValueError({SHORT!r})
'''
VIEWS = (
    "connections",
    "connections?tab=servers",
    "models",
    "functions",
    "tools",
    "collections",
    "scim",
    "status",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("x"), SCIM_ENABLED="true", SCIM_AUTH_PROVIDER="okta") as opened:
        fill(opened)
        yield opened


def fill(site: Site) -> None:
    """Put the attacks wherever an administrator, a user or a client may put a text."""
    body = {"OPENAI_API_BASE_URLS": ["http://127.0.0.1:9/v1"], "OPENAI_API_CONFIGS": {"0": {"name": SHORT}}}
    site.ok("POST", "/openai/config/update", body)
    server = {"url": "http://127.0.0.1:9", "info": {"id": "s", "name": SHORT, "description": ATTACK}}
    site.ok("POST", "/api/v1/configs/tool_servers", {"TOOL_SERVER_CONNECTIONS": [server]})
    preset = {"id": SHORT, "name": ATTACK, "base_model_id": "echo", "meta": {"description": ATTACK}}
    site.ok("POST", "/api/v1/models/create", preset)
    site.ok("POST", "/api/v1/functions/create", {"id": "bad", "name": "", "content": VALVES, "meta": {}})
    site.ok("POST", "/api/v1/functions/id/bad/toggle")
    site.ok("POST", "/api/v1/functions/id/bad/toggle/global")
    site.call(
        "POST", "/api/chat/completions", {"model": "echo", "messages": [{"role": "user", "content": "a"}]}
    )
    tool = "class Tools:\n    def a(self) -> str:\n        '''A.'''\n        return ''\n"
    content = {"id": "t", "name": ATTACK[:200], "content": tool, "meta": {"description": ATTACK}}
    site.ok("POST", "/api/v1/tools/create", content)
    site.ok("POST", "/api/v1/knowledge/create", {"name": ATTACK[:200], "description": ATTACK})
    site.ok("POST", "/api/v1/groups/create", {"name": SHORT, "description": ATTACK})
    site.daemon.call("GET", f"/api/v1/scim/v2/Users?filter={'%3Cimg%20src%3Dx%20onerror%3Dhit%3D1%3E'}")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_of_a_foreign_text_runs(page: Page, view: str) -> None:
    page.goto(f"/admin/{view}")
    expect(page.locator("main .skeleton")).to_have_count(0)
    if view not in {"scim", "status"}:
        expect(page.get_by_role("main").get_by_text("<img src=x").first).to_be_visible()
    check(page)


def test_nothing_runs_in_dialogs(page: Page) -> None:
    page.goto("/admin/functions")
    page.get_by_role("button", name=f"Actions for {SHORT}").click()
    page.get_by_role("menuitem", name="Valves").click()
    expect(page.get_by_role("dialog").get_by_label(SHORT)).to_be_visible()
    check(page)
    page.goto("/admin/models")
    page.get_by_role("button", name="Administrators only: access to echo").click()
    page.get_by_label("Access", exact=True).select_option("some")
    page.get_by_role("dialog").get_by_role("button", name=SHORT).click()
    check(page)


def check(page: Page) -> None:
    assert page.evaluate("() => window.hit") is None
    assert page.locator("main img[src=x], main script, a[href^=javascript], dialog img[src=x]").count() == 0
