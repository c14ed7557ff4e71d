"""The rules for the messages of each maker, in code and in gatewayd-dialects(7), REASONING."""

import re
from pathlib import Path

import pytest

from gatewayd.completions.call_ids import CallIdForm
from gatewayd.dialects.providers.family import MAKERS as KNOWN_MAKERS
from gatewayd.dialects.providers.family import family_of
from gatewayd.dialects.providers.message_rules import (
    NO_MESSAGE_RULES,
    LastTurn,
    MessageRules,
    ReasoningPlace,
    SystemPlace,
)
from gatewayd.dialects.providers.message_table import MAKERS, find_history_rules

PAGE = (Path(__file__).parents[4] / "man" / "gatewayd-dialects.7").read_text()

PLACES = {
    ReasoningPlace.ANY: "as sent",
    ReasoningPlace.NONE: "left out",
    ReasoningPlace.CONTENT: "reasoning_content",
    ReasoningPlace.REASONING: "reasoning",
    ReasoningPlace.PARTS: "thinking parts",
    ReasoningPlace.TEXT: "think tags",
}
IDS = {CallIdForm.ANY: "any", CallIdForm.SHORT: "40", CallIdForm.WORD: "64 w", CallIdForm.NINE: "9"}


def order(rules: MessageRules) -> str:
    words = {
        "S": rules.system is SystemPlace.FIRST,
        "P": rules.pairs_calls,
        "N": not rules.takes_calls,
        "T": rules.needs_tools,
        "E": rules.drops_empty,
        "A": rules.alternates,
        "R": rules.separates_results,
        "X": rules.splits_calls,
        "L": rules.last is LastTurn.REFUSED,
        "M": rules.last is LastTurn.MARKED,
    }
    return "".join(word for word, is_set in words.items() if is_set)


def row(maker: str, rules: MessageRules) -> str:
    place = PLACES[rules.reasoning] + (", demanded" if rules.demands_reasoning else "")
    return f".It {maker} Ta {place} Ta {IDS[rules.call_ids]} Ta {order(rules)}"


def test_page():
    found = re.search(r'\.\\" begin reasoning\n(.*?)\.\\" end reasoning', PAGE, re.DOTALL)
    assert found is not None
    rows = [line for line in found[1].splitlines() if line.startswith(".It ") and " Sy " not in line]
    assert rows == [row(maker, rules) for maker, rules in sorted(MAKERS.items())]


def test_makers():
    assert MAKERS.keys() <= KNOWN_MAKERS


@pytest.mark.parametrize(
    ("maker", "model", "expected"),
    [
        ("", "gpt-5", MAKERS["openai"]),
        ("", "llama-4", NO_MESSAGE_RULES),
        ("tolerant", "gpt-5", NO_MESSAGE_RULES),
        ("deepseek", "deepseek-chat", MAKERS["deepseek"]),
        ("anthropic", "claude-sonnet-4-5-20250929", MAKERS["anthropic"]),
        ("anthropic", "claude-opus-4-20250514", MAKERS["anthropic"]),
        ("anthropic", "claude-sonnet-4-6", MAKERS["anthropic"]),
        ("anthropic", "claude-3-5-haiku-latest", MAKERS["anthropic"]),
        ("anthropic", "minimax-m2", MAKERS["anthropic"]),
    ],
)
def test_families(maker, model, expected):
    assert find_history_rules(family_of("openai", "", model, maker=maker)) == expected


@pytest.mark.parametrize(
    ("maker", "model", "field", "value"),
    [
        ("gemini", "gemini-2.5-pro", "unsigned_mark", ""),
        ("gemini", "gemini-3-pro", "unsigned_mark", "skip_thought_signature_validator"),
        ("gemini", "models/gemini-3.5-flash", "unsigned_mark", "skip_thought_signature_validator"),
        ("mistral", "magistral-medium-latest", "reasoning", ReasoningPlace.PARTS),
        ("mistral", "codestral-2508", "reasoning", ReasoningPlace.NONE),
        ("azure", "mistral-large-2411", "call_ids", CallIdForm.NINE),
        ("azure", "gpt-5", "call_ids", CallIdForm.SHORT),
        ("cerebras", "zai-glm-4.7", "reasoning", ReasoningPlace.TEXT),
        ("cerebras", "gpt-oss-120b", "reasoning", ReasoningPlace.NONE),
        ("anthropic", "claude-opus-4-6", "last", LastTurn.REFUSED),
        ("anthropic", "claude-sonnet-5", "last", LastTurn.REFUSED),
        ("anthropic", "claude-fable-9", "last", LastTurn.REFUSED),
    ],
)
def test_single_families(maker, model, field, value):
    assert getattr(find_history_rules(family_of("openai", "", model, maker=maker)), field) == value
