"""Tests for gatewayd.pipeline.runs.interfaces."""

from gatewayd.pipeline.runs.interfaces import RunOptions


def test_answers_are_kept_at_their_end_unless_set_otherwise() -> None:
    assert not RunOptions().is_saved_often
