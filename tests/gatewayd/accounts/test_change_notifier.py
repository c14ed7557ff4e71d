import pytest

from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.transactions import CallbackTransactor
from tests.fakes.accounts.memory_stores import Memory


def test_every_listener_hears_every_change() -> None:
    changes = AccountChangeNotifier()
    first: list[AccountChange] = []
    second: list[AccountChange] = []
    changes.subscribe(first.append)
    changes.publish(AccountChange("u1"))
    changes.subscribe(second.append)
    changes.publish(AccountChange(None))
    assert first == [AccountChange("u1"), AccountChange(None)]
    assert second == [AccountChange(None)]


def test_nobody_is_out_by_a_change_that_does_not_say_so() -> None:
    assert AccountChange("u1") == AccountChange("u1", is_out=False) != AccountChange("u1", is_out=True)


async def test_changes_are_heard_after_the_commit_only() -> None:
    changes, commits = AccountChangeNotifier(), CallbackTransactor(Memory())
    heard: list[AccountChange] = []
    changes.subscribe(heard.append)
    async with commits.transaction():
        changes.publish(AccountChange("u1"))
        assert heard == []
    assert heard == [AccountChange("u1")]

    async def fail() -> None:
        async with commits.transaction():
            changes.publish(AccountChange("u2"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert heard == [AccountChange("u1")]
