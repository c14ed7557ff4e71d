"""Tests for gatewayd.dialects.anthropic_calls; most of what providers do is in test_anthropic_stream."""

import pytest

from gatewayd.dialects.anthropic_calls import INVALID_INPUT, Call, Calls


def call(*pieces):
    made = Call(0)
    for piece in pieces:
        made.add("f", piece)
    return made


@pytest.mark.parametrize(
    ("pieces", "is_whole", "is_held", "is_ended"),
    [
        ([], False, True, False),
        (["{"], False, True, False),
        (["{", "}"], True, True, False),
        (["null"], False, True, False),
        (['{"a"'], False, False, False),
        (['{"a"', ":1}"], True, False, True),
        (["a"], False, False, False),
        ([" "] * 20, False, False, False),
    ],
)
def test_states(pieces, is_whole, is_held, is_ended):
    made = call(*pieces)
    assert (made.is_whole, made.is_held, made.is_ended) == (is_whole, is_held, is_ended)


def test_what_was_taken_is_not_taken_again():
    made = call('{"a"')
    assert made.take() == '{"a"'
    assert made.take() == ""
    made.add("", ":1}")
    assert (made.take(), made.arguments) == (":1}", '{"a":1}')


def test_arguments_are_never_cut_short_by_holding():
    made = call("n")
    assert made.take() == "n"
    made.add("", "ull")
    assert made.take() == "ull"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        (" ", {}),
        ('{"a":1}', {"a": 1}),
        ("5", {INVALID_INPUT: "5"}),
        ('{"a":1}}', {INVALID_INPUT: '{"a":1}}'}),
    ],
)
def test_input(arguments, expected):
    assert call(arguments).input() == expected


def test_a_second_object_for_a_complete_call_calls_it_again():
    calls = Calls()
    first = calls.add({"index": 0, "function": {"name": "f", "arguments": '{"a":1}'}}, 0)
    assert calls.add({"index": 0, "function": {"arguments": '{"a": 1}'}}, 0) is None
    second = calls.add({"index": 0, "function": {"arguments": '{"a":2}'}}, 0)
    assert first is not None
    assert second is not None
    assert (first.arguments, second.name, second.arguments) == ('{"a":1}', "f", '{"a":2}')


def test_more_braces_than_were_opened_are_passed_on():
    calls = Calls()
    made = calls.add({"index": 0, "function": {"name": "f", "arguments": '{"a":1}'}}, 0)
    assert calls.add({"index": 0, "function": {"arguments": "}"}}, 0) is None
    assert made is not None
    assert made.arguments == '{"a":1}}'


def test_a_late_id_is_the_calls_own():
    calls = Calls()
    made = calls.add({"index": 0, "function": {"name": "f"}}, 0)
    calls.add({"index": 0, "id": "c1"}, 0)
    assert made is not None
    assert made.id == "c1"
    assert calls.add({"id": "c1", "function": {"arguments": "{}"}}, 5) is None


def test_fields_may_stand_outside_of_function():
    made = Calls().add({"name": "f", "arguments": '{"a":1}'}, 0)
    assert made is not None
    assert (made.name, made.input()) == ("f", {"a": 1})


@pytest.mark.parametrize("entry", [{}, {"index": 0}, {"function": None}, {"id": 5, "function": {"name": 5}}])
def test_nothing_said_is_no_call(entry):
    assert Calls().add(entry, 0) is None
