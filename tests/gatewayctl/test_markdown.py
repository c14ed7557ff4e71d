"""Tests for gatewayctl.markdown: an answer is cut where it may be, and nothing of it is lost."""

from rich.console import Console

from gatewayctl.markdown import Blocks, draw
from tests.fakes.daemons.control_socket import Terminal


def test_blocks_end_at_blank_lines_but_not_in_code() -> None:
    text = "para\n\n```\na\n\nb\n```\n\nlast"
    whole = Blocks()
    assert whole.feed(text) == ["para\n\n", "```\na\n\nb\n```\n\n"]
    assert whole.rest == "last"
    piecewise = Blocks()
    found = [block for character in text for block in piecewise.feed(character)]
    assert found == ["para\n\n", "```\na\n\nb\n```\n\n"]


def test_every_block_is_drawn_and_what_is_left_at_the_end() -> None:
    stream = Terminal()
    draw(Console(file=stream, width=40, color_system=None), ["# ti", "tle\n\n- o", "ne\n\n", "la", "st"])
    drawn = stream.getvalue()
    assert [word for word in ("title", "• one", "last") if word not in drawn] == []
    assert "# title" not in drawn
