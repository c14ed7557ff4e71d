"""Rules of the page's own files: no markup out of texts, both writing directions, icons that are there."""

import re
from pathlib import Path

import pytest

from tests.page.scripts import PAGE, literals, modules

MAX_LINES = 400
SINKS = re.compile(
    r"\.(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\.srcdoc\b"
    r"|\bnew Function\b|\beval\(|setAttribute\(\s*[\"'](?:style|on\w+)[\"']"
)
PHYSICAL = re.compile(
    r"(?<![\w-])(?:(?:margin|padding|border)-(?:left|right)(?:-\w+)?|left|right|float)\s*:"
    r"|text-align\s*:\s*(?:left|right)"
)
ICON = re.compile(r'\b(?:icon|name)="([a-z][a-z0-9-]*)"|\bicon:\s*"([a-z][a-z0-9-]*)"')
SPRITE = set(re.findall(r'<symbol id="([^"]+)"', (PAGE / "icons" / "sprite.svg").read_text()))
STYLES = sorted((PAGE / "styles").glob("*.css"))


def name_of(path: Path) -> str:
    return str(path.relative_to(PAGE))


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_a_module_says_what_it_holds_and_makes_no_markup(module: Path) -> None:
    source = module.read_text()
    assert source.startswith("/**"), "a module begins with what it holds"
    assert source.count("\n") <= MAX_LINES
    assert SINKS.findall(source) == []


@pytest.mark.parametrize("style", STYLES, ids=name_of)
def test_styles_have_logical_properties(style: Path) -> None:
    found = [line.strip() for line in style.read_text().splitlines() if PHYSICAL.search(line)]
    assert found == []


def test_icons_are_in_the_sprite() -> None:
    assert set((PAGE / "icons" / "names.txt").read_text().split()) == SPRITE
    missing = set()
    for module in modules():
        source = module.read_text()
        for tag in re.findall(r"<\$\{(?:Icon|IconButton|Button|Menu|Chip|EmptyState)\}[^>]*", source):
            missing |= {one[0] or one[1] for one in ICON.findall(tag)} - SPRITE
        missing |= {found[1] for found in ICON.findall(source) if found[1]} - SPRITE
    assert missing == set()
    code = "".join(module.read_text() for module in modules())
    unused = {name for name in SPRITE if not re.search(f"[\"'`]{name}[\"'`]", code)}
    assert unused == set(), "each icon is part of the first load"


def test_what_the_rules_find() -> None:
    assert PHYSICAL.search("  left: 0;")
    assert PHYSICAL.search("a { margin-left: 1px }")
    assert not PHYSICAL.search("inset-inline-start: 0; border-start-start-radius: 1px; --left: 1")
    assert SINKS.search('element.innerHTML = "x"')
    assert literals("x") == []
