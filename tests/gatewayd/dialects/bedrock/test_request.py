import pytest

from gatewayd.dialects.bedrock.request import FORMER_TOOL, to_request
from gatewayd.errors import GatewayError

USER = {"role": "user", "content": "hi"}
TURN = {"role": "user", "content": [{"text": "hi"}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"a":"b"}'}}
CALLED = [
    USER,
    {"role": "assistant", "content": " ", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": ""},
]
CLAUDE = "claude-opus-4-6"


def converted(family=CLAUDE, warnings=None, **fields):
    return to_request(
        {"model": "m", "messages": [USER], **fields}, family, [] if warnings is None else warnings
    )


def test_a_plain_request():
    assert converted(family="llama") == {"modelId": "m", "messages": [TURN]}


@pytest.mark.parametrize(
    ("fields", "family", "extra", "tokens"),
    [
        ({}, CLAUDE, None, None),
        ({"reasoning_effort": "none"}, CLAUDE, {"thinking": {"type": "disabled"}}, None),
        (
            {"reasoning_effort": "minimal"},
            CLAUDE,
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            None,
        ),
        (
            {"reasoning_effort": "low"},
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            6144,
        ),
        (
            {"reasoning_effort": "high", "max_tokens": 3000},
            "claude-3-7-sonnet",
            {"thinking": {"type": "enabled", "budget_tokens": 2999}},
            3000,
        ),
        ({"reasoning_effort": "high", "max_tokens": 500}, "claude-sonnet-4", None, 500),
        ({"reasoning_effort": "high", "temperature": 0.5}, "claude-sonnet-4", None, None),
        ({"reasoning_effort": "high"}, "claude-3-5-haiku", None, None),
        ({"thinking": {"type": "adaptive"}}, CLAUDE, {"thinking": {"type": "adaptive"}}, None),
        ({"reasoning_effort": "max"}, "gpt-oss-120b", {"reasoning_effort": "high"}, None),
        (
            {"reasoning_effort": "low"},
            "nova-2-lite",
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
            None,
        ),
        ({"reasoning_effort": "none"}, "nova-2-lite", {"reasoningConfig": {"type": "disabled"}}, None),
        ({"top_k": 5}, CLAUDE, {"top_k": 5}, None),
    ],
)
def test_thinking(fields, family, extra, tokens):
    request = converted(family, **fields)
    assert request.get("additionalModelRequestFields") == extra
    assert request.get("inferenceConfig", {}).get("maxTokens") == tokens


def test_a_turn_with_calls():
    thoughts = [
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "redacted_thinking", "data": "AAA="},
    ]
    messages = [CALLED[0], {**CALLED[1], "thinking_blocks": thoughts}, CALLED[2], USER]
    assert converted(messages=messages, tools=[FUNCTION])["messages"] == [
        TURN,
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}},
                {"reasoningContent": {"redactedContent": b"\x00\x00"}},
                {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"a": "b"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "(empty)"}]}},
                {"text": "hi"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, {}),
        ("auto", {"toolChoice": {"auto": {}}}),
        ("required", {"toolChoice": {"any": {}}}),
        (
            {"type": "function", "function": {"name": "weather"}},
            {"toolChoice": {"tool": {"name": "weather"}}},
        ),
    ],
)
def test_tools(choice, expected):
    spec = {"name": "weather", "description": "d", "inputSchema": {"json": SCHEMA}}
    request = converted(tools=[FUNCTION], tool_choice=choice)
    assert request["toolConfig"] == {"tools": [{"toolSpec": spec}], **expected}


def test_earlier_calls_need_tools():
    warnings = []
    assert "toolConfig" not in converted(tools=[FUNCTION], tool_choice="none", warnings=warnings)
    assert warnings == []
    kept = converted(messages=CALLED, tools=[FUNCTION], tool_choice="none", warnings=warnings)
    assert kept["toolConfig"].keys() == {"tools"}
    assert len(warnings) == 1
    former = converted(messages=CALLED)["toolConfig"]["tools"]
    assert [(tool["toolSpec"]["name"], tool["toolSpec"]["description"]) for tool in former] == [
        ("weather", FORMER_TOOL)
    ]


def test_fields():
    warnings = []
    request = converted(
        warnings=warnings,
        max_completion_tokens=9,
        max_tokens=5,
        temperature=1.5,
        top_p=0.5,
        stop="x",
        seed=1,
        user="u",
        response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}},
    )
    assert request["inferenceConfig"] == {
        "maxTokens": 9,
        "temperature": 1,
        "topP": 0.5,
        "stopSequences": ["x"],
    }
    structure = {"schema": '{"type":"object","properties":{"a":{"type":"string"}}}', "name": "r"}
    assert request["outputConfig"]["textFormat"]["structure"]["jsonSchema"] == structure
    assert warnings == [
        "temperature was lowered from 1.5 to 1, the most of this provider",
        "left out, as Bedrock does not have it: seed, user",
    ]


def test_instructions_and_parts():
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAA="}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAA="}},
    ]
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": content}]
    request = converted(messages=messages, response_format={"type": "json_object"})
    assert [block["text"][:6] for block in request["system"]] == ["s", "Answer"]
    assert request["messages"][0]["content"] == [
        {"text": "look"},
        {"image": {"format": "jpeg", "source": {"bytes": b"\x00\x00"}}},
        {"document": {"format": "pdf", "name": "document", "source": {"bytes": b"\x00\x00"}}},
    ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        *(
            (
                {
                    "messages": [
                        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
                    ]
                },
                "messages[0].content[0]",
            )
            for url in ("https://a.example/a.png", "data:image/tiff;base64,AA==", "data:image/png;base64,A")
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [FUNCTION], "tool_choice": "sometimes"}, "tool_choice"),
    ],
)
def test_refusals(fields, param):
    with pytest.raises(GatewayError) as caught:
        converted(**fields)
    assert caught.value.param == param
