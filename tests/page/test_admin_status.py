"""The views of collections, provisioning and the status of the gateway."""

from playwright.sync_api import Page, expect

from tests.page.site import Site


def test_all_collections_are_listed_found_and_deleted(page: Page, site: Site) -> None:
    site.ok("POST", "/api/v1/knowledge/create", {"name": "Old papers", "description": "Nobody reads them"})
    page.goto("/admin/collections")
    page.get_by_label("Search collections").fill("Old pap")
    row = page.get_by_role("row").filter(has_text="Old papers")
    expect(row).to_contain_text("Admin Person")
    row.get_by_role("button", name="Delete Old papers").click()
    dialog = page.get_by_role("dialog", name="Delete Old papers?")
    dialog.get_by_role("button", name="Delete collection").click()
    expect(page.get_by_role("heading", name="No collections")).to_be_visible()


def test_provisioning_is_shown_and_has_nothing_to_set(page: Page) -> None:
    page.goto("/admin/scim")
    facts = page.get_by_label("Provisioning")
    expect(facts.get_by_text("Off")).to_be_visible()
    main = page.get_by_role("main")
    expect(main.get_by_role("textbox")).to_have_count(0)
    expect(main.get_by_role("switch")).to_have_count(0)


def test_the_status_tells_of_sources_and_the_database(page: Page, site: Site) -> None:
    page.goto("/admin/status")
    main = page.get_by_role("main")
    expect(main.get_by_text("Answers", exact=True)).to_be_visible()
    expect(main.get_by_role("row").filter(has_text="hosted")).to_contain_text("3")
    version = site.daemon.call("GET", "/api/version")[1]["version"]
    expect(main.get_by_text(version, exact=True)).to_be_visible()
    main.get_by_role("button", name="Refresh").click()
    expect(main.get_by_role("row").filter(has_text="hosted")).to_be_visible()
