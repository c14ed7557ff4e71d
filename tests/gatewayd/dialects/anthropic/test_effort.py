"""Tests for gatewayd.dialects.anthropic.effort."""

import pytest

from gatewayd.dialects.anthropic.effort import BUDGETS, is_refused_budget, reasoning_fields
from gatewayd.errors import ErrorKind, GatewayError

YES, NO = {"supported": True}, {"supported": False}
ADAPTIVE = {"thinking": {"supported": True, "types": {"adaptive": YES, "enabled": YES}}}
BUDGETED = {"thinking": {"supported": True, "types": {"adaptive": NO, "enabled": YES}}}
EFFORT = {"effort": {"supported": True, "low": YES, "medium": YES, "high": YES, "max": NO}}
USER = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def ask(level, capabilities=None, *, body=None, **request):
    whole = {"messages": [USER], "max_tokens": 4096, **request}
    return reasoning_fields({"reasoning_effort": level, **(body or {})}, whole, capabilities)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, {}),
        ("none", {"thinking": {"type": "disabled"}}),
        ("minimal", {"effort": "low"}),
        ("medium", {"effort": "medium"}),
        ("max", {"effort": "max"}),
    ],
)
def test_a_model_of_which_nothing_is_known_is_asked_by_effort(level, expected):
    assert ask(level) == expected
    assert ask(level, "odd") == expected


@pytest.mark.parametrize(
    ("level", "capabilities", "expected"),
    [
        ("high", EFFORT, {"effort": "high"}),
        ("xhigh", EFFORT, {"effort": "high"}),
        ("max", EFFORT, {"effort": "high"}),
        ("high", {"effort": NO}, {}),
        ("high", {"effort": 3, "thinking": []}, {}),
        ("low", {**EFFORT, **ADAPTIVE}, {"effort": "low", "thinking": {"type": "adaptive"}}),
    ],
)
def test_a_model_is_asked_for_what_it_can(level, capabilities, expected):
    assert ask(level, capabilities) == expected


def test_a_budget_is_added_to_our_own_limit_and_kept_below_the_callers():
    own = ask("high", BUDGETED)
    assert own["thinking"] == {"type": "enabled", "budget_tokens": BUDGETS["high"]}
    assert own["max_tokens"] == 4096 + BUDGETS["high"]
    kept = ask("high", BUDGETED, body={"max_tokens": 4096})
    assert kept == {"thinking": {"type": "enabled", "budget_tokens": 4095}}
    assert ask("high", BUDGETED, body={"max_completion_tokens": 1024}, max_tokens=1024) == {}
    assert ask("high", BUDGETED, body={"max_tokens": "9"}, max_tokens="9") == {}


@pytest.mark.parametrize(
    "request_",
    [
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "f"}},
        {"temperature": 0.2},
        {"top_k": 5},
    ],
)
def test_no_thinking_is_asked_for_where_it_is_refused(request_):
    assert ask("low", {**EFFORT, **ADAPTIVE}, **request_) == {"effort": "low"}


def test_a_tool_round_goes_on_as_it_began():
    messages = [USER, {"role": "assistant", "content": [CALL]}]
    assert ask("low", BUDGETED, messages=messages) == {}
    assert ask("low", ADAPTIVE, messages=messages) == {"thinking": {"type": "adaptive"}}
    messages = [USER, {"role": "assistant", "content": [THOUGHT, CALL]}]
    assert ask("low", BUDGETED, messages=messages)["thinking"]["type"] == "enabled"


def test_the_callers_own_thinking_stays():
    assert ask("low", ADAPTIVE, thinking={"type": "enabled", "budget_tokens": 2000}) == {}
    assert ask("low", {**EFFORT, **ADAPTIVE}, thinking={"type": "adaptive"}) == {"effort": "low"}
    assert ask("none", thinking={"type": "adaptive"}) == {}


@pytest.mark.parametrize("level", ["huge", 3, [], {}])
def test_an_unknown_level_is_refused(level):
    with pytest.raises(GatewayError) as caught:
        ask(level)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "reasoning_effort")


USED = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1"}]}
THOUGHT_FIRST = {"role": "assistant", "content": [{"type": "thinking"}, {"type": "tool_use", "id": "t1"}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}
SPOKEN = {"role": "user", "content": [{"type": "text", "text": "a"}]}


@pytest.mark.parametrize(
    ("messages", "is_refused"),
    [([USED, RESULT], True), ([THOUGHT_FIRST, RESULT], False), ([USED, RESULT, SPOKEN], False), ([], False)],
)
def test_budgets_that_are_refused(messages, is_refused):
    thinking = {"type": "enabled", "budget_tokens": 2048}
    assert is_refused_budget({"messages": messages, "thinking": thinking}) == is_refused
    assert not is_refused_budget({"messages": messages, "thinking": {"type": "adaptive"}})
    assert not is_refused_budget({"messages": messages})
