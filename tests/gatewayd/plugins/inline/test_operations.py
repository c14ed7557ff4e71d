"""Operations on JSON values: exact types, and steps that are paid before the work."""

from collections.abc import Callable
from typing import Any

import pytest

from gatewayd.plugins.inline.operations import AttributeStorage, InlineAbortError, InlineOperations


class Nothing:
    pass


def operations(steps: int = 100) -> InlineOperations:
    made = InlineOperations(Nothing(), AttributeStorage(Nothing, ["n"]), None, frozenset(), 1)
    made.begin(steps)
    return made


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "work",
    [
        lambda one: one.binary("Add", "a", Text("b")),
        lambda one: one.binary("Add", [1], [2]),
        lambda one: one.binary("Mult", "a", 2),
        lambda one: one.binary("Mult", 2**62, 4),
        lambda one: one.compare("Eq", {}, {}),
        lambda one: one.has([1], {}),
        lambda one: one.has("a", ["a"]),
        lambda one: one.item({1: 2}, 1),
        lambda one: one.item("abc", "a"),
        lambda one: one.part([1, 2], 0, 1),
        lambda one: one.part("ab", "a", None),
        lambda one: one.store({}, {}, "a"),
        lambda one: one.store(1, {}, 1),
        lambda one: one.method("format", "a"),
        lambda one: one.method("replace", "a", 1, "b"),
        lambda one: one.method("get", {}, 1),
        lambda one: one.builtin("len", 1),
        lambda one: one.builtin("str", []),
        lambda one: one.is_a(1, "object"),
        lambda one: one.joined("a", []),
        lambda one: one.each("ab"),
        lambda one: one.each(list(range(1000))),
        lambda one: one.valve("n"),
        lambda one: one.own("n"),
        lambda one: one.own("other"),
        lambda one: one.set_own("n", []),
        lambda one: one.leave(),
    ],
)
def test_other_values_than_those_of_json_and_larger_ones_are_left(
    work: Callable[[InlineOperations], Any],
) -> None:
    with pytest.raises(InlineAbortError):
        work(operations())


@pytest.mark.parametrize(
    "work",
    [
        lambda one: one.binary("Add", "a" * 5000, "b" * 5000),
        lambda one: one.has("a" * 100, "b" * 100),
        lambda one: one.method("find", "a" * 100, "b" * 100),
        lambda one: one.method("lower", "a" * 10_000),
        lambda one: one.store("a" * 10_000, {}, "a"),
        lambda one: one.joined("a" * 5000, "a" * 5000),
        lambda one: one.part("a" * 10_000, 0, 1),
        lambda one: one.compare("Eq", "a" * 10_000, "a" * 10_000),
    ],
)
def test_long_texts_cost_steps(work: Callable[[InlineOperations], Any]) -> None:
    with pytest.raises(InlineAbortError):
        work(operations(100))
    made = operations(1000)
    work(made)
    assert made.paid > 100


def test_every_operation_costs_a_step() -> None:
    made = operations()
    for number, work in enumerate(
        (
            lambda: made.binary("Add", 1, 2),
            lambda: made.compare("Lt", 1, 2),
            lambda: made.has("a", {}),
            lambda: made.item([1], 0),
            lambda: made.store(1, {}, "a"),
            lambda: made.method("get", {}, "a"),
            lambda: made.builtin("len", ""),
            lambda: made.is_a(1, "int"),
            lambda: made.each([]),
            lambda: made.set_own("n", 1),
            lambda: made.own("n"),
        ),
        start=2,
    ):
        work()
        assert made.paid >= number


def test_what_is_set_stays_apart_until_the_end() -> None:
    class Own(Nothing):
        pass

    instance = Own()
    made = InlineOperations(instance, AttributeStorage(Own, ["n"]), None, frozenset(), 1)
    made.begin(100)
    made.set_own("n", 1)
    assert made.own("n") == 1
    assert vars(instance) == {}
    made.begin(100)
    made.commit()
    assert vars(instance) == {}
    made.set_own("n", 2)
    made.commit()
    assert vars(instance) == {"n": 2}
