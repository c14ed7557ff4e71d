"""Many providers, or one that is impatient, at the same moment: one wins, nobody's work is lost."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tests.clients.scim.gateway import Gateway
from tests.clients.scim.story import GROUP, USER, op, patch
from tests.fakes.http.raw_http import Reply

RACERS = 16
numbers = itertools.count()


def race(gateway: Gateway, requests: Sequence[tuple[str, str, Any]]) -> list[Reply]:
    """Send all requests at the same moment."""
    barrier = Barrier(len(requests))

    def send(request: tuple[str, str, Any]) -> Reply:
        barrier.wait(30)
        return gateway.ask(*request)

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(send, requests))


def assert_one_won(replies: Sequence[Reply]) -> str:
    """Check that one request made something and all others were refused; return the id."""
    assert Counter(reply.status for reply in replies) == {201: 1, 409: len(replies) - 1}
    for reply in replies:
        assert reply.headers["content-type"].startswith("application/scim+json")
        if reply.status == 409:
            assert reply.json["scimType"] == "uniqueness", reply.json
    made: str = next(reply.json["id"] for reply in replies if reply.status == 201)
    return made


def cased(text: str, number: int) -> str:
    """Return a text with some letters in the other case, differently for each number below 65536."""
    letters = iter(range(16))
    return "".join(
        char.upper() if char.isalpha() and number >> next(letters, 15) & 1 else char for char in text
    )


def user(number: int, user_name: str, **more: Any) -> tuple[str, str, Any]:
    return "POST", "/Users", {"schemas": [USER], "userName": user_name, "displayName": f"n{number}", **more}


def same_user_name(mark: int) -> list[tuple[str, str, Any]]:
    name = f"raced.by.many{mark}@example.org"
    return [user(number, cased(name, number)) for number in range(RACERS)]


def same_external_id(mark: int) -> list[tuple[str, str, Any]]:
    return [
        user(number, f"r{mark}-{number}@example.org", externalId=f"raced-{mark}") for number in range(RACERS)
    ]


def same_group(mark: int) -> list[tuple[str, str, Any]]:
    name = f"the raced group {mark}"
    return [
        ("POST", "/Groups", {"schemas": [GROUP], "displayName": cased(name, number)})
        for number in range(RACERS)
    ]


def same_external_id_of_groups(mark: int) -> list[tuple[str, str, Any]]:
    return [
        (
            "POST",
            "/Groups",
            {"schemas": [GROUP], "displayName": f"x{mark}-{number}", "externalId": f"x{mark}"},
        )
        for number in range(RACERS)
    ]


@pytest.mark.parametrize(
    "requests", [same_user_name, same_external_id, same_group, same_external_id_of_groups]
)
def test_one_of_many_creates_wins(
    gateway: Gateway, requests: Callable[[int], list[tuple[str, str, Any]]]
) -> None:
    sent = requests(next(numbers))
    made = assert_one_won(race(gateway, sent))
    assert gateway.ask("GET", f"{sent[0][1]}/{made}").status == 200


def made_user(gateway: Gateway, user_name: str, **more: Any) -> str:
    reply = gateway.ask(*user(0, user_name, **more))
    assert reply.status == 201, reply
    made: str = reply.json["id"]
    return made


def test_all_members_that_were_added_at_once_are_in(gateway: Gateway) -> None:
    mark = next(numbers)
    people = [made_user(gateway, f"m{mark}-{number}@example.org") for number in range(RACERS)]
    made = gateway.ask("POST", "/Groups", {"schemas": [GROUP], "displayName": f"all at once {mark}"})
    path = f"/Groups/{made.json['id']}"
    adds = [("PATCH", path, patch(op("add", "members", value=[{"value": each}]))) for each in people]
    assert {reply.status for reply in race(gateway, adds)} == {204}
    shown = gateway.ask("GET", path).json["members"]
    assert sorted(member["value"] for member in shown) == sorted(people)
    removes = [("PATCH", path, patch(op("remove", f'members[value eq "{each}"]'))) for each in people[1:]]
    assert {reply.status for reply in race(gateway, removes)} == {204}
    assert [member["value"] for member in gateway.ask("GET", path).json["members"]] == people[:1]


def test_changes_of_different_attributes_at_once_are_all_kept(gateway: Gateway) -> None:
    mark = next(numbers)
    made = made_user(gateway, f"p{mark}@example.org")
    wanted = {
        "displayName": "D",
        "name.givenName": "G",
        "name.familyName": "F",
        "name.formatted": "W",
        "externalId": f"p{mark}",
        "active": False,
    }
    changes = [
        ("PATCH", f"/Users/{made}", patch(op("replace", path, value=value))) for path, value in wanted.items()
    ]
    assert {reply.status for reply in race(gateway, changes)} == {200}
    shown = gateway.ask("GET", f"/Users/{made}").json
    found = {**shown, **{f"name.{part}": value for part, value in shown["name"].items()}}
    assert {path: found[path] for path in wanted} == wanted


def test_one_of_many_takes_a_user_name_that_came_free(gateway: Gateway) -> None:
    mark = next(numbers)
    people = [made_user(gateway, f"t{mark}-{number}@example.org") for number in range(RACERS)]
    wanted = patch(op("replace", "userName", value=f"wanted{mark}@example.org"))
    replies = race(gateway, [("PATCH", f"/Users/{each}", wanted) for each in people])
    assert Counter(reply.status for reply in replies) == {200: 1, 409: RACERS - 1}
    found = gateway.ask("GET", f"/Users?filter=userName+eq+%22wanted{mark}@example.org%22").json
    assert found["totalResults"] == 1
