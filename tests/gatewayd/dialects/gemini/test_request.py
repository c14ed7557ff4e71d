import pytest

from gatewayd.dialects.gemini.request import to_request
from gatewayd.errors import GatewayError

USER = {"role": "user", "content": "hi"}
TURN = {"role": "user", "parts": [{"text": "hi"}]}
PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": PARAMETERS}}
SIGNED = {"extra_content": {"google": {"thought_signature": "S"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"a":"b"}'}, **SIGNED}
SECOND = {"id": "c2", "type": "function", "function": {"name": "now", "arguments": ""}}


def converted(family="gemini-3-flash", warnings=None, **fields):
    return to_request({"messages": [USER], **fields}, family, [] if warnings is None else warnings)


def config(family="gemini-3-flash", **fields):
    found = converted(family, **fields)["generationConfig"]
    found.pop("thinkingConfig", None)
    return found


def contents(*messages):
    return converted(messages=list(messages))["contents"]


@pytest.mark.parametrize(
    ("effort", "family", "expected"),
    [
        (None, "gemini-3-flash", {"includeThoughts": True}),
        (None, "gemini-2.5-pro", {"includeThoughts": True}),
        (None, "gemini-2.0-flash", None),
        (None, "gemma-3", None),
        ("high", "gemini-2.0-flash", None),
        ("low", "gemini-3-pro", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("max", "gemini-3-pro", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("none", "gemini-3-flash", {"includeThoughts": False, "thinkingLevel": "minimal"}),
        ("medium", "gemini-2.5-flash", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("none", "gemini-2.5-flash", {"includeThoughts": False, "thinkingBudget": 0}),
    ],
)
def test_thinking(effort, family, expected):
    found = converted(family, reasoning_effort=effort).get("generationConfig", {})
    assert found.get("thinkingConfig") == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5, "max_completion_tokens": 9}, {"maxOutputTokens": 9}),
        ({"temperature": 0, "top_k": 3, "stop": "x"}, {"temperature": 0, "topK": 3, "stopSequences": ["x"]}),
        ({"response_format": {"type": "json_object"}}, {"responseMimeType": "application/json"}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": PARAMETERS}}},
            {"responseMimeType": "application/json", "responseSchema": PARAMETERS},
        ),
    ],
)
def test_fields(fields, expected):
    assert config(**fields) == expected


def test_instructions():
    system = [
        {"role": "system", "content": "a"},
        {"role": "developer", "content": [{"type": "text", "text": "b"}]},
    ]
    request = converted(messages=[*system, USER])
    assert request["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert request["contents"] == [TURN]
    assert converted(messages=system)["contents"] == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}
    ]


def test_a_turn_with_calls():
    turn = {"role": "assistant", "content": "I look", "tool_calls": [CALL, SECOND], **SIGNED}
    results = [
        {"role": "tool", "tool_call_id": "c1", "content": '{"sky":"grey"}'},
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
    ]
    assert contents(USER, turn, *results, USER) == [
        TURN,
        {
            "role": "model",
            "parts": [
                {"text": "I look", "thoughtSignature": "S"},
                {"functionCall": {"name": "weather", "args": {"a": "b"}}, "thoughtSignature": "S"},
                {"functionCall": {"name": "now", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "weather", "response": {"sky": "grey"}}},
                {"functionResponse": {"name": "now", "response": {"result": "noon"}}},
                {"text": "hi"},
            ],
        },
    ]


@pytest.mark.parametrize("content", ["[1]", "{", "5", '"x"', ""])
def test_a_result_that_is_no_object(content):
    message = {"role": "tool", "tool_call_id": "c1", "content": content}
    turn = contents(USER, {"role": "assistant", "tool_calls": [CALL]}, message)[-1]
    assert turn["parts"] == [{"functionResponse": {"name": "weather", "response": {"result": content}}}]


def test_results_with_very_many_values_stay_texts():
    content = "{" + ",".join(f'"{number}":0' for number in range(200_001)) + "}"
    turn = contents(
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": content},
    )[-1]
    assert turn["parts"][0]["functionResponse"]["response"] == {"result": content}


def test_a_result_without_its_call_is_a_text():
    assert contents({"role": "tool", "tool_call_id": "c9", "content": "x"}) == [
        {"role": "user", "parts": [{"text": "x"}]}
    ]


def test_parts():
    content = [
        {"type": "text", "text": ""},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
        {"type": "image_url", "image_url": "gs://bucket/a.png"},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,BB"}},
        {"type": "input_audio", "input_audio": {"data": "CC", "format": "mp3"}},
    ]
    assert contents({"role": "user", "content": content})[0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "AA"}},
        {"fileData": {"fileUri": "gs://bucket/a.png"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "BB"}},
        {"inlineData": {"mimeType": "audio/mp3", "data": "CC"}},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (
            {"type": "function", "function": {"name": "weather"}},
            {"mode": "ANY", "allowedFunctionNames": ["weather"]},
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [FUNCTION]}},
            {"mode": "ANY", "allowedFunctionNames": ["weather"]},
        ),
    ],
)
def test_tool_choices(choice, expected):
    request = converted(tools=[FUNCTION], tool_choice=choice)
    assert request["toolConfig"] == {"functionCallingConfig": expected}


def test_a_function_without_parameters_has_none():
    bare = {
        "type": "function",
        "function": {"name": "now", "parameters": {"type": "object", "properties": {}}},
    }
    assert converted(tools=[bare])["tools"] == [{"functionDeclarations": [{"name": "now"}]}]


def test_what_is_left_out_is_told():
    warnings = []
    converted(warnings=warnings, logit_bias={"1": 2}, user="u", seed=1, metadata=None)
    assert warnings == ["left out, as Gemini does not have it: logit_bias, user"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": "https://a.example/a.png"}],
                    }
                ]
            },
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "["}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [FUNCTION], "tool_choice": "sometimes"}, "tool_choice"),
    ],
)
def test_refusals(fields, param):
    with pytest.raises(GatewayError) as caught:
        converted(**fields)
    assert caught.value.param == param
