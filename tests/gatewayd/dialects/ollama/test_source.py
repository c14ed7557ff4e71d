import base64
import string

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.dialects.ollama.dialect import parse_chat
from gatewayd.dialects.ollama.source import (
    ReplyDecoder,
    finish_reason,
    from_embed,
    to_completion,
    to_embed,
    to_request,
    to_usage,
)
from gatewayd.errors import ErrorKind, GatewayError


def convert(*messages, **fields):
    return to_request({"model": "m", "messages": list(messages), **fields}, stream=True)


def new_id():
    return "new"


def test_plain_request():
    assert convert({"role": "user", "content": "hi"}, unknown=1) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"temperature": 0, "top_p": 0.5, "seed": 3}, {"temperature": 0, "top_p": 0.5, "seed": 3}),
        ({"stop": "a"}, {"stop": ["a"]}),
        ({"stop": ["a", "b"]}, {"stop": ["a", "b"]}),
        ({"max_tokens": 5}, {"num_predict": 5}),
        ({"max_completion_tokens": 6, "max_tokens": 5}, {"num_predict": 6}),
        ({"num_predict": 7, "max_tokens": 5}, {"num_predict": 7}),
        ({"frequency_penalty": 1, "presence_penalty": 2}, {"frequency_penalty": 1, "presence_penalty": 2}),
        ({"temperature": 1, "options": {"temperature": 0, "odd": 1}}, {"temperature": 0, "odd": 1}),
        ({"temperature": None}, None),
        ({"repetition_penalty": 1.1}, {"repeat_penalty": 1.1}),
        ({"repetition_penalty": 1.1, "repeat_penalty": 1.2}, {"repeat_penalty": 1.2}),
        ({"use_mmap": False, "num_ctx": 9}, {"use_mmap": False, "num_ctx": 9}),
    ],
)
def test_options(fields, options):
    assert convert(**fields).get("options") == options


TOOLS = [{"type": "function", "function": {"name": name}} for name in "fg"]
SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"keep_alive": "5m"}, {"keep_alive": "5m"}),
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        ({"response_format": SCHEMA}, {"format": {"type": "object"}}),
        ({"response_format": {"type": "text"}, "format": "json"}, {"format": "json"}),
        ({"think": False, "reasoning_effort": "low"}, {"think": False}),
        ({"reasoning_effort": "low"}, {"think": "low"}),
        ({"reasoning_effort": "none"}, {"think": False}),
        ({"reasoning_effort": "minimal"}, {"think": "low"}),
        ({"reasoning_effort": "xhigh"}, {"think": "max"}),
        ({"reasoning_effort": ["low"]}, {"think": None}),
        ({"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"logit_bias": {"1": 2}, "parallel_tool_calls": False}, {"logit_bias": None}),
        ({"tools": [{"type": "function"}]}, {"tools": [{"type": "function"}]}),
        ({"tools": [{"type": "function"}], "tool_choice": "none"}, {"tools": None}),
        ({"tools": [{"type": "function"}], "tool_choice": "required"}, {"tools": [{"type": "function"}]}),
        ({"tools": []}, {"tools": None}),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}},
            {"tools": TOOLS[1:]},
        ),
    ],
)
def test_fields(fields, expected):
    request = convert(**fields)
    assert {name: request.get(name) for name in expected} == expected


def test_parts_and_images():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    request = convert(
        {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
    )
    assert request["messages"] == [
        {"role": "system", "content": "a\nb"},
        {"role": "user", "content": "look", "images": ["QUJD"]},
    ]


def test_tool_round():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    request = convert(
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
    )
    assert request["messages"] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "content": "one", "tool_name": "f", "tool_call_id": "c1"},
    ]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": {"a": 1}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/"}}]}
                ]
            },
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [3]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "x"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"n": 2}, "n"),
        ({"tools": {"a": 1}}, "tools"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "h"}}},
            "tool_choice",
        ),
        ({"tool_choice": {"type": "function", "function": {"name": "h"}}}, "tool_choice"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
            "response_format.json_schema.schema",
        ),
    ],
)
def test_bad_requests_name_the_field(body, param):
    with pytest.raises(GatewayError) as caught:
        to_request({"model": "m", **body}, stream=False)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_goes_back(name):
    assert convert({"role": "assistant", "content": "a", name: "hm"})["messages"] == [
        {"role": "assistant", "content": "a", "thinking": "hm"}
    ]


def test_refusals_and_results_of_functions():
    request = convert(
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "function", "name": "f", "content": "1"},
    )
    assert request["messages"] == [
        {"role": "assistant", "content": "no"},
        {"role": "tool", "content": "1", "tool_name": "f"},
    ]


CALL = {"function": {"name": "f", "arguments": {"a": 1}}}
REPLY = {
    "model": "m",
    "message": {"role": "assistant", "content": "hi", "thinking": "hm", "tool_calls": [CALL]},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 2,
    "total_duration": 9,
}


def test_completion():
    body = to_completion(REPLY, 7, new_id)
    assert (body["id"], body["created"], body["object"], body["model"]) == (
        "chatcmpl-new",
        7,
        "chat.completion",
        "m",
    )
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "hi",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "call_new", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
        ],
    }
    assert body["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "total_duration": 9,
        "prompt_eval_count": 3,
        "eval_count": 2,
    }


def test_usage_without_counters():
    assert to_usage({}) == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_finish_reasons():
    assert finish_reason("length", called=False) == "length"
    assert finish_reason("unload", called=False) == "stop"
    assert finish_reason("length", called=True) == "tool_calls"


def test_stream():
    decoder = ReplyDecoder(7, new_id, include_usage=True)
    first = decoder.decode({"model": "m", "message": {"content": "", "thinking": "hm"}})
    second = decoder.decode({"model": "m", "message": {"content": "a", "tool_calls": [CALL]}})
    third = decoder.decode({"model": "m", "message": {"tool_calls": [{**CALL, "id": "own"}]}})
    assert first[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "reasoning_content": "hm"}
    (one,) = second[0]["choices"][0]["delta"]["tool_calls"]
    (two,) = third[0]["choices"][0]["delta"]["tool_calls"]
    assert (one["index"], one["id"], two["index"], two["id"]) == (0, "call_new", 1, "own")
    assert not decoder.is_complete
    end, usage = decoder.decode({"model": "m", "message": {"content": ""}, "done": True, "eval_count": 2})
    assert end["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "tool_calls"}
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 2)
    assert decoder.is_done
    assert decoder.is_complete
    assert {chunk["id"] for chunk in (*first, *second, *third, end, usage)} == {"chatcmpl-new"}


def test_stream_error():
    decoder = ReplyDecoder(7, new_id, include_usage=False)
    assert decoder.decode({"error": "out of memory"}) == []
    assert decoder.error == "out of memory"
    assert not decoder.is_done


def test_usage_has_rates():
    reply = {
        "prompt_eval_count": 3,
        "prompt_eval_duration": 1_000_000_000,
        "eval_count": 1,
        "eval_duration": 3 * 10**9,
    }
    assert to_usage(reply) == {
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "total_tokens": 4,
        **reply,
        "prompt_token/s": 3.0,
        "response_token/s": 0.33,
    }


TOKENS = [{"token": "a", "logprob": -1.0}]


def test_logprobs_in_a_completion():
    (choice,) = to_completion({"message": {"content": "a"}, "logprobs": TOKENS}, 7, new_id)["choices"]
    assert choice["logprobs"] == {"content": TOKENS, "refusal": None}


def test_logprobs_in_a_stream_come_once():
    decoder = ReplyDecoder(7, new_id, include_usage=True)
    chunks = decoder.decode({"message": {"content": "a"}, "logprobs": TOKENS})
    chunks += decoder.decode({"message": {"content": ""}, "logprobs": TOKENS, "done": True})
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [choice["logprobs"] and choice["logprobs"]["content"] for choice in choices] == [
        TOKENS,
        TOKENS,
        None,
    ]


def test_embed_request():
    assert to_embed({"model": "m", "input": "a", "encoding_format": "float", "user": "u"}) == {
        "model": "m",
        "input": ["a"],
    }
    fields = {"dimensions": 8, "truncate": False, "keep_alive": "5m", "options": {"num_ctx": 9}}
    assert to_embed({"model": "m", "input": ["a", "b"], **fields}) == {
        "model": "m",
        "input": ["a", "b"],
        **fields,
    }


@pytest.mark.parametrize("given", [[[1, 2]], ["a", 3], {"a": 1}])
def test_embed_request_takes_texts_only(given):
    with pytest.raises(GatewayError) as caught:
        to_embed({"model": "m", "input": given})
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == "input"


def test_embed_answer():
    assert from_embed({"embeddings": [[1.0], [2.0]], "prompt_eval_count": 4}, "m") == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [1.0]},
            {"object": "embedding", "index": 1, "embedding": [2.0]},
        ],
        "model": "m",
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }


@pytest.mark.parametrize("answer", [{}, {"embeddings": {"a": 1}}, {"embeddings": [1.0]}])
def test_embed_answer_that_is_none(answer):
    with pytest.raises(ValueError, match="embeddings"):
        from_embed(answer, "m")


WORDS = st.text(max_size=12)
NAMES = st.text(string.ascii_letters, min_size=1, max_size=4)
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()
PART = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
OBJECTS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers(-9, 9) | WORDS, max_size=3)


@st.composite
def user_turns(draw):
    words = draw(WORDS)
    parts = [{"type": "text", "text": words}] if words else []
    return [{"role": "user", "content": draw(st.sampled_from([words, [*parts, PART]]))}]


@st.composite
def tool_rounds(draw, number):
    """Calls and their results; the results of equal names may come in any order, as they have ids."""
    made = [
        {
            "id": f"id{number}.{index}",
            "type": "function",
            "function": {"name": draw(NAMES), "arguments": orjson.dumps(draw(OBJECTS)).decode()},
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": draw(WORDS)} for call in made]
    turn = {"role": "assistant", "content": draw(WORDS) or None, "tool_calls": made}
    return [turn, *draw(st.permutations(results))]


@st.composite
def conversations(draw):
    turns = [{"role": "system", "content": draw(WORDS)}]
    for number in range(draw(st.integers(1, 4))):
        turns += draw(st.one_of(user_turns(), tool_rounds(number)))
        if draw(st.booleans()):
            turns.append({"role": "assistant", "content": draw(WORDS), "reasoning_content": draw(NAMES)})
    return turns


@given(conversations())
def test_a_conversation_comes_back_as_it_went(turns):
    request = to_request({"model": "m", "messages": turns}, stream=False)
    parsed = parse_chat(orjson.loads(orjson.dumps(request)))
    assert parsed.body == {"model": "m", "messages": turns, "stream": False}
    assert parsed.warnings == []


@given(st.data())
def test_calls_without_ids_are_answered_in_their_order(data):
    turns = [turn for number in range(3) for turn in data.draw(tool_rounds(number))]
    request = to_request({"model": "m", "messages": turns}, stream=False)
    for message in request["messages"]:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            del call["id"]
    parsed = parse_chat(request).body["messages"]
    names = {call["id"]: call["function"]["name"] for turn in turns for call in turn.get("tool_calls", ())}
    made = {call["id"]: call["function"]["name"] for turn in parsed for call in turn.get("tool_calls", ())}
    assert len(made) == len(names)
    answered = [turn["tool_call_id"] for turn in parsed if turn["role"] == "tool"]
    assert sorted(answered) == sorted(made)
    assert [made[one] for one in answered] == [
        names[turn["tool_call_id"]] for turn in turns if turn["role"] == "tool"
    ]


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "top_k": st.integers(1, 99),
        "min_p": st.floats(0, 1),
        "seed": st.integers(0, 99),
        "max_tokens": st.integers(1, 99),
        "stop": st.lists(NAMES, min_size=1, max_size=3),
        "presence_penalty": st.floats(-2, 2),
        "frequency_penalty": st.floats(-2, 2),
        "repeat_penalty": st.floats(0, 2),
        "reasoning_effort": st.sampled_from(["none", "low", "medium", "high"]),
        "response_format": st.sampled_from(
            [
                {"type": "json_object"},
                {"type": "json_schema", "json_schema": {"name": "response", "schema": {"type": "object"}}},
            ]
        ),
        "tools": st.just(TOOLS),
        "logprobs": st.just(True),
    },
)


@given(FIELDS)
def test_fields_come_back_as_they_went(fields):
    turns = [{"role": "user", "content": "hi"}]
    request = to_request({"model": "m", "messages": turns, **fields}, stream=False)
    assert parse_chat(request).body == {"model": "m", "messages": turns, "stream": False, **fields}
