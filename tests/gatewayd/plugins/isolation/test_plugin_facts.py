import time
from collections.abc import Callable
from typing import Any

import pytest

from gatewayd.plugins.isolation.messages import PipeData, pack_at_once, unpack_at_once
from gatewayd.plugins.isolation.plugin_facts import (
    MAX_ATTRIBUTE_BYTES,
    MAX_METHODS,
    PluginFacts,
    facts_of,
    read_facts,
)
from tests.fakes.plugins.loaded import running

CONTENT = f"""
    from pydantic import BaseModel
    class Filter:
        class Valves(BaseModel):
            priority: int = 4
        toggle = True
        citation = 0
        icon = "x" * {MAX_ATTRIBUTE_BYTES}
        icon_url = object()
        def __init__(self):
            self.valves = self.Valves()
        def inlet(self, body, __user__=None):
            return body
"""


async def test_facts_go_to_the_gateway() -> None:
    async with running(CONTENT) as (loaded, _):
        told = unpack_at_once(*pack_at_once(PipeData(facts_of(loaded)))).value
    facts = read_facts(told)
    assert set(facts.methods) == {"inlet"}
    assert facts.parameters("inlet").names == {"body", "__user__"}
    assert facts.parameters("inlet").with_defaults == {"__user__"}
    assert facts.public == ("inlet",)
    assert facts.values == {"toggle": True, "citation": 0}
    assert facts.flags == {"toggle": True, "citation": False, "icon": True, "icon_url": True}
    assert (facts.priority, facts.has_valves, facts.has_user_valves) == (4, True, False)


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {"methods": {"a": 1}},
        {"methods": {str(number): [[], []] for number in range(MAX_METHODS + 1)}},
        {"public": ["a"] * (MAX_METHODS + 1)},
        {"priority": "high"},
        {"flags": {"toggle": "perhaps"}},
    ],
)
def test_a_malformed_description_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"description of the plugin is invalid|too many methods"):
        read_facts(told)


def test_an_unknown_plugin_has_nothing() -> None:
    assert read_facts({}) == PluginFacts()


LARGE: dict[str, Callable[[], Any]] = {
    "parameters": lambda: {"methods": {"a": [[0] * 300_000, []]}},
    "methods": lambda: {"methods": {str(number): 0 for number in range(300_000)}},
    "flags": lambda: {"flags": {str(number): "perhaps" for number in range(300_000)}},
}


@pytest.mark.parametrize("made", LARGE.values(), ids=LARGE)
def test_a_large_refusal_takes_no_time(made: Callable[[], Any]) -> None:
    told = made()
    began = time.process_time()
    with pytest.raises(ValueError, match=r"description of the plugin is invalid|too many methods"):
        read_facts(told)
    assert time.process_time() - began < 0.1
