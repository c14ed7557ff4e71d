"""Tests for gatewayd.dialects.anthropic.hosts."""

import pytest

from gatewayd.dialects.anthropic.hosts import HOST_RULES, MessageHost, host_of, path_of, placed

INVOKE, MANTLE = MessageHost.BEDROCK_INVOKE, MessageHost.BEDROCK_MANTLE
NATIVE, VERTEX, AZURE = MessageHost.NATIVE, MessageHost.VERTEX, MessageHost.AZURE


@pytest.mark.parametrize(
    ("name", "maker", "host"),
    [
        ("api.anthropic.com", "", NATIVE),
        ("proxy.example.org", "", NATIVE),
        ("bedrock-mantle.us-east-1.api.aws", "", MANTLE),
        ("bedrock-runtime.us-east-1.amazonaws.com", "", INVOKE),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "", INVOKE),
        ("us-east5-aiplatform.googleapis.com", "", VERTEX),
        ("aiplatform.googleapis.com", "", VERTEX),
        ("aiplatform.eu.rep.googleapis.com", "", VERTEX),
        ("R1.services.ai.azure.com", "", AZURE),
        ("bedrock-runtime.amazonaws.com.example.org", "", NATIVE),
        ("proxy.example.org", "bedrock", INVOKE),
        ("proxy.example.org", "vertex", VERTEX),
        ("proxy.example.org", "azure", AZURE),
        ("proxy.example.org", "tolerant", NATIVE),
        ("bedrock-mantle.us-east-1.api.aws", "bedrock", MANTLE),
    ],
)
def test_hosts_are_known_by_name_or_setting(name: str, maker: str, host: MessageHost) -> None:
    assert host_of(name, maker) is host


def test_paths() -> None:
    assert path_of(NATIVE, "m", stream=True) == path_of(AZURE, "m", stream=False) == "/v1/messages"
    assert path_of(VERTEX, "c@1", stream=False) == "/models/c@1:rawPredict"
    assert path_of(VERTEX, "c/1?", stream=True) == "/models/c%2F1%3F:streamRawPredict"
    assert path_of(INVOKE, "us.a.c-v1:0", stream=False) == "/model/us.a.c-v1%3A0/invoke"
    assert path_of(INVOKE, "c", stream=True) == "/model/c/invoke-with-response-stream"


def test_places() -> None:
    body, headers = (
        {"model": "c", "stream": True, "a": 1},
        {"anthropic-version": "v", "anthropic-beta": "x,y"},
    )
    assert placed(NATIVE, body, headers) == (body, headers)
    assert placed(VERTEX, body, headers) == (
        {"anthropic_version": "vertex-2023-10-16", "stream": True, "a": 1},
        {"anthropic-beta": "x,y"},
    )
    assert placed(INVOKE, body, headers) == (
        {"anthropic_version": "bedrock-2023-05-31", "a": 1, "anthropic_beta": ["x", "y"]},
        {},
    )


@pytest.mark.parametrize(
    ("host", "taken", "lacking"),
    [
        (NATIVE, ["fast-mode-2026-02-01", "new"], []),
        (INVOKE, ["effort-2025-11-24"], ["interleaved-thinking-2025-05-14", "files-api-1", "new"]),
        (MANTLE, ["interleaved-thinking-2025-05-14"], ["prompt-caching-scope-2026-01-05"]),
        (VERTEX, ["compact-2026-01-12", "context-1m-2025-08-07"], ["effort-2025-11-24", "mcp-client-1"]),
        (AZURE, ["effort-2025-11-24", "new"], ["compact-2026-01-12", "fast-mode-2026-02-01"]),
    ],
)
def test_betas_of_a_host(host: MessageHost, taken: list[str], lacking: list[str]) -> None:
    rules = HOST_RULES[host]
    assert [beta for beta in (*taken, *lacking) if rules.takes(beta)] == taken
    if host in (INVOKE, MANTLE, VERTEX):
        assert rules.renames("advanced-tool-use-2025-11-20") == "tool-search-tool-2025-10-19"
