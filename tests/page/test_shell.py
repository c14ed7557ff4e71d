"""The frame of the page in a real browser."""

from playwright.sync_api import Page, expect

from tests.page.browser import Noise
from tests.page.conftest import NewTab


def test_the_page_starts_and_links_lead_to_views(page: Page) -> None:
    page.goto("/settings")
    expect(page.get_by_role("complementary")).to_be_visible()
    expect(page.get_by_role("main")).to_be_visible()
    page.get_by_role("complementary").get_by_role("link", name="Documents").first.click()
    expect(page).to_have_url("/documents")


def test_without_a_session_the_sign_in_is_shown(tabs: NewTab) -> None:
    page = tabs(None)
    page.goto("/documents")
    page.wait_for_url("**/auth?redirect=%2Fdocuments")


def test_an_unknown_address_says_so(page: Page) -> None:
    page.goto("/admin/nothing")
    expect(page.get_by_role("heading", name="There is nothing here.").first).to_be_visible()


def test_shortcuts_work_and_can_be_switched_off(page: Page) -> None:
    page.goto("/documents")
    sidebar = page.locator("#sidebar")
    expect(sidebar).to_be_visible()
    page.keyboard.press("Control+b")
    expect(sidebar).to_be_hidden()
    page.keyboard.press("Control+Shift+S")
    expect(sidebar).to_be_visible()
    page.keyboard.press("Control+.")
    expect(page).to_have_url("/settings")
    page.keyboard.press("Control+/")
    shown = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shown.get_by_text("Show or hide the sidebar").first).to_be_visible()
    shown.get_by_role("switch").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+b")
    page.keyboard.press("Control+/")
    expect(shown).to_be_hidden()
    expect(sidebar).to_be_visible()
    page.reload()
    page.keyboard.press("Control+/")
    expect(sidebar).to_be_visible()
    expect(shown).to_be_hidden()


def test_keys_of_an_input_method_are_no_shortcut(page: Page) -> None:
    page.goto("/documents")
    page.locator("#sidebar").wait_for()
    page.evaluate(
        """() => document.body.dispatchEvent(new KeyboardEvent("keydown",
        {key: "b", code: "KeyB", ctrlKey: true, isComposing: true, bubbles: true}))"""
    )
    expect(page.locator("#sidebar")).to_be_visible()


def test_on_a_phone_the_sidebar_lies_over_the_view_and_goes_with_the_choice(phone_page: Page) -> None:
    phone_page.goto("/settings")
    toggle = phone_page.get_by_role("button", name="Show the sidebar")
    sidebar = phone_page.locator("#sidebar")
    expect(sidebar).to_be_hidden()
    toggle.tap()
    sidebar.get_by_role("link", name="Documents").first.tap()
    expect(phone_page).to_have_url("/documents")
    expect(sidebar).to_be_hidden()


def test_theme_and_language_are_remembered_before_the_first_paint(page: Page) -> None:
    page.goto("/settings")
    page.locator("#sidebar").wait_for()
    page.evaluate(
        """async () => {
          const {theme} = await import("#app/core/preferences");
          const {setLanguage} = await import("#app/core/messages");
          theme.value = "dark";
          await setLanguage("ar");
        }"""
    )
    root = page.locator("html")
    expect(root).to_have_attribute("dir", "rtl")
    expect(page.get_by_role("button", name="إخفاء الشريط الجانبي")).to_be_visible()
    sent = page.request.get("/settings", headers={"Accept": "text/html"}).text()
    assert 'lang="ar" dir="rtl" data-theme="dark"' in sent
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="إخفاء الشريط الجانبي")).to_be_visible()


def test_a_user_sees_no_administration(user_page: Page) -> None:
    user_page.goto("/admin/users")
    expect(user_page.get_by_text("You may not do this.").first).to_be_visible()


def test_a_module_of_another_release_loads_the_page_anew_once(page: Page) -> None:
    loads = []
    page.on("domcontentloaded", lambda _: loads.append(1))
    page.goto("/settings")
    page.locator("#sidebar").wait_for()
    page.evaluate(
        """async () => {
          const {route, navigate} = await import("#app/core/router");
          route("/documents/a/old", () => import("/static/00000000000000000000/app/old.js"));
          navigate("/documents/a/old");
        }"""
    )
    expect(page.get_by_role("heading", name="There is nothing here.").first).to_be_visible()
    assert len(loads) == 2
    page.evaluate(
        """async () => {
          const {route, navigate} = await import("#app/core/router");
          route("/documents/a/old", () => import("/static/00000000000000000000/app/old.js"));
          window.back = () => navigate("/documents/a/old");
          navigate("/settings");
        }"""
    )
    expect(page.get_by_role("heading", name="There is nothing here.")).to_have_count(0)
    page.evaluate("() => window.back()")
    expect(page.get_by_text("This part of the page cannot be shown.").first).to_be_visible()
    assert len(loads) == 2


def test_what_leaves_the_policy_is_stopped(page: Page, noise: Noise) -> None:
    noise.expect("(?i)content security policy|Trusted")
    page.goto("/settings")
    tried = page.evaluate(
        """async () => {
          const failures = [];
          const attempt = async (name, run) => {
            try { await run(); } catch (error) { failures.push(name); }
          };
          // What the driver evaluates itself is free of the policy, what follows later is not.
          await new Promise((resolve) => setTimeout(resolve));
          await attempt("html", () => { document.body.innerHTML = "<b></b>"; });
          await attempt("eval", () => { (0, eval)("1"); });
          await attempt("function", () => { new Function("1")(); });
          const module = new Blob(["1"], {type: "text/javascript"});
          await attempt("blob", () => import(URL.createObjectURL(module)));
          await attempt("fetch", () => fetch("https://example.org/"));
          await attempt("policy", () => { trustedTypes.createPolicy("other", {}); });
          return failures;
        }"""
    )
    assert tried == ["html", "eval", "function", "blob", "fetch", "policy"]


def test_without_the_gateway_the_start_says_so_and_offers_to_try_again(page: Page) -> None:
    page.route("**/api/config", lambda route: route.fulfill(status=503, json={"detail": "starting"}))
    page.goto("/settings")
    expect(page.get_by_role("alert")).to_contain_text("The gateway failed.")
    expect(page.get_by_role("alert")).to_contain_text("starting")
    page.unroute("**/api/config")
    page.get_by_role("button", name="Try again").click()
    page.locator("#sidebar").wait_for()
