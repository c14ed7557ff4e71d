import orjson
import pytest

from gatewayd.dialects.forced_tool_call import FORCED_CALL_PROMPT, form_to_tool_calls, to_form_request
from gatewayd.errors import ErrorKind, GatewayError

F = {"name": "f", "description": "Does f.", "parameters": {"type": "object", "properties": {"x": {}}}}
G = {"name": "g"}
HI = {"role": "user", "content": "hi"}


def asked(choice, *functions, **fields):
    tools = [{"type": "function", "function": function} for function in functions]
    return {"model": "m", "messages": [HI], "tools": tools, "tool_choice": choice, **fields}


def named(name):
    return {"type": "function", "function": {"name": name}}


def form_of(name, parameters):
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def schema_of(body):
    form = body["response_format"]
    assert form["type"] == "json_schema"
    return form["json_schema"]["schema"]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [HI]},
        asked("auto", F),
        asked("none", F),
        asked(None, F),
        asked("required"),
        asked({"type": "web"}, F),
        {"tool_choice": "required", "tools": "none"},
    ],
)
def test_nothing_is_forced(body):
    assert to_form_request(body) is None


def test_one_function_is_forced():
    body = asked(named("f"), F, G, temperature=0, stream=True, stream_options={}, parallel_tool_calls=False)
    form = to_form_request(body)
    assert schema_of(form) == form_of("f", F["parameters"])
    assert (form["model"], form["temperature"]) == ("m", 0)
    assert form.keys().isdisjoint({"tools", "tool_choice", "stream", "stream_options", "parallel_tool_calls"})
    system, hi = form["messages"]
    assert hi is HI
    assert system == {"role": "system", "content": f"{FORCED_CALL_PROMPT}\n{orjson.dumps(F).decode()}"}
    assert body["tool_choice"] == named("f")


def test_any_function_is_forced():
    forms = [form_of("f", F["parameters"]), form_of("g", {"type": "object"})]
    assert schema_of(to_form_request(asked("required", F, G))) == {"anyOf": forms}


def test_the_system_message_stays_the_first():
    body = asked("required", F, messages=[{"role": "system", "content": "Be brief."}, HI])
    first, second = to_form_request(body)["messages"]
    assert first["content"].startswith(f"Be brief.\n\n{FORCED_CALL_PROMPT}")
    assert second is HI
    parts = [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, HI]
    assert to_form_request(asked("required", F, messages=parts))["messages"][1:] == parts


def test_an_unknown_function_is_refused():
    with pytest.raises(GatewayError, match="'h'") as caught:
        to_form_request(asked(named("h"), F, G))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "tool_choice")


def test_definitions_move_to_the_top():
    city = {"type": "string"}
    parameters = {"type": "object", "properties": {"c": {"$ref": "#/$defs/City"}}, "$defs": {"City": city}}
    one, other = {"name": "one", "parameters": parameters}, {"name": "other", "parameters": parameters}
    schema = schema_of(to_form_request(asked("required", one, other)))
    assert schema["$defs"] == {"City": city}
    assert "$defs" not in schema["anyOf"][0]["properties"]["arguments"]
    assert parameters["$defs"] == {"City": city}
    another = {"name": "another", "parameters": {**parameters, "$defs": {"City": {"type": "integer"}}}}
    with pytest.raises(GatewayError, match="'City'"):
        to_form_request(asked("required", one, another))


def answer(content, reason="stop"):
    message = {"role": "assistant", "content": content}
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": {}}


def test_an_answer_becomes_a_call():
    told = form_to_tool_calls(answer('{"name": "f", "arguments": {"x": "é"}}'), lambda: "1")
    (choice,) = told["choices"]
    assert (told["id"], told["usage"], choice["finish_reason"]) == ("c", {}, "tool_calls")
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":"é"}'}}
    assert choice["message"] == {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.mark.parametrize(
    "content",
    [
        *(None, "", '{"name": "f", "argum', "[]", '{"name": "f"}', '{"name": 1, "arguments": {}}'),
        '{"name": "f", "arguments": {"a": [' + "[]," * 250_000 + "[]]}}",
    ],
)
def test_what_is_no_call_stays(content):
    told = answer(content, "length")
    assert form_to_tool_calls(told, lambda: "1") == told
