import pytest

from gatewayd.ingest import round_robin
from gatewayd.ingest.round_robin import RoundRobin


def test_the_least_active_owner_comes_first_and_then_the_least_recent() -> None:
    shared: RoundRobin[str] = RoundRobin()
    for owner in ("a", "b", "a", "c"):
        shared.begin(owner)
    assert sorted("abcd", key=shared.priority) == ["d", "b", "c", "a"]
    shared.end("a")
    assert [shared.active(owner) for owner in "abd"] == [1, 1, 0]
    assert sorted("abcd", key=shared.priority) == ["d", "b", "a", "c"]


def test_only_the_latest_owners_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_robin, "MAX_REMEMBERED_OWNERS", 2)
    shared: RoundRobin[str] = RoundRobin()
    for owner in "abc":
        shared.begin(owner)
        shared.end(owner)
    assert [shared.priority(owner) for owner in "abc"] == [(0, 0), (0, 2), (0, 3)]
