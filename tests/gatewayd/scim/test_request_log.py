"""Tests for gatewayd.scim.request_log."""

from gatewayd.scim.request_log import MAX_TEXT_CHARACTERS, LoggedRequest, ScimRequestLog


def seen(number: int, path: str = "/Users", detail: str = "") -> LoggedRequest:
    return LoggedRequest(number, "GET", path, 200, "192.0.2.1", f"r{number}", detail)


def test_the_newest_come_first() -> None:
    activity = ScimRequestLog()
    assert list(activity.list()) == []
    for number in range(3):
        activity.add(seen(number))
    assert [each.at for each in activity.list()] == [2, 1, 0]


def test_the_last_hundred_are_kept() -> None:
    activity = ScimRequestLog()
    for number in range(250):
        activity.add(seen(number))
    assert [each.at for each in activity.list()] == list(range(249, 149, -1))


def test_what_a_client_sends_takes_a_bounded_room() -> None:
    activity = ScimRequestLog()
    activity.add(seen(1, path="/" + "x" * 100_000, detail="y" * 100_000))
    [kept] = activity.list()
    assert (len(kept.path), len(kept.detail)) == (MAX_TEXT_CHARACTERS, MAX_TEXT_CHARACTERS)
    assert (kept.at, kept.status, kept.request_id) == (1, 200, "r1")
