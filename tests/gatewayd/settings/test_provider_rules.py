"""Tests for gatewayd.settings.provider_rules, and that gatewayd.dialects.providers.changes takes the same."""

from typing import Any

import pytest
from pydantic import ValidationError

from gatewayd.completions.call_ids import CallIdForm
from gatewayd.dialects.providers.changes import CHANGES, change_rules
from gatewayd.dialects.providers.message_rules import LastTurn, MessageRules, ReasoningPlace, SystemPlace
from gatewayd.dialects.providers.rules import Protocol, Rules, Sampling, ThinkingForm
from gatewayd.errors import GatewayError
from gatewayd.settings.provider_rules import ProviderRule

GOOD: dict[str, Any] = {
    "drop": ["seed"],
    "keep": ["user"],
    "rename": {"max_tokens": "max_completion_tokens"},
    "values": {"temperature": [1], "n": [1, 2]},
    "ranges": {"temperature": [0, 1.5]},
    "drop_tool_fields": ["strict"],
    "max_output_tokens": 100,
    "max_stop": 4,
    "efforts": ["high", "low"],
    "default_effort": "none",
    "always_thinks": True,
    "thinking": "enable_thinking",
    "sampling": "without effort",
    "tools_with_effort": False,
    "tool_choices": ["auto"],
    "response_formats": ["json_object"],
    "strict_schemas": True,
    "instructions": "developer",
    "images": "data",
    "protocol": "responses_with_tools",
    "system_messages": "first",
    "call_ids": "nine",
    "last_message": "marked",
    "own_reasoning": "reasoning_content",
    "demand_reasoning": True,
    "reasoning_details": False,
    "pair_calls": True,
    "earlier_calls": False,
    "calls_need_tools": True,
    "drop_empty_texts": True,
    "alternate_roles": True,
    "separate_results": True,
    "split_calls": True,
    "message_members": ["prefix"],
    "call_members": [],
}

BAD: list[tuple[str, Any]] = [
    ("drop", "seed"),
    ("drop", [7]),
    ("drop", ["a"] * 101),
    ("drop", ["a" * 101]),
    ("rename", {"a": 7}),
    ("rename", ["a"]),
    ("values", {"a": 1}),
    ("values", {"a": [{}]}),
    ("ranges", {"a": [1]}),
    ("ranges", {"a": [2, 1]}),
    ("ranges", {"a": [0, float("inf")]}),
    ("ranges", {"a": [True, 2]}),
    ("max_output_tokens", -1),
    ("max_output_tokens", 1.5),
    ("max_output_tokens", True),
    ("efforts", ["ultra"]),
    ("efforts", "low"),
    ("default_effort", "ultra"),
    ("always_thinks", 1),
    ("always_thinks", "true"),
    ("thinking", "loudly"),
    ("sampling", "sometimes"),
    ("tool_choices", ["any"]),
    ("response_formats", ["xml"]),
    ("instructions", "tool"),
    ("images", "small"),
    ("protocol", "grpc"),
    ("system_messages", "last"),
    ("call_ids", "ten"),
    ("last_message", ""),
    ("own_reasoning", "content"),
    ("pair_calls", "true"),
    ("message_members", "prefix"),
    ("odd", 1),
]


def test_both_know_the_same_names() -> None:
    assert set(GOOD) == set(CHANGES) == ProviderRule.model_fields.keys() - {"provider", "model"}


def test_good_tables_become_changes() -> None:
    rule = ProviderRule.model_validate({"provider": "acme", "model": "gpt-*", **GOOD})
    assert rule.changes == GOOD
    assert ProviderRule().changes == {}
    changed = change_rules(Rules(dropped=frozenset({"user"}), known=frozenset({"seed", "n"})), rule.changes)
    assert (changed.dropped, changed.known) == (frozenset({"seed"}), frozenset({"n", "user"}))
    assert changed.efforts == ("low", "high")
    assert (changed.thinking, changed.sampling) == (ThinkingForm.SWITCH, Sampling.WITHOUT_EFFORT)
    assert changed.protocol is Protocol.RESPONSES_WITH_TOOLS
    assert changed.messages == MessageRules(
        SystemPlace.FIRST,
        CallIdForm.NINE,
        LastTurn.MARKED,
        ReasoningPlace.CONTENT,
        pairs_calls=True,
        takes_calls=False,
        needs_tools=True,
        drops_empty=True,
        alternates=True,
        separates_results=True,
        splits_calls=True,
        demands_reasoning=True,
        takes_details=False,
        members=frozenset({"prefix"}),
        call_members=frozenset(),
    )
    assert changed.touched >= {"seed", "max_tokens", "temperature", "stop", "tools", "response_format"}


@pytest.mark.parametrize(("name", "value"), BAD)
def test_both_refuse_the_same_values(name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        ProviderRule.model_validate({name: value})
    assert refused.value.errors()[0]["loc"][0] == name
    with pytest.raises(GatewayError) as raised:
        change_rules(Rules(), {name: value}, "meta.provider_rules")
    assert (raised.value.param or "").startswith("meta.provider_rules")
