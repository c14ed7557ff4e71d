"""Tests for gatewayd.dialects.bedrock.embeddings."""

import pytest

from gatewayd.dialects.bedrock.embeddings import TOKENS_HEADER, form_of, to_requests, tokens_of
from gatewayd.errors import GatewayError

TITAN = "amazon.titan-embed-text-v2:0"
COHERE = "global.cohere.embed-v4:0"


def requests(model, **fields):
    form = form_of(model)
    assert form is not None
    return list(to_requests({"model": "m", "input": ["a", "b"], "user": "u", **fields}, form))


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        ("amazon.titan-embed-text-v1", {"dimensions": 256}, [{"inputText": "a"}, {"inputText": "b"}]),
        (TITAN, {"input": ["a"], "dimensions": 256, "normalize": False},
         [{"inputText": "a", "dimensions": 256, "normalize": False}]),
        ("amazon.titan-embed-image-v1", {"input": ["a"], "dimensions": 384},
         [{"inputText": "a", "embeddingConfig": {"outputEmbeddingLength": 384}}]),
        ("amazon.titan-embed-image-v1", {"input": ["a"]}, [{"inputText": "a"}]),
        ("cohere.embed-english-v3", {}, [{"texts": ["a", "b"], "input_type": "search_document"}]),
        ("cohere.embed-english-v3", {"input_type": "query", "truncate": "END", "dimensions": 9},
         [{"texts": ["a", "b"], "input_type": "search_query", "truncate": "END"}]),
        (COHERE, {"input_type": "clustering", "dimensions": 256},
         [{"texts": ["a", "b"], "input_type": "clustering", "embedding_types": ["float"],
           "output_dimension": 256}]),
        (COHERE, {"input_type": ["x"]},
         [{"texts": ["a", "b"], "input_type": ["x"], "embedding_types": ["float"]}]),
    ],
)  # fmt: skip
def test_requests(model, fields, expected):
    assert requests(model, **fields) == expected


def test_long_lists_are_split():
    assert [len(each["texts"]) for each in requests(COHERE, input=["a"] * 100)] == [96, 4]


def test_tokens_are_refused():
    with pytest.raises(GatewayError, match="no lists of tokens") as caught:
        requests(TITAN, input=[[1, 2]])
    assert caught.value.param == "input"


def test_models_without_vectors():
    assert form_of("anthropic.claude-opus-4-6-v1") is form_of("amazon.nova-2-lite-v1:0") is None


@pytest.mark.parametrize(
    ("model", "answer", "vectors"),
    [
        (TITAN, {"embedding": [1.0]}, [[1.0]]),
        (TITAN, {}, [None]),
        (COHERE, {"embeddings": {"float": [[1.0]]}}, [[1.0]]),
        ("cohere.embed-english-v3", {"embeddings": [[1.0], [2.0]]}, [[1.0], [2.0]]),
        (COHERE, {"embeddings": "x"}, ()),
    ],
)
def test_vectors(model, answer, vectors):
    form = form_of(model)
    assert form is not None
    assert form.vectors(answer) == vectors


@pytest.mark.parametrize(
    ("answer", "headers", "tokens"),
    [
        ({"inputTextTokenCount": 4}, {TOKENS_HEADER: "9"}, 4),
        ({"meta": {"billed_units": {"input_tokens": 7}}}, {}, 7),
        ({}, {TOKENS_HEADER: "9"}, 9),
        ({}, {TOKENS_HEADER: "many"}, 0),
        ({"inputTextTokenCount": -1}, {TOKENS_HEADER: "9" * 20}, 0),
    ],
)
def test_tokens(answer, headers, tokens):
    assert tokens_of(answer, headers) == tokens
