"""Tests for gatewayd.catalog.model_list."""

import asyncio

from gatewayd.catalog.model_list import SourceListing, source_states
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import FakeSource, make_model


async def test_stale_list_is_served_while_it_is_fetched_again() -> None:
    tasks, now = TaskRegistry(), [0.0]
    source = FakeSource("s", [make_model("a")])
    listing = SourceListing(source, tasks, max_age=30, deadline=1, monotonic=lambda: now[0])
    listing.refresh_when_due()
    await listing.first()
    source.hold, source.models = asyncio.Event(), [make_model("b")]
    now[0] = 31.0
    listing.refresh_when_due()
    await asyncio.sleep(0)
    assert [model.id for model in listing.models] == ["a"]
    listing.refresh_when_due()
    source.hold.set()
    await listing.first()
    assert [model.id for model in listing.models] == ["b"]
    assert source.listed == 2
    await tasks.close()


async def test_failing_source_is_asked_again_only_after_a_pause() -> None:
    tasks, now = TaskRegistry(), [0.0]
    source = FakeSource("s", failure=GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot list"))
    listing = SourceListing(source, tasks, max_age=30, deadline=1, retry=10, monotonic=lambda: now[0])
    listing.refresh_when_due()
    await listing.first()
    listing.refresh_when_due()
    assert source.listed == 1
    now[0] = 10.0
    source.failure, source.models = None, [make_model("a")]
    changes: list[int] = []
    listing.on_change = lambda: changes.append(1)
    listing.refresh_when_due()
    await listing.first()
    assert (listing.problem, len(listing.models), changes) == (None, 1, [1])
    assert source_states([listing]) == [{"name": "s", "models": 1, "problem": None}]
    await tasks.close()


async def test_source_that_hangs_fails_at_its_deadline() -> None:
    tasks = TaskRegistry()
    listing = SourceListing(FakeSource("slow", hold=asyncio.Event()), tasks, max_age=1, deadline=0.01)
    listing.refresh_when_due()
    assert listing.never_answered
    listing.give_up()
    assert not listing.never_answered
    await asyncio.wait_for(listing.first(), 1)
    assert listing.problem is not None
    assert "slow" in listing.problem
    await tasks.close()


async def test_a_renewed_list_is_waited_for_and_is_no_older_than_the_change() -> None:
    tasks = TaskRegistry()
    source = FakeSource("s", [make_model("a")], hold=asyncio.Event())
    listing = SourceListing(source, tasks, max_age=30, deadline=20)
    listing.refresh()
    while not source.listed:
        await asyncio.sleep(0)
    listing.give_up()
    # What is on its way may be too old: it is asked once more.
    listing.renew()
    listing.renew()
    assert listing.never_answered
    assert source.hold is not None
    source.hold.set()
    await listing.first()
    assert source.listed == 2
    assert not listing.never_answered
    source.models = [make_model("b")]
    listing.renew()
    assert listing.never_answered
    await listing.first()
    assert [model.id for model in listing.models] == ["b"]
    await tasks.close()
