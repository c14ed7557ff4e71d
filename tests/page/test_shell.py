"""The frame of the page in a real browser."""

from playwright.sync_api import Page, expect

from tests.page.conftest import NewContext


def test_the_page_starts_and_links_lead_to_views(page: Page) -> None:
    page.goto("/settings")
    expect(page.get_by_role("complementary")).to_be_visible()
    expect(page.get_by_role("main")).to_be_visible()
    page.get_by_role("complementary").get_by_role("link", name="Documents").first.click()
    expect(page).to_have_url("/documents")


def test_without_a_session_the_sign_in_is_shown(contexts: NewContext) -> None:
    page = contexts(None).new_page()
    page.goto("/documents")
    page.wait_for_url("**/auth?redirect=%2Fdocuments")


def test_an_unknown_address_says_so(page: Page) -> None:
    page.goto("/admin/nothing")
    expect(page.get_by_role("heading", name="There is nothing here.").first).to_be_visible()
