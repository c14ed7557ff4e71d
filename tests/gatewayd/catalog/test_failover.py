"""Tests for gatewayd.catalog.failover."""

import pytest

from gatewayd.catalog.failover import REST_SECONDS, Candidate, Failover
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.providers.models import FakeSource, make_model


class World:
    """Sources by name, what each of them does when asked, and who was asked."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[str] = []
        self.failures: dict[str, ErrorKind] = {}
        self.codes: dict[str, str] = {}
        self.failover = Failover(lambda: self.now)

    async def ask(self, *names: str) -> str:
        self.asked.clear()
        found = [Candidate(make_model("m"), FakeSource(name=name)) for name in names]
        return await self.failover.ask(found, self._answer)

    async def _answer(self, model: Model, source: ModelSource) -> str:
        self.asked.append(source.name)
        if source.name in self.failures:
            code = self.codes.get(source.name)
            raise GatewayError(self.failures[source.name], f"cannot ask {source.name}", code=code)
        return f"{model.id} of {source.name}"


@pytest.fixture
def world() -> World:
    return World()


async def test_the_first_answers_alone(world: World) -> None:
    assert await world.ask("a", "b") == "m of a"
    assert world.asked == ["a"]


@pytest.mark.parametrize("kind", [ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.RATE_LIMITED])
async def test_the_next_is_asked_when_nothing_was_begun(world: World, kind: ErrorKind) -> None:
    world.failures = {"a": kind, "b": kind}
    assert await world.ask("a", "b", "c") == "m of c"
    assert world.asked == ["a", "b", "c"]


@pytest.mark.parametrize(
    "kind", sorted(set(ErrorKind) - {ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.RATE_LIMITED})
)
async def test_what_may_have_been_worked_on_is_not_asked_again(world: World, kind: ErrorKind) -> None:
    world.failures = {"a": kind}
    with pytest.raises(GatewayError, match="cannot ask a"):
        await world.ask("a", "b")
    assert world.asked == ["a"]


async def test_the_last_failure_is_told(world: World) -> None:
    world.failures = {"a": ErrorKind.RATE_LIMITED, "b": ErrorKind.UPSTREAM_UNREACHABLE}
    with pytest.raises(GatewayError, match="cannot ask b"):
        await world.ask("a", "b")


async def test_who_was_not_reached_is_asked_last_for_a_while(world: World) -> None:
    world.failures = {"a": ErrorKind.UPSTREAM_UNREACHABLE}
    await world.ask("a", "b")
    await world.ask("a", "b")
    assert world.asked == ["b"]
    world.failures = {"b": ErrorKind.UPSTREAM_UNREACHABLE}
    assert await world.ask("a", "b") == "m of a"
    world.now += REST_SECONDS
    world.failures = {}
    await world.ask("a", "b")
    assert world.asked == ["a"]


async def test_a_busy_source_is_asked_first_again(world: World) -> None:
    world.failures = {"a": ErrorKind.RATE_LIMITED}
    await world.ask("a", "b")
    await world.ask("a", "b")
    assert world.asked == ["a", "b"]


async def test_the_next_is_asked_when_the_first_lacks_the_endpoint(world: World) -> None:
    world.failures, world.codes = {"a": ErrorKind.NOT_FOUND}, {"a": "endpoint_not_found"}
    assert await world.ask("a", "b") == "m of b"
    world.codes = {}
    with pytest.raises(GatewayError, match="cannot ask a"):
        await world.ask("a", "b")
