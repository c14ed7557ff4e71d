"""Tests for gatewayd.upstream.sources.rule_summary."""

import orjson
import pytest

from gatewayd.errors import GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.rule_summary import MAX_LINES, summarize


def lines(url: str, **fields: object) -> list[str]:
    return list(summarize(ProviderConfig("acme", SourceKind.OPENAI, url, **fields)))  # type: ignore[arg-type]


def test_each_model_and_pattern_of_the_settings_has_its_line() -> None:
    changes = (
        ("gpt-5*", orjson.dumps({"drop": ["seed"], "call_ids": "nine"}).decode()),
        ("*", orjson.dumps({"max_stop": 2, "drop": ["user"]}).decode()),
    )
    found = lines(
        "https://api.openai.com/v1",
        models=("gpt-5", "team"),
        families=(("team", "gpt-5-mini"),),
        rules=changes,
    )
    assert found[0] == "provider acme: kind openai, maker openai"
    heads = [line.partition(":")[0].strip() for line in found[1:]]
    assert heads == ["gpt-5", "team", "gpt-5*", "*"]
    added = [line.partition(" of the settings: ")[2] for line in found[1:]]
    assert added == [*["call_ids, drop, max_stop"] * 3, "drop, max_stop"]
    assert "family gpt-5-mini" in found[2]


def test_an_unknown_maker_has_no_rules() -> None:
    assert lines("https://llm.example/v1") == ["provider acme: kind openai, maker unknown", "  *: 0 rules"]


def test_many_models_are_few_lines() -> None:
    found = lines("https://llm.example/v1", models=tuple(f"m{number}" for number in range(300)))
    assert len(found) == MAX_LINES + 2
    assert found[-1] == "  and 201 more"


def test_a_bad_change_is_told() -> None:
    with pytest.raises(GatewayError, match="drop"):
        lines("https://llm.example/v1", rules=(("*", '{"drop": 7}'),))
