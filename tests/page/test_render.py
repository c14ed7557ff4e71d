"""Texts in the browser: what they become, what they may not, and that growing ones end as whole ones."""

import base64
from math import inf
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.browser import Noise, find_violations
from tests.page.conftest import NewContext, NewTab
from tests.page.injections import INJECTIONS, assert_nothing_ran
from tests.page.site import Site
from tests.page.staging import staged
from tests.page.texts import KITCHEN, TEXTS
from tests.suite.machine_speed import slowness

PIXEL = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="


def show(page: Page, text: str, **options: Any) -> None:
    page.evaluate("([text, options]) => stage.show(text, options)", [text, options])


def markup(page: Page) -> str:
    found: str = page.evaluate("() => stage.place.innerHTML")
    return found


@pytest.mark.parametrize("kind", INJECTIONS)
def test_nothing_runs(stage: Page, kind: str) -> None:
    asked: list[str] = []
    stage.on("request", lambda request: asked.append(request.url))
    for text in INJECTIONS[kind]:
        milliseconds = stage.evaluate("(text) => stage.feed(text)", text)
        assert milliseconds < 3_000 or milliseconds < 3_000 * slowness(), text[:60]
        assert_nothing_ran(stage)
    assert not [url for url in asked if "outside.invalid" in url or "a.invalid" in url]


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ("<a href='javascript:1'>x</a>", "a leads to javascript:1"),
        ("<p onclick='1'>x</p>", "p has onclick"),
        ("<img src='https://a.invalid/x.png'>", "a picture of"),
        ("<form id=x><base></form>", "base"),
    ],
)
def test_what_could_run_is_found(stage: Page, noise: Noise, planted: str, told: str) -> None:
    noise.expect("Content Security Policy")
    stage.evaluate(
        """(markup) => {
          const parsed = new DOMParser().parseFromString(trusted.createHTML(markup), "text/html");
          stage.place.append(...parsed.body.children);
        }""".replace("trusted", "trustedTypes.createPolicy('dompurify', {createHTML: (markup) => markup})"),
        planted,
    )
    with pytest.raises(AssertionError, match=told):
        assert_nothing_ran(stage)


def test_growing_texts_end_as_whole_ones(stage: Page) -> None:
    different = {}
    for index, text in enumerate(TEXTS):
        chance = Random(index)
        sizes = [chance.choice((1, 2, 3, 5, 8, 40)) * (1 + len(text) // 400) for _ in range(97)]
        difference = stage.evaluate(
            """async ([text, sizes]) => {
              await stage.whole(text, {sources: 3});
              const whole = stage.copy();
              await stage.grow(text, sizes, {sources: 3});
              return stage.difference(stage.copy(), whole);
            }""",
            [text, sizes],
        )
        if difference:
            different[index] = difference
    assert different == {}


def test_what_is_complete_is_never_touched(stage: Page) -> None:
    known, changed = stage.evaluate(
        "([text, size]) => stage.touched(text, size)",
        # Definitions that come later do change what refers to them.
        [KITCHEN.replace("[ref]: ", "ref: ").replace("[^1]: ", "").replace("[^long]: ", ""), 17],
    )
    assert known > 20
    assert changed == []


def test_late_definitions_and_sources_reach_split_blocks(stage: Page) -> None:
    table = "|a|b|\n|-|-|\n" + "|[x]|said [1]|\n" * 3_000
    numbered = "\n".join(f"{number}. see [x]" for number in range(1, 900))
    text = f"{table}\n{numbered}\n\n[x]: https://x.example"
    difference = stage.evaluate(
        """async (text) => {
          await stage.whole(text, {sources: 1});
          const whole = stage.copy();
          await stage.grow(text, [20000], {});
          stage.update(text, {sources: 1});
          return stage.difference(stage.copy(), whole);
        }""",
        text,
    )
    assert difference == ""
    expect(stage.get_by_role("link", name="x")).to_have_count(3_899)
    expect(stage.get_by_role("button", name="Source 1")).to_have_count(3_000)


def test_one_write_a_frame(stage: Page) -> None:
    counts = stage.evaluate(
        """async () => {
          const renderer = stage.fresh();
          let writes = 0;
          const show = renderer.show.bind(renderer);
          renderer.show = (text) => { writes += 1; show(text); };
          for (let end = 1; end <= 200; end += 1) renderer.update("a".repeat(end), {streaming: true});
          const before = writes;
          await stage.frame();
          await stage.frame();
          return [before, writes, stage.place.textContent.length];
        }"""
    )
    assert counts == [0, 1, 200]


HALVES = (
    ("a **b", "<strong>b</strong>"),
    ("a **b*", "<strong>b</strong>"),
    ("a *b **c", "<em>b <strong>c</strong></em>"),
    ("a ~~b", "<del>b</del>"),
    ("a `b", ">b</code>"),
    ("see [the page](https://exa", "see the page<"),
    ("see [the page", "see the page<"),
    ("see ![a picture](https://exa", "see<"),
    ("price \\(x + ", "price<"),
    ("one **", ">one<"),
    ("title\n-", ">title<"),
    ("costs $5 and", "costs $5 and"),
    ("2*3 is six", "2*3 is six"),
    ("snake_case", "snake_case"),
)


def test_half_a_mark_is_completed_while_the_text_grows(stage: Page) -> None:
    different = {}
    for half, shown in HALVES:
        stage.evaluate(
            "(text) => { const r = stage.fresh(); r.update(text, {streaming: true}); r.flush(); }", half
        )
        if shown not in markup(stage):
            different[half] = markup(stage)
        ended = stage.evaluate(
            """(text) => {
              stage.update(text);
              const ended = stage.copy();
              stage.show(text);
              return stage.difference(ended, stage.copy());
            }""",
            half,
        )
        assert ended == "", half
    assert different == {}


def test_code_is_coloured_copied_and_wrapped(contexts: NewContext) -> None:
    page = staged(contexts(permissions=["clipboard-read", "clipboard-write"]).new_page())
    code = "def f(x):\n    return '<b>' + x\n"
    page.evaluate("(text) => stage.whole(text)", f"```py\n{code}```")
    expect(page.locator(".code-language")).to_have_text("py")
    expect(page.locator(".hljs-keyword").first).to_have_text("def")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == code.rstrip("\n")
    region = page.get_by_role("region", name="Code, py")
    wrap = page.get_by_role("button", name="Wrap long lines")
    wrap.click()
    expect(wrap).to_have_attribute("aria-pressed", "true")
    expect(region).to_have_css("white-space-collapse", "preserve")
    assert region.inner_text().strip() == code.strip()


def test_code_is_coloured_when_its_fence_closes(stage: Page) -> None:
    grow = "(text) => { stage.update(text, {streaming: true}); return stage.frame().then(stage.frame); }"
    stage.evaluate("() => { stage.fresh(); }")
    for end in ("```py\ndef f():", "```py\ndef f():\n    pass", "```py\ndef f():\n    pass\n"):
        stage.evaluate(grow, end)
        assert stage.locator("pre code > span").count() == 0
    first = stage.query_selector("pre code")
    stage.evaluate(grow, "```py\ndef f():\n    pass\n```\nafter")
    expect(stage.locator(".hljs-keyword").first).to_have_text("def")
    assert first is not None
    assert first.evaluate("(node) => node.isConnected")


def test_formulas_are_mathml(stage: Page) -> None:
    stage.evaluate(
        "(text) => stage.whole(text)", "\\(x^2\\), $$\\frac{1}{2}$$ and $3 or $4, \\(\\nonsense{\\)"
    )
    expect(stage.locator("math")).to_have_count(2)
    expect(stage.locator("math[display=block] mfrac")).to_have_count(1)
    expect(stage.get_by_text("$3 or $4")).to_be_visible()
    expect(stage.locator(".wrong")).to_have_text("\\(\\nonsense{\\)")


def test_directions(stage: Page) -> None:
    show(
        stage,
        "مرحبا code\n\n`code` שלום\n\nHello مرحبا\n\n- عنصر\n- item\n\n123\n\n| أ | b |\n|-|-|\n| c | د |",
    )
    found = stage.evaluate(
        "() => [...stage.place.querySelectorAll('p, li, ul, th, td')].map((node) => node.dir)"
    )
    assert found == [
        "rtl",
        "rtl",
        "ltr",
        *("rtl", "rtl", "rtl", "ltr", "ltr"),
        "",
        *("rtl", "ltr", "ltr", "rtl"),
    ]
    expect(stage.locator("p code")).to_have_attribute("dir", "ltr")


def test_sources_and_footnotes_are_buttons(stage: Page) -> None:
    show(stage, "Said [2], [1, 3] and [9].[^a]\n\n[^a]: A note.", sources=3)
    for number in (2, 1, 3):
        stage.get_by_role("button", name=f"Source {number}").click()
    assert stage.evaluate("() => stage.log") == [["source", 2], ["source", 1], ["source", 3]]
    expect(stage.get_by_text("and [9].")).to_be_visible()
    stage.get_by_role("button", name="Footnote a").click()
    expect(stage.get_by_role("note")).to_be_focused()


def test_links_leave_nothing_behind(stage: Page) -> None:
    show(stage, "[a](https://a.example/x) [m](mailto:a@b.example) [own](/documents/1) [bad](javascript:x)")
    link = stage.get_by_role("link", name="a", exact=True)
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(link).to_have_attribute("target", "_blank")
    assert stage.get_by_role("link", name="m", exact=True).get_attribute("target") is None
    expect(stage.get_by_role("link", name="own")).to_have_attribute(
        "href", f"{stage.url.split('/settings')[0]}/documents/1"
    )
    expect(stage.get_by_role("link")).to_have_count(3)


@pytest.mark.parametrize(
    "path", ["/oauth/company/login?link=true", "/%6Fauth/company/login", "/s/../api/v1/auths/signout", "/a%"]
)
def test_no_text_leads_to_the_sign_in(stage: Page, site: Site, path: str) -> None:
    asked: list[str] = []
    stage.on("request", lambda sent: asked.append(sent.url))
    show(stage, f"[here]({path}) [there]({site.url}{path}) ![pixel]({path}) ![pixel]({site.url}{path}) end")
    expect(stage.get_by_text("end")).to_be_visible()
    expect(stage.get_by_role("link")).to_have_count(0)
    assert asked == []


def test_a_picture_of_another_host_waits_for_a_click(stage: Page) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.headers.get("referer", ""))
        route.fulfill(content_type="image/gif", body=base64.b64decode(PIXEL))

    stage.context.route("https://pictures.example/**", answer)
    show(stage, f"![a cat](https://pictures.example/cat.gif?q=1) ![dot](data:image/gif;base64,{PIXEL})")
    expect(stage.get_by_role("img", name="dot")).to_have_count(1)
    button = stage.get_by_role("button", name="Load image from pictures.example")
    stage.wait_for_timeout(100)
    assert asked == []
    button.click()
    picture = stage.frame_locator("iframe[title='a cat']").get_by_role("img", name="a cat")
    expect(picture).to_have_count(1)
    expect(stage.locator("iframe[title='a cat']")).to_have_css("width", "1px")
    assert asked == [""]


def test_wide_content_scrolls_inside_itself(tabs: NewTab) -> None:
    page = staged(tabs(viewport={"width": 320, "height": 640}))
    row = "|" + "|".join(f"a_long_cell_{index}" for index in range(20)) + "|\n"
    page.evaluate(
        "(text) => stage.whole(text)",
        f"{row}{'|-' * 20}|\n{row}\n\n```\n{'x' * 500}\n```\n\n{'y' * 500}\n\n$$" + "x+" * 200 + "y$$",
    )
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    table = page.get_by_role("region", name="Table")
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.scrollLeft > 0")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(tabs: NewTab, axe: str, theme: str) -> None:
    page = staged(tabs(color_scheme=theme))
    page.evaluate("(text) => stage.whole(text, {sources: 3})", KITCHEN)
    assert find_violations(page, axe) == []


# Each has a rule of the lexer that looks at all that follows.
COSTLY = ("*a ", "[a](", "> a\nb\n", "- a\n", "a\n\n", "|a|b|\n", "\\[\n", "<a ", "`` ` ")


def test_work_grows_as_the_text_does(stage: Page) -> None:
    """Ten times the text may cost forty times; rules that compare all with all would cost a hundred.

    What else the machine does only adds to a cost: the least of three counts.
    """
    for text in COSTLY:
        small = stage.evaluate("(text) => stage.cost(text, 8000)", text)
        large = inf
        for _ in range(3):
            large = min(large, stage.evaluate("(text) => stage.cost(text, 80000)", text))
            if large < 40 * max(small, 5):
                break
        assert large < 40 * max(small, 5), text
