"""Tests for gatewayd.chat.running."""

from typing import Any

from gatewayd.chat.running import NoOutlets, RunOptions
from tests.fakes.runs import OWNER, asking


async def test_without_outlets_no_conversation_is_read() -> None:
    async def conversation() -> list[dict[str, Any]]:
        raise AssertionError("it may be long")

    assert await NoOutlets().run_for_run(asking(), OWNER, conversation) is None


def test_answers_are_kept_at_their_end_unless_set_otherwise() -> None:
    assert not RunOptions().is_saved_often
