"""Headers of plugins."""

import pytest

from gatewayd.plugins.source import frontmatter


def test_the_header_is_read_to_the_end_of_the_docstring() -> None:
    text = '"""\ntitle: A: b\nVersion: 0.1\n  author_url: https://x.org/y\nsome words\n"""\nname: no\n'
    assert frontmatter.parse_frontmatter(text) == {
        "title": "A: b",
        "version": "0.1",
        "author_url": "https://x.org/y",
    }


def test_a_repeated_key_keeps_its_last_value_and_text_behind_the_quotes_counts() -> None:
    assert frontmatter.parse_frontmatter('"""title: one\ntitle: two"""\n') == {"title": "two"}


@pytest.mark.parametrize("text", ["", "import os\n", "# x\nclass Filter: pass", "title: no\n"])
def test_without_a_docstring_in_front_there_is_no_header(text: str) -> None:
    assert frontmatter.parse_frontmatter(text) == {}


def test_a_value_that_ends_with_a_comma_goes_on() -> None:
    text = '"""\nrequirements: a,\n  b>=1,\n  c\nrest\n"""'
    assert frontmatter.read_requirements(frontmatter.parse_frontmatter(text)) == ("a", "b>=1", "c")


@pytest.mark.parametrize(
    ("written", "packages"),
    [
        ("", ()),
        ("requests", ("requests",)),
        ("a, b ,a", ("a", "b")),
        ("aiohttp>=3,<4, x", ("aiohttp>=3,<4", "x")),
        ("x[a,b]>=1, y", ("x[a,b]>=1", "y")),
        ("[markdown, 'yaml']", ("markdown", "yaml")),
        ("typing, asyncio, os, httpx", ("httpx",)),
    ],
)
def test_requirements_are_divided_at_commas(written: str, packages: tuple[str, ...]) -> None:
    assert frontmatter.read_requirements({"requirements": written}) == packages


def test_switches_are_words() -> None:
    assert frontmatter.read_switch({"active": "False"}, "active", True) is False
    assert frontmatter.read_switch({"active": "yes"}, "active", False) is True
    assert frontmatter.read_switch({"active": "maybe"}, "active", True) is True


def test_a_long_line_is_read_once() -> None:
    blanks = " " * 200_000
    assert frontmatter.parse_frontmatter(
        f'"""\n{blanks}title:{blanks}a{blanks}\nx:{blanks}\n{blanks}"""'
    ) == {
        "title": "a",
        "x": "",
    }


def test_long_requirements_are_read_once() -> None:
    assert frontmatter.read_requirements({"requirements": "a[" + "b," * 300_000 + "c]>=1,<2, d"})[1:] == (
        "d",
    )
    assert len(frontmatter.read_requirements({"requirements": "a" + ",<1" * 300_000})) == 1
