"""Tests for tests.page.scripts."""

from tests.page.scripts import Literal, literals, modules

SOURCE = r"""// a "comment" with `ticks`
/* and 'another' */
const a = "one \" two";
const re = a.replace(/["'`/\/]/g, '');
const half = a.length / 2 / 3;
html`<p class=${a}>Text ${list.map((x) => html`<b>${{y: "deep"}.y}</b>`)} end</p>`;
"""


def test_strings_and_templates_are_found() -> None:
    assert literals(SOURCE) == [
        Literal("", (r"one \" two",), 3),
        Literal("", ("",), 4),
        Literal("", ("deep",), 6),
        Literal("html", ("<b>", "</b>"), 6),
        Literal("html", ("<p class=", ">Text ", " end</p>"), 6),
    ]


def test_all_modules_are_read_to_their_end() -> None:
    assert len(modules()) > 20
    for module in modules():
        literals(module.read_text())
