"""Tests for gatewayd.chat.running."""

from gatewayd.chat.running import NoOutlets, RunOptions
from tests.fakes.runs import OWNER, asking


async def test_no_outlets_leave_the_messages() -> None:
    assert (
        await NoOutlets().run_for_run(asking(), OWNER, [{"id": "a", "role": "user", "content": "x"}]) is None
    )


def test_answers_are_kept_at_their_end_unless_set_otherwise() -> None:
    assert not RunOptions().is_saved_often
