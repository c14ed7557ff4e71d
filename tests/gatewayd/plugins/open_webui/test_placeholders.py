import sys
from typing import Optional

import pytest
from pydantic import BaseModel

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.open_webui.placeholders import NotProvidedError, load_web_module, make_placeholder

SENTENCE = r"open_webui\.models\.skills\.Skills(\.\w+)? is not provided by this gateway"
Skills = make_placeholder("open_webui.models.skills.Skills")


def test_using_it_says_what_is_missing() -> None:
    with pytest.raises(NotProvidedError, match=SENTENCE):
        Skills()
    with pytest.raises(NotProvidedError, match=SENTENCE):
        Skills("a", key="b")
    with pytest.raises(NotProvidedError, match=SENTENCE):
        Skills.get_skill_by_id()
    assert not hasattr(Skills, "get_skill_by_id")
    assert not hasattr(Skills, "__await__")
    assert "is not provided" in repr(Skills)


def test_annotations_and_base_classes_may_name_it() -> None:
    def method(skill: Skills, other: Optional[Skills] = None, more: Skills | None = None) -> list[Skills]:  # type: ignore[valid-type]  # noqa: UP045
        raise AssertionError((skill, other, more))

    assert method.__annotations__["skill"] is Skills

    class Own(Skills):  # type: ignore[valid-type,misc]
        """A plugin's own class."""

    with pytest.raises(NotProvidedError, match=SENTENCE):
        Own()
    assert not isinstance(object(), Skills)


def test_a_field_of_valves_may_name_it() -> None:
    class Valves(BaseModel):
        skill: Skills | None = None  # type: ignore[valid-type]

    assert Valves().skill is None
    assert Valves(skill=3).skill == 3


def test_a_library_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.requests", None)
    with pytest.raises(
        GatewayError, match=r"cannot give plugins starlette\.requests: the extra 'plugins' is not installed"
    ) as raised:
        load_web_module("starlette.requests")
    assert raised.value.kind is ErrorKind.NOT_CONFIGURED


def test_one_that_is_there_is_given() -> None:
    assert load_web_module("starlette.requests").Request
