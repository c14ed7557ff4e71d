"""Attributes as they are stored."""

import functools
import inspect
from typing import Any

import pytest

from gatewayd.plugins.runtime.static_attributes import MISSING, find_stored


class Deciding:
    def __get__(self, instance: object, owner: object = None) -> str:
        raise AssertionError("this must not run")

    def __set__(self, instance: object, value: object) -> None:
        raise AssertionError("this must not run")


class Yielding:
    def __get__(self, instance: object, owner: object = None) -> str:
        raise AssertionError("this must not run")


class Base:
    inherited = 1
    hidden = 2


class Plain(Base):
    own = 3
    hidden = 4
    decided = Deciding()
    yielded = Yielding()

    def __init__(self) -> None:
        self.own = 5
        self.only = 6
        vars(self).update(decided=7, yielded=8, asked=9)

    @property
    def asked(self) -> int:
        raise AssertionError("this must not run")

    @functools.cached_property
    def cached(self) -> int:
        raise AssertionError("this must not run")

    def method(self) -> None:
        raise AssertionError("this must not run")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("this must not run")


class Slotted:
    __slots__ = ("own",)


class Lying(Plain):
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("this must not run")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise AssertionError("this must not run")


class Hiding:
    own = 1

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise AssertionError("this must not run")


NAMES = ("inherited", "hidden", "own", "only", "decided", "yielded", "asked", "cached", "method", "absent")


MADE = {
    "plain": Plain(),
    "slotted": Slotted(),
    "lying": Lying.__new__(Lying),
    "hiding": Hiding(),
    "builtin": 3,
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("name", [*NAMES, "__doc__", "__init__", "__class__", "__dict__"])
def test_what_is_stored_is_found_as_the_standard_library_finds_it(kind: str, name: str) -> None:
    made = MADE[kind]
    assert find_stored(made, name, MISSING) is inspect.getattr_static(made, name, MISSING)


def test_without_a_default_nothing_is_none() -> None:
    assert find_stored(Plain(), "absent") is None
