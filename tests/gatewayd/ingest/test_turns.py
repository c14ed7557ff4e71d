import pytest

from gatewayd.ingest import turns
from gatewayd.ingest.turns import Turns


def test_who_has_the_least_under_way_comes_first_and_then_who_waited_longest() -> None:
    shared = Turns()
    for owner in ("a", "b", "a", "c"):
        shared.begin(owner)
    assert sorted("abcd", key=shared.rank) == ["d", "b", "c", "a"]
    shared.end("a")
    assert [shared.under_way(owner) for owner in "abd"] == [1, 1, 0]
    assert sorted("abcd", key=shared.rank) == ["d", "b", "a", "c"]


def test_only_the_latest_turns_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_REMEMBERED_OWNERS", 2)
    shared = Turns()
    for owner in "abc":
        shared.begin(owner)
        shared.end(owner)
    assert [shared.rank(owner) for owner in "abc"] == [(0, 0), (0, 2), (0, 3)]
