import pytest

from gatewayd.dialects.ollama.options import is_streamed, to_fields, to_tools
from gatewayd.errors import ErrorKind, GatewayError

FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"temperature": 0, "top_p": 0.5, "min_p": 0.1}, {"temperature": 0, "top_p": 0.5, "min_p": 0.1}),
        ({"typical_p": 0.7, "repeat_penalty": 1.1}, {"typical_p": 0.7, "repeat_penalty": 1.1}),
        ({"presence_penalty": 1, "frequency_penalty": 2}, {"presence_penalty": 1, "frequency_penalty": 2}),
        ({"top_k": 40, "seed": 3.0}, {"top_k": 40, "seed": 3}),
        ({"num_predict": 5}, {"max_tokens": 5}),
        ({"num_predict": 5.0}, {"max_tokens": 5}),
        ({"num_predict": -1}, {}),
        ({"num_predict": -2}, {}),
        ({"num_predict": 0}, {}),
        ({"stop": "a"}, {"stop": ["a"]}),
        ({"stop": ["a", "b"]}, {"stop": ["a", "b"]}),
        ({"stop": []}, {}),
        ({"temperature": None}, {}),
        (None, {}),
    ],
)
def test_options(options, fields):
    warnings = []
    assert to_fields({"options": options}, warnings) == fields
    assert warnings == []


def test_options_of_the_runtime_alone_are_named():
    warnings = []
    assert to_fields({"options": {"num_ctx": 4096, "num_gpu": None, "odd": 1, "seed": 1}}, warnings) == {
        "seed": 1
    }
    assert [sentence.partition(":")[0] for sentence in warnings] == [
        "cannot use options.num_ctx",
        "cannot use options.odd",
    ]


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"format": None}, {}),
        ({"format": ""}, {}),
        ({"format": "json"}, {"response_format": {"type": "json_object"}}),
        (
            {"format": {"type": "object"}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "response", "schema": {"type": "object"}},
                }
            },
        ),
        ({"think": None}, {}),
        ({"think": True}, {"reasoning_effort": "medium"}),
        ({"think": False}, {"reasoning_effort": "none"}),
        ({"think": "high"}, {"reasoning_effort": "high"}),
        ({"logprobs": True, "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        ({"logprobs": False, "top_logprobs": 3}, {"logprobs": False}),
        ({"top_logprobs": 3}, {}),
    ],
)
def test_fields(value, fields):
    assert to_fields(value, []) == fields


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ({"options": [1]}, "options"),
        ({"options": {"temperature": "hot"}}, "options.temperature"),
        ({"options": {"temperature": True}}, "options.temperature"),
        ({"options": {"seed": 1.5}}, "options.seed"),
        ({"options": {"seed": float("inf")}}, "options.seed"),
        ({"options": {"num_predict": "all"}}, "options.num_predict"),
        ({"options": {"stop": 3}}, "options.stop"),
        ({"options": {"stop": [3]}}, "options.stop"),
        ({"format": "xml"}, "format"),
        ({"format": ["json"]}, "format"),
        ({"think": "hard"}, "think"),
        ({"think": 1}, "think"),
        ({"think": ["low"]}, "think"),
        ({"logprobs": 1}, "logprobs"),
        ({"logprobs": True, "top_logprobs": "x"}, "top_logprobs"),
    ],
)
def test_bad_values_name_the_field(value, param):
    with pytest.raises(GatewayError) as caught:
        to_fields(value, [])
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param


def test_tools():
    tools = [{"type": "function", "function": FUNCTION}, {"function": {"name": "g", "parameters": None}}]
    assert to_tools({"tools": tools}) == [
        {"type": "function", "function": FUNCTION},
        {"type": "function", "function": {"name": "g"}},
    ]
    assert to_tools({"tools": None}) == []


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ({"a": 1}, "tools"),
        ([3], "tools[0]"),
        ([{"type": "function"}], "tools[0].function"),
        ([{"function": {"name": 3}}], "tools[0].function"),
    ],
)
def test_bad_tools_name_the_field(tools, param):
    with pytest.raises(GatewayError) as caught:
        to_tools({"tools": tools})
    assert caught.value.param == param


def test_a_request_streams_unless_told_not_to():
    assert is_streamed({})
    assert is_streamed({"stream": None})
    assert is_streamed({"stream": True})
    assert not is_streamed({"stream": False})
    with pytest.raises(GatewayError) as caught:
        is_streamed({"stream": 0})
    assert caught.value.param == "stream"
