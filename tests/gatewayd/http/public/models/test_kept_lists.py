"""Tests for gatewayd.http.public.models.kept_lists."""

from gatewayd.http.public.models.kept_lists import ENTRY_BYTES, KeptLists
from tests.fakes.providers.models import make_actor


def test_a_list_is_found_by_its_caller_in_its_state_alone() -> None:
    kept, actor, state = KeptLists(), make_actor(), object()
    kept.keep(actor, state, [b"[]"])
    assert kept.find(actor, state) == [b"[]"]
    assert kept.find(actor, object()) is None
    # The same account after a change is another actor.
    assert kept.find(make_actor(), state) is None
    assert kept.find(make_actor("u2"), state) is None


def test_a_new_list_replaces_the_one_of_its_caller() -> None:
    kept, actor, state = KeptLists(ENTRY_BYTES + 8), make_actor(), object()
    for data in ([b"12345678"], [b"1"], [b"1234", b"5678"]):
        kept.keep(actor, state, data)
        assert kept.find(actor, state) == data
    kept.keep(actor, state, [b"12345678", b"9"])
    assert kept.find(actor, state) is None


def test_the_lists_that_were_used_least_lately_are_dropped() -> None:
    kept, state = KeptLists(2 * ENTRY_BYTES + 8), object()
    first, second, third = (make_actor(name) for name in ("u1", "u2", "u3"))
    for actor in (first, second):
        kept.keep(actor, state, [b"1234"])
    assert kept.find(first, state) == [b"1234"]
    kept.keep(third, state, [b"1234"])
    assert [kept.find(actor, state) is None for actor in (first, second, third)] == [False, True, False]


def test_lists_of_a_former_state_are_forgotten() -> None:
    kept, first, second = KeptLists(), make_actor(), make_actor("u2")
    former, state = object(), object()
    kept.keep(first, former, [b"[]"])
    kept.keep(second, state, [b"[]"])
    assert kept.find(first, former) is None
    assert kept.find(second, state) == [b"[]"]
