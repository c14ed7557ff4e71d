"""Tests for gatewayd.catalog.model_facts."""

from typing import Any

import pytest

from gatewayd.catalog.model_facts import MAX_TOKENS, MAX_WORDS, facts_of


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ({"id": "m"}, {}),
        # OpenRouter, Groq, vLLM, LM Studio, llama.cpp, Anthropic and Gemini in turn.
        (
            {
                "context_length": 128000,
                "top_provider": {"max_completion_tokens": 4096},
                "architecture": {"input_modalities": ["text", "image"], "tokenizer": "GPT"},
                "supported_parameters": ["tools", "seed"],
                "pricing": {"prompt": "0.000002", "completion": 1e-05},
            },
            {
                "context_length": 128000,
                "max_completion_tokens": 4096,
                "architecture": {"input_modalities": ["text", "image"]},
                "supported_parameters": ["tools", "seed"],
                "pricing": {"prompt": "0.000002", "completion": "1e-05"},
            },
        ),
        (
            {"context_window": 131072, "max_completion_tokens": 32768},
            {"context_length": 131072, "max_completion_tokens": 32768},
        ),
        ({"max_model_len": 8192}, {"context_length": 8192}),
        ({"max_context_length": 32768, "loaded_context_length": 4096}, {"context_length": 4096}),
        ({"meta": {"n_ctx_train": 40960}}, {"context_length": 40960}),
        (
            {
                "max_input_tokens": 200000,
                "max_tokens": 64000,
                "capabilities": {"image_input": {"supported": True}, "pdf_input": {"supported": False}},
            },
            {
                "context_length": 200000,
                "max_completion_tokens": 64000,
                "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
            },
        ),
        (
            {"inputTokenLimit": 1048576, "outputTokenLimit": 65536},
            {"context_length": 1048576, "max_completion_tokens": 65536},
        ),
    ],
)
def test_facts_have_one_name(listed: dict[str, Any], expected: dict[str, Any]) -> None:
    assert facts_of({"openai": listed}) == expected


@pytest.mark.parametrize(
    "listed",
    [
        {"context_length": True, "max_tokens": -1},
        {"context_length": "8192", "max_tokens": 1.5},
        {"context_length": MAX_TOKENS + 1},
        {"architecture": "text", "pricing": [1], "supported_parameters": "tools", "meta": 3},
        {"architecture": {"input_modalities": {"text": 1}}, "capabilities": ["image_input"]},
        {"pricing": {"prompt": None, "completion": True, "x" * 99: "1", "image": "1" * 99}},
    ],
)
def test_what_is_no_fact_is_left_out(listed: dict[str, Any]) -> None:
    assert facts_of({"openai": listed}) == {}


def test_lists_are_bounded() -> None:
    facts = facts_of({"openai": {"supported_parameters": ["a"] * 5000}})
    assert facts == {"supported_parameters": ["a"] * MAX_WORDS}
    assert facts_of({}) == facts_of({"openai": "x"}) == {}
