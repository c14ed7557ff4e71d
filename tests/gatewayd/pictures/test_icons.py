"""Tests for gatewayd.pictures.icons."""

import pytest

from gatewayd.pictures.addresses import MAX_PICTURE_CHARACTERS
from gatewayd.pictures.icons import shown_icon
from tests.gatewayd.pictures.test_addresses import PNG, SVG, inside


@pytest.mark.parametrize(
    ("icon", "shown"), [("star", "star"), (f" {inside('image/png', PNG)}", inside("image/png", PNG))]
)
def test_icons(icon: str, shown: str) -> None:
    assert shown_icon(icon) == shown
    svg = inside("image/svg+xml", SVG)
    assert shown_icon(svg) == svg


@pytest.mark.parametrize(
    "icon",
    [
        "javascript:alert(1)",
        "java\nscript:alert(1)",
        "\x01 javascript:alert(1)",
        "data:text/html,<script>",
        inside("image/png", SVG),
        "vbscript:x",
        "x" * (MAX_PICTURE_CHARACTERS + 1),
    ],
)
def test_icons_that_are_left_out(icon: str) -> None:
    assert shown_icon(icon) == ""
