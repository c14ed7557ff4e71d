import pytest

from gatewayd.accounts.change_notifier import Change, Changes
from gatewayd.transactions import Commits
from tests.fakes.stores import Memory


def test_every_listener_hears_every_change() -> None:
    changes = Changes()
    first: list[Change] = []
    second: list[Change] = []
    changes.subscribe(first.append)
    changes.publish(Change("u1"))
    changes.subscribe(second.append)
    changes.publish(Change(None))
    assert first == [Change("u1"), Change(None)]
    assert second == [Change(None)]


def test_nobody_is_out_by_a_change_that_does_not_say_so() -> None:
    assert Change("u1") == Change("u1", is_out=False) != Change("u1", is_out=True)


async def test_changes_are_heard_after_the_commit_only() -> None:
    changes, commits = Changes(), Commits(Memory())
    heard: list[Change] = []
    changes.subscribe(heard.append)
    async with commits.transaction():
        changes.publish(Change("u1"))
        assert heard == []
    assert heard == [Change("u1")]

    async def fail() -> None:
        async with commits.transaction():
            changes.publish(Change("u2"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert heard == [Change("u1")]
