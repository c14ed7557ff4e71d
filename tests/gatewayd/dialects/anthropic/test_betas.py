"""Tests for gatewayd.dialects.anthropic.betas: what goes with each beta."""

import copy
from typing import Any

import pytest

from gatewayd.dialects.anthropic.betas import (
    MAX_BETAS,
    PARTS,
    BetaParts,
    denied_parts,
    family_of_beta,
    is_denied,
    parse_betas,
    parts_of,
    without_parts,
)

CACHED = {"type": "ephemeral", "ttl": "1h", "scope": "global"}
TEXT = {"type": "text", "text": "hi"}
TOOL = {"name": "f", "input_schema": {}}


def turn(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [TEXT, *blocks]}]}


@pytest.mark.parametrize(
    ("beta", "body", "rest", "names"),
    [
        ("context-management-2025-06-27", {"context_management": {"edits": []}}, {}, ["context_management"]),
        (
            "compact-2026-01-12",
            {"context_management": {"edits": [{"type": "compact_20260112"}, {"type": "clear_x"}], "a": 1}},
            {"context_management": {"edits": [{"type": "clear_x"}], "a": 1}},
            ["context_management.edits"],
        ),
        (
            "compact-2026-09-04",
            {"context_management": {"edits": [{"type": "compact_20260112"}]}},
            {},
            ["context_management.edits"],
        ),
        (
            "effort-2025-11-24",
            {"output_config": {"effort": "low", "format": {}}},
            {"output_config": {"format": {}}},
            ["output_config.effort"],
        ),
        ("effort-2025-11-24", {"output_config": {"effort": "low"}}, {}, ["output_config.effort"]),
        (
            "structured-outputs-2025-12-15",
            {"output_format": {}, "output_config": {"format": {}}, "tools": [{**TOOL, "strict": True}]},
            {"tools": [TOOL]},
            ["output_format", "output_config.format", "strict of tools"],
        ),
        (
            "advanced-tool-use-2025-11-20",
            {"tools": [{**TOOL, "defer_loading": True}, {"type": "tool_search_tool_bm25_20251119"}]},
            {"tools": [TOOL]},
            ["defer_loading of tools", "tools of type 'tool_search_tool_bm25_20251119'"],
        ),
        (
            "advisor-tool-2026-03-01",
            {"tools": [{"type": "advisor_20260301"}], "tool_choice": {"type": "auto"}},
            {},
            ["tools of type 'advisor_20260301'"],
        ),
        ("fast-mode-2026-02-01", {"speed": "fast", "a": 1}, {"a": 1}, ["speed"]),
        (
            "server-side-fallback-2026-07-01",
            {"fallbacks": "default", **turn({"type": "fallback"})},
            turn(),
            ["fallbacks", "fallback blocks"],
        ),
        (
            "extended-cache-ttl-2025-04-11",
            {
                "system": [{**TEXT, "cache_control": CACHED}],
                "tools": [{**TOOL, "cache_control": CACHED}],
                **turn({"type": "tool_result", "content": [{**TEXT, "cache_control": CACHED}]}),
            },
            {
                "system": [{**TEXT, "cache_control": {"type": "ephemeral", "scope": "global"}}],
                "tools": [{**TOOL, "cache_control": {"type": "ephemeral", "scope": "global"}}],
                **turn(
                    {
                        "type": "tool_result",
                        "content": [{**TEXT, "cache_control": {"type": "ephemeral", "scope": "global"}}],
                    }
                ),
            },
            ["cache_control.ttl"],
        ),
        (
            "mid-conversation-system-2026-04-07",
            {"messages": [{"role": "system", "content": "be"}]},
            {"messages": [{"role": "user", "content": "be"}]},
            ["role system"],
        ),
        (
            "mid-conversation-tool-changes-2026-07-01",
            {"messages": [{"role": "user", "content": [{"type": "tool_addition"}]}, *turn()["messages"]]},
            turn(),
            ["tool_addition blocks"],
        ),
        ("interleaved-thinking-2025-05-14", turn(), turn(), []),
        ("unheard-of", {"unheard_of": 1}, {"unheard_of": 1}, []),
    ],
)
def test_the_parts_of_a_beta_go_with_it(
    beta: str, body: dict[str, Any], rest: dict[str, Any], names: list[str]
) -> None:
    sent = copy.deepcopy(body)
    found, told = without_parts(body, parts_of([beta]))
    assert (found, told) == (rest, names)
    assert body == sent
    assert (found is body) is (not names)


def test_a_part_stays_while_another_beta_has_it() -> None:
    parts = parts_of(["skills-2025-10-02"]) - parts_of(["code-execution-2025-08-25"])
    assert not parts
    assert parts_of(["effort-2025-11-24"]) | BetaParts() == PARTS["effort"]


def test_odd_values_are_left_alone() -> None:
    every = parts_of(PARTS)
    odd = {"system": 5, "messages": ["x", {"role": 5, "content": 5}], "tools": "x", "output_config": []}
    assert without_parts(odd, every)[0] == odd
    deep: dict[str, Any] = TEXT
    for _ in range(60):
        deep = {"type": "document", "source": {"content": [deep]}}
    assert without_parts(turn(deep), every)[0] == turn(deep)


def test_names() -> None:
    assert family_of_beta("effort-2025-11-24") == "effort"
    assert family_of_beta("claude-code-20250219") == "claude-code"
    assert family_of_beta("context-1m") == "context-1m"
    assert parse_betas(["a, b,,a", "c"]) == ["a", "b", "c"]
    assert len(parse_betas([",".join(map(str, range(1000)))])) == MAX_BETAS
    for pattern in ("effort", "effort-2025-11-24", "eff*", "*"):
        assert is_denied("effort-2025-11-24", [pattern])
        assert denied_parts([pattern]).config >= {"effort"}
    assert not is_denied("effort-2025-11-24", ["effor", "fast-mode"])
    assert not denied_parts(["oauth-*"])
    assert not denied_parts([])
