"""Tests for gatewayd.dialects.providers.family."""

import pytest

from gatewayd.dialects.providers.family import (
    MAX_NAME_CHARACTERS,
    Family,
    canonical_name,
    family_of,
    known_family,
)


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("gpt-5.2", "gpt-5.2"),
        ("GPT-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-5", "gpt-5"),
        ("models/gemini-3-pro-preview", "gemini-3-pro-preview"),
        ("accounts/fireworks/models/glm-5", "glm-5"),
        ("deepseek/deepseek-v4:free", "deepseek-v4"),
        ("us.anthropic.claude-opus-4-6-20260101-v1:0", "claude-opus-4-6"),
        ("anthropic.claude-3-haiku-20240307-v1:0:200k", "claude-3-haiku"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.7", "claude-opus-4-7"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt-4o-mini"),
        ("deepseek-v4", "deepseek-v4"),
        ("qwen3:8b", "qwen3"),
        ("mistral-small-latest", "mistral-small"),
        ("x" * (MAX_NAME_CHARACTERS + 1), ""),
        ("", ""),
        ("é" * 200, "é" * 200),
    ],
)
def test_name_of_a_model_behind_its_id(model_id: str, name: str) -> None:
    assert canonical_name(model_id) == name


@pytest.mark.parametrize(
    ("kind", "host", "model_id", "record", "maker", "family"),
    [
        ("openai", "api.openai.com", "gpt-5", "", "", Family("openai", "gpt-5", "openai")),
        ("openai", "eu.api.openai.com", "gpt-5", "", "", Family("openai", "gpt-5", "openai")),
        ("openai", "notapi.openai.com.evil.test", "m", "", "", Family("", "m", "")),
        ("openai", "acme.openai.azure.com", "prod", "gpt-5.2", "", Family("azure", "gpt-5.2", "openai")),
        ("openai", "acme.openai.azure.com", "prod", "", "", Family("azure", "prod", "")),
        ("openai", "proxy.test", "gpt-5", "", "", Family("", "gpt-5", "openai")),
        ("openai", "127.0.0.1", "qwen3", "", "vllm", Family("vllm", "qwen3", "dashscope")),
        ("openai", "api.groq.com", "openai/gpt-oss-120b", "", "", Family("groq", "gpt-oss-120b", "gpt-oss")),
        ("anthropic", "proxy.test", "x", "", "", Family("anthropic", "x", "")),
        ("anthropic", "api.deepseek.com", "x", "", "", Family("deepseek", "x", "")),
    ],
)
def test_families(kind: str, host: str, model_id: str, record: str, maker: str, family: Family) -> None:
    assert family_of(kind, host, model_id, record, maker) == family


def test_only_a_name_that_tells_its_maker_is_a_family() -> None:
    assert known_family("openai/gpt-4o-2024-08-06") == "gpt-4o"
    assert known_family("my-deployment") == ""
