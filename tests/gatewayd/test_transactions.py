import asyncio

import pytest

from gatewayd.transactions import CallbackTransactor, after_commit
from tests.fakes.accounts.memory_stores import Memory


@pytest.fixture
def commits() -> CallbackTransactor:
    return CallbackTransactor(Memory())


async def fail_inside(commits: CallbackTransactor, done: list[str]) -> None:
    async with commits.transaction():
        after_commit(lambda: done.append("lost"))
        raise ZeroDivisionError


async def test_outside_of_a_block_it_happens_at_once() -> None:
    done: list[str] = []
    after_commit(lambda: done.append("now"))
    assert done == ["now"]


async def test_it_waits_for_the_outermost_block(commits: CallbackTransactor) -> None:
    done: list[str] = []
    async with commits.exclusive("x"):
        async with commits.transaction():
            after_commit(lambda: done.append("inner"))
        after_commit(lambda: done.append("outer"))
        assert done == []
    assert done == ["inner", "outer"]


async def test_what_is_rolled_back_never_happened(commits: CallbackTransactor) -> None:
    done: list[str] = []
    with pytest.raises(ZeroDivisionError):
        await fail_inside(commits, done)
    async with commits.rehearsal(), commits.transaction():
        after_commit(lambda: done.append("rehearsed"))
    assert done == []


async def test_an_inner_block_that_fails_is_forgotten_alone(commits: CallbackTransactor) -> None:
    done: list[str] = []
    async with commits.transaction():
        after_commit(lambda: done.append("kept"))
        with pytest.raises(ZeroDivisionError):
            await fail_inside(commits, done)
    assert done == ["kept"]


async def test_a_task_that_outlives_the_block_is_outside(commits: CallbackTransactor) -> None:
    done: list[str] = []
    go = asyncio.Event()

    async def later() -> None:
        await go.wait()
        after_commit(lambda: done.append("later"))

    async with commits.transaction():
        task = asyncio.get_running_loop().create_task(later())
    go.set()
    await task
    assert done == ["later"]
