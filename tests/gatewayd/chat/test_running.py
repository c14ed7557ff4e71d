"""Tests for gatewayd.chat.running."""

from gatewayd.chat.running import RunOptions


def test_answers_are_kept_at_their_end_unless_set_otherwise() -> None:
    assert not RunOptions().is_saved_often
