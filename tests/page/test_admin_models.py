"""Models on the page: who may use them, presets. The gateway of these tests checks access lists."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.page.site import Site, opened_site

VIEW = "/admin/models"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("m"), BYPASS_MODEL_ACCESS_CONTROL="false") as opened:
        yield opened


def seen_by_user(site: Site) -> set[str]:
    return {model["id"] for model in site.ok("GET", "/api/models", None, site.user)["data"]}


def test_a_model_is_given_to_a_group_and_taken_from_all_others(page: Page, site: Site) -> None:
    group = site.ok("POST", "/api/v1/groups/create", {"name": "Readers", "description": ""})
    page.goto(VIEW)
    row = page.get_by_role("row").filter(has_text="echo")
    row.get_by_role("button", name="Administrators only: access to echo").click()
    dialog = page.get_by_role("dialog", name="Access to echo")
    dialog.get_by_label("Access", exact=True).select_option("everybody")
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Everybody")
    assert "echo" in seen_by_user(site)

    row.get_by_role("button", name="Everybody: access to echo").click()
    dialog.get_by_label("Access", exact=True).select_option("some")
    dialog.get_by_label("Search groups and people").fill("read")
    dialog.get_by_role("button", name="Readers").click()
    expect(dialog.get_by_role("list", name="Chosen groups and people")).to_contain_text("Readers")
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("1 group or person")
    assert "echo" not in seen_by_user(site)

    site.ok("POST", f"/api/v1/groups/id/{group['id']}/users/add", {"user_ids": [site.user.id]})
    assert "echo" in seen_by_user(site)

    row.get_by_role("switch", name="echo is active").click()
    expect(row.get_by_role("switch")).not_to_be_checked()
    assert "echo" not in seen_by_user(site)


def test_a_preset_has_its_prompt_collection_and_access(page: Page, site: Site) -> None:
    made = site.ok("POST", "/api/v1/knowledge/create", {"name": "Handbook", "description": ""})
    page.goto(VIEW)
    page.get_by_role("button", name="Add preset").click()
    dialog = page.get_by_role("dialog", name="Add preset")
    dialog.get_by_role("button", name="Save").click()
    for fault in ("Enter a name.", "Enter an id", "Choose the model that answers."):
        expect(dialog.get_by_text(fault)).to_be_visible()
    dialog.get_by_label("Name").fill("Helper <b>")
    dialog.get_by_label("Id", exact=True).fill("helper")
    dialog.get_by_label("Base model").select_option("slow")
    dialog.get_by_label("System prompt").fill("Be kind.")
    dialog.get_by_label("Handbook").check()
    dialog.get_by_text("More options").click()
    dialog.get_by_label("Parameters").fill('{"temperature": ')
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("This is not a JSON object.")).to_be_visible()
    dialog.get_by_label("Parameters").fill('{"temperature": 0.2}')
    dialog.get_by_label("Access", exact=True).select_option("everybody")
    dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has_text="Helper <b>")
    expect(row).to_contain_text("Preset of slow")
    record = site.ok("GET", "/api/v1/models/model?id=helper")
    assert record["params"] == {"system": "Be kind.", "temperature": 0.2}
    assert [each["id"] for each in record["meta"]["knowledge"]] == [made["id"]]
    assert "helper" in seen_by_user(site)

    row.get_by_role("button", name="Edit Helper <b>").click()
    dialog = page.get_by_role("dialog", name="Edit Helper <b>")
    expect(dialog.get_by_label("System prompt")).to_have_value("Be kind.")
    expect(dialog.get_by_label("Handbook")).to_be_checked()
    dialog.get_by_label("System prompt").fill("")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    assert site.ok("GET", "/api/v1/models/model?id=helper")["params"] == {"temperature": 0.2}

    row.get_by_role("button", name="Actions for Helper <b>").click()
    page.get_by_role("menuitem", name="Delete preset").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete preset").click()
    expect(row).to_be_hidden()
    assert "helper" not in seen_by_user(site)


def test_models_are_found_by_name_and_kind(page: Page) -> None:
    page.goto(VIEW)
    page.get_by_label("Search models").fill("THINK")
    expect(page.get_by_role("status").filter(has_text="1 model")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="thinks")).to_be_visible()
    page.get_by_label("Search models").fill("")
    page.get_by_label("Show").select_option("presets")
    expect(page.get_by_role("heading", name="No models")).to_be_visible()
