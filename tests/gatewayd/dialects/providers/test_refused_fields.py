"""Tests for gatewayd.dialects.providers.refused_fields and field_changes: every shape of a refusal."""

import copy
import time

import pytest

from gatewayd.dialects.providers.field_changes import RefusedField, change_field
from gatewayd.dialects.providers.refused_fields import (
    MAX_EXAMINED_CHARACTERS,
    MAX_FIELDS,
    quotes_caller,
    read_refusal,
)
from tests.fakes.providers.strict.base import openai_error

TOOL = {"type": "function", "function": {"name": "f", "strict": True}, "cache_control": {"type": "ephemeral"}}
BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {}}]}],
    "tools": [TOOL],
    "tool_choice": "auto",
    "response_format": {"type": "json_object"},
    "temperature": 0.5,
    "top_p": 0.9,
    "presence_penalty": 1,
    "seed": 3,
    "store": False,
    "metadata": {},
    "user": "ada",
    "stream_options": {"include_usage": True},
    "reasoning_effort": "minimal",
    "max_tokens": 100_000,
    "output_config": {"effort": "max", "format": {}},
    "prompt_cache_key": "k",
}


def google(message: str, **more: object) -> list:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT", **more}}]


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (
            openai_error("Unsupported parameter", param="temperature", code="unsupported_parameter"),
            "temperature",
        ),
        (openai_error("Unrecognized request argument supplied: store"), "store"),
        (openai_error("Unrecognized request arguments supplied: store"), "store"),
        (
            {"type": "error", "error": {"message": "temperature: Extra inputs are not permitted"}},
            "temperature",
        ),
        ({"error": {"message": "tools.0.custom.strict: Extra inputs are not permitted"}}, "strict"),
        (
            {"error": {"message": "messages.1.content.0.text.cache_control: Extra inputs are not permitted"}},
            "cache_control",
        ),
        ({"error": {"message": "output_config.effort: Extra inputs are not permitted"}}, "effort"),
        ({"error": {"message": "`temperature` is deprecated for this model."}}, "temperature"),
        (
            {"error": {"message": "`temperature` and `top_p` cannot both be specified for this model."}},
            "top_p",
        ),
        (openai_error("Extra inputs are not permitted, field: 'seed', value: 3"), "seed"),
        (openai_error("'messages.0' : ... property 'seed' is unsupported"), "seed"),
        (
            google(
                'Invalid JSON payload received. Unknown name "store": Cannot find field.\nUnknown name "seed"'
            ),
            "store seed",
        ),
        (
            openai_error("'temperature' must be one of 1", param="temperature", code="invalid_value"),
            "temperature",
        ),
        # What the caller got wrong is their error.
        (openai_error("Invalid type for 'seed'", param="seed", code="invalid_type"), ""),
        (openai_error("Unsupported", param="seed", code="integer_above_max_value"), ""),
        (openai_error("too large", param="temperature"), ""),
        ({"detail": [{"type": "int_parsing", "loc": ["body", "seed"], "msg": "unsupported"}]}, ""),
        (google("bad", details=[{"fieldViolations": [{"field": "seed", "description": "x"}]}]), "seed"),
        (
            {"code": "invalid-argument", "error": "Model m does not support parameter presencePenalty."},
            "presence_penalty",
        ),
        (openai_error("invalid temperature: only 1 is allowed for this model"), "temperature"),
        (openai_error("<400> InternalError: parameter.top_p must be in (0, 1)"), "top_p"),
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "user"], "msg": "Extra inputs"}]}, "user"),
        ({"message": {"detail": [{"loc": ["body", "user"], "msg": "Extra inputs"}]}}, "user"),
        ({"error": "Unrecognized key: 'prompt_cache_key'"}, "prompt_cache_key"),
        (openai_error("Unknown parameter: 'stream_options'.", code="unknown_parameter"), "stream_options"),
        ("presence_penalty is not supported by this model", "presence_penalty"),
        # Never what makes the answer an answer to the request.
        ({"error": "'response_format.type' must be 'json_schema' or 'text'"}, ""),
        (openai_error("bad", param="messages"), ""),
        (openai_error("bad", param="messages[0].content[0].seed"), ""),
        (openai_error("bad", param="tools[0].function.parameters.properties.temperature"), ""),
        (openai_error("bad", param="tools"), ""),
        (openai_error("bad", param="model"), ""),
        (openai_error("Unknown parameter: 'top_k'."), ""),
        (openai_error("Your seed is fine; the request is not."), ""),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', ""),
        (None, ""),
        ([], ""),
        ({"error": {"details": [{"fieldViolations": "x"}], "param": 7}, "detail": [7, {"loc": {}}]}, ""),
    ],
)
def test_the_field_of_a_refusal(answer: object, fields: str) -> None:
    text = answer if isinstance(answer, str) else ""
    found = read_refusal(None if isinstance(answer, str) else answer, text, BODY)
    assert [field.name for field in found] == fields.split()


@pytest.mark.parametrize(
    ("sentence", "limit"),
    [
        ("Range of max_tokens should be [1, 8192] tokens", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m", 64000),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", 16384),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`", 8192),
        ("max_tokens must be at most 200000", 0),
        ("max_tokens must be [1, 0]", 0),
    ],
)
def test_the_limit_of_a_refusal(sentence: str, limit: int) -> None:
    found = read_refusal(openai_error(sentence, param="max_tokens"), "", BODY)
    assert [field.limit for field in found if field.limit] == ([limit] if limit else [])
    if limit:
        body = dict(BODY)
        assert change_field(body, found[0])
        assert body["max_tokens"] == limit
        assert not change_field(body, found[0])


def test_a_limit_by_the_context_holds_for_one_request() -> None:
    text = "max_tokens is too large: 100000. This model's maximum context length is 4096 tokens"
    assert read_refusal(openai_error(text, param="max_tokens"), "", BODY) == []


def test_a_refused_value_is_that_value_only() -> None:
    text = "invalid temperature: only 1 is allowed for this model"
    (field,) = read_refusal(openai_error(text), "", BODY)
    assert not change_field({"temperature": 1}, field)
    assert change_field({"temperature": 0.5}, field)


def test_a_limit_is_renamed_and_never_left_out() -> None:
    answer = openai_error(
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens"
    )
    (field,) = read_refusal(answer, "", BODY)
    body = dict(BODY)
    assert change_field(body, field)
    assert (body.get("max_tokens"), body["max_completion_tokens"]) == (None, 100_000)
    assert read_refusal(answer, "", {**BODY, "max_completion_tokens": 5}) == []


def test_a_refused_word_of_effort_becomes_a_supported_one() -> None:
    text = (
        "Unsupported value: 'reasoning_effort' does not support 'minimal'."
        " Supported values are: 'low', and 'high'."
    )
    (field,) = read_refusal(openai_error(text, param="reasoning_effort", code="unsupported_value"), "", BODY)
    assert field == RefusedField("reasoning_effort", "'minimal'", replacement="low")
    assert not change_field({"reasoning_effort": "high"}, field)


@pytest.mark.parametrize(
    ("body", "sentence", "replacement"),
    [
        (
            {"think": "max"},
            'invalid think value: "max" (must be "high", "medium", "low", true, or false)',
            "high",
        ),
        ({"think": True}, '"m" does not support thinking', ""),
        (
            {"reasoning_effort": "max"},
            'invalid reasoning value: \'max\' (must be "high", "medium", or "low")',
            "high",
        ),
        (
            {"reasoning_effort": "none"},
            "[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low',"
            " 'medium' or 'high'\"}]",
            "low",
        ),
    ],
)
def test_words_of_engines(body: dict, sentence: str, replacement: str) -> None:
    (field,) = read_refusal({"error": sentence}, "", body)
    assert (field.name, field.replacement) == (next(iter(body)), replacement)
    assert change_field(dict(body), field)


def test_tools_beside_reasoning_are_sent_without_it() -> None:
    text = "Function tools with reasoning_effort are not supported for m in /v1/chat/completions."
    (field,) = read_refusal(openai_error(text), "", BODY)
    body: dict = {"tools": [TOOL]}
    assert change_field(body, field)
    assert body["reasoning_effort"] == "none"
    assert not change_field(body, field)
    assert not change_field({"messages": []}, field)


def test_a_change_leaves_the_given_request_as_it_was() -> None:
    before = copy.deepcopy(BODY)
    for name in ("strict", "cache_control", "effort", "seed"):
        body = dict(BODY)
        assert change_field(body, RefusedField(name))
        assert f"'{name}'" not in str(body)
        assert not change_field(body, RefusedField(name))
    assert before == BODY


@pytest.mark.parametrize(
    "sentence",
    [
        "a" * 1_000_000,
        "unknown parameter " * 50_000,
        "`" * 100_000,
        "parameter.a" * 50_000,
        "only only allowed " * 50_000,
        "a.b" * 100_000 + ": extra inputs are not permitted",
        "".join(f"unknown parameter: 'x{number}' " for number in range(10_000)),
    ],
)
def test_a_long_refusal_costs_little(sentence: str) -> None:
    started = time.process_time()
    read_refusal({"error": sentence, "detail": [{"loc": ["x"] * 100_000}]}, sentence, BODY)
    assert time.process_time() - started < 2
    assert len(sentence) > MAX_EXAMINED_CHARACTERS


def test_a_refusal_names_few_fields() -> None:
    names = ("temperature", "top_p", "top_k", "min_p", "seed", "user", "store", "metadata", "betas")
    body = dict.fromkeys(names, 1)
    text = "\n".join(f'Unknown name "{name}"' for name in body)
    assert len(read_refusal(google(text), "", body)) == MAX_FIELDS


def test_many_texts_that_repeat_a_name_cost_little() -> None:
    sentence = "Unsupported parameter: 'seed' " + "x y z seedx" * 400
    body = {"model": "m", "seed": 1, "metadata": {str(number): "seed" * 4500 for number in range(100)}}
    begun = time.process_time()
    assert quotes_caller({"error": {"message": sentence}}, sentence, body, ["seed"])
    assert time.process_time() - begun < 2
