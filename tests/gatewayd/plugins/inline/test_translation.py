"""Which methods have a translation, and what stands in one."""

import pytest

from gatewayd.plugins.inline.translation import MAX_NODES, operation_name, translate_method
from tests.fakes.plugins.inline import Hook


def test_a_translation_names_operations_alone() -> None:
    hook = Hook("for one in event['choices']:\n    one['x'] = self.n\nprint(one)\nreturn event")
    translated = translate_method(hook.module.Filter.stream, hook.source, "event")
    assert translated is not None
    assert set(translated.code.co_names) <= {
        operation_name(one) for one in ("each", "item", "leave", "own", "store")
    }
    assert translated.own == {"n"}
    assert not operation_name("x").isidentifier()


def test_attributes_of_valves_are_told() -> None:
    hook = Hook("event['x'] = self.valves.word\nreturn event")
    translated = translate_method(hook.module.Filter.stream, hook.source, "event")
    assert translated is not None
    assert (translated.own, translated.valves) == ({"valves"}, {"word"})


@pytest.mark.parametrize(
    "body",
    [
        "yield event",
        "global x\nx = 1\nreturn event",
        "found = lambda: event\nreturn event",
        "super().__init__()\nreturn event",
        "x = 1\n" * MAX_NODES + "return event",
    ],
)
def test_some_methods_have_no_translation(body: str) -> None:
    assert Hook(body).inline is None


def test_another_source_than_that_of_the_function_is_not_translated() -> None:
    hook = Hook("return event")
    function = hook.module.Filter.stream
    for source in (
        "",
        "x = 1\n" * 9,
        hook.source.replace("stream", "other"),
        hook.source.replace("event", "e"),
    ):
        assert translate_method(function, source, "event") is None
    assert translate_method(function, hook.source, "body") is None


def test_a_decorated_method_has_no_translation() -> None:
    head = "def same(function):\n    return function\n"
    hook = Hook("return event", head=head, more="x = 1\n@same")
    assert hook.inline is None


def test_texts_of_several_lines_stay_as_they_are() -> None:
    hook = Hook("event['x'] = '''a\n    b'''\nreturn event")
    assert hook.run({}) == hook.really({})


def test_lines_are_counted_as_the_language_does() -> None:
    hook = Hook("event['x'] = 1\nreturn event", head="text = 'a\x0cb\u2028c'  # \x1c\n")
    assert hook.run({}) == {"x": 1}


def test_names_that_mean_others_inside_a_class_are_left_alone() -> None:
    hook = Hook("event['x'] = self.__x\nreturn event", more="def __init__(self):\n    self.__x = 1")
    assert hook.run({}) is None
    hook = Hook("__x = 1\nevent['x'] = __x\nreturn event")
    assert hook.run({}) is None
