"""The checkers fail on histories that are known to be bad; a checker that passes those checks nothing."""

import pytest

from tests.fakes.cluster.history import Asked, Seen, check_order, check_revocation

GOOD = [Seen("a", 1, "x"), Seen("b", 1, "x"), Seen("a", 2, "y"), Seen("b", 2, "y")]


def test_a_good_order_passes() -> None:
    assert check_order(GOOD) == []
    cleared = [Seen("a", 1, "x"), Seen("a", 5, is_clear=True), Seen("a", 6, "z")]
    assert check_order(cleared) == []


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        # A version that is taken early: the second transaction commits first, and the first is never seen.
        ([Seen("a", 2, "y"), Seen("a", 1, "x")], "a: version 2 follows 0"),
        # A notification before the commit: the node looks, sees nothing new and believes to have looked.
        ([Seen("a", 1, "x"), Seen("a", 3, "z")], "a: version 3 follows 1"),
        ([Seen("a", 1, "x"), Seen("a", 1, "x")], "a: version 1 follows 1"),
        ([*GOOD, Seen("c", 1, "y")], "c: version 1 is y"),
    ],
)
def test_a_bad_order_is_found(seen: list[Seen], problem: str) -> None:
    assert problem in check_order(seen)


def asked(*pairs: tuple[float, bool]) -> list[Asked]:
    return [Asked("b", sent_at, admitted) for sent_at, admitted in pairs]


def test_a_revocation_that_holds_passes() -> None:
    assert check_revocation(asked((9.0, True), (10.9, True), (11.1, False)), revoked_at=10.0) == []


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        (asked((9.0, True), (11.2, True)), "b: admitted 1.200 s after the revocation"),
        (asked((9.0, False), (11.2, False)), "nothing was admitted before the revocation"),
        (asked((9.0, True), (10.2, False)), "nothing was asked after the revocation"),
    ],
)
def test_a_revocation_that_does_not_hold_is_found(history: list[Asked], problem: str) -> None:
    assert problem in check_revocation(history, revoked_at=10.0)
