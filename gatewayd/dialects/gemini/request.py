"""Converts OpenAI chat bodies to requests of the native Gemini protocol; pure.

The signature of a call is in `extra_content.google.thought_signature` of the call, that of a text in the same
place of the message: the places in which Gemini puts them in its own form of chat completions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import text_or_refusal_of
from gatewayd.completions.embedded_json import has_too_many_values
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.content_parts import media_url, read_parts, refused_address, refused_part
from gatewayd.dialects.fields import check_arguments, json_schema, parse_arguments, parse_data_url, read_list
from gatewayd.dialects.gemini.schemas import SchemaBudget, reduce_schema
from gatewayd.errors import invalid

SAME_FIELDS: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
"""Fields of a chat request and their names in `generationConfig`."""

READ_FIELDS: Final = frozenset(
    {"model", "messages", "stream", "stream_options", "n", "stop", "tools", "tool_choice", "response_format"}
    | {"reasoning_effort", "safety_settings", *SAME_FIELDS}
)
"""Fields that have a part in the request; others give a warning."""

BUDGETS: Final = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24_576}
"""Thinking budgets in tokens, for models that take a number."""

LEVELS: Final = {"none": "minimal", "xhigh": "high", "max": "high"}
"""Levels for words of effort that are no levels."""

SIGNATURE: Final = "thought_signature"

OWN_FILES: Final = ("https://generativelanguage.googleapis.com/", "https://www.youtube.com/", "gs://")
"""Beginnings of addresses that the provider reads itself."""


def to_request(body: Mapping[str, Any], family: str, warnings: list[str]) -> Body:
    """Return the request for an OpenAI chat body; raise invalid_request for a bad field.

    `family` is the canonical id of the model. Sentences about what was left out are added to `warnings`.
    """
    if body.get("n") not in (None, 1):
        raise invalid("cannot ask this model for more than one choice", param="n")
    messages = read_list(body, "messages")
    check_arguments(messages)
    budget = SchemaBudget()
    system, contents = _split_messages(messages)
    request: Body = {"contents": contents or [{"role": "user", "parts": system}]}
    if system and contents:
        request["systemInstruction"] = {"parts": system}
    _add_tools(request, body, budget)
    config = _config(body, family, budget)
    if config:
        request["generationConfig"] = config
    if body.get("safety_settings") is not None:
        request["safetySettings"] = body["safety_settings"]
    lost = sorted(name for name in body.keys() - READ_FIELDS if body[name] not in (None, [], {}))
    if lost:
        warnings.append(f"left out, as Gemini does not have it: {', '.join(lost)}")
    return request


def _split_messages(messages: Sequence[Any]) -> tuple[list[Body], list[Body]]:
    """Return the parts of the instructions, and the turns; adjacent messages of one role become one."""
    system: list[Body] = []
    turns: list[Body] = []
    calls = _Calls(messages)
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"cannot read {where}: it is not an object", param=where)
        role = message.get("role")
        if role in ("system", "developer"):
            system += _parts(message.get("content"), f"{where}.content")
            continue
        parts = (
            _model_parts(message, where, calls) if role == "assistant" else _user_parts(message, where, calls)
        )
        turn_role = "model" if role == "assistant" else "user"
        if parts and turns and turns[-1]["role"] == turn_role:
            turns[-1]["parts"] += parts
        elif parts:
            turns.append({"role": turn_role, "parts": parts})
    return system, turns


def _user_parts(message: Mapping[str, Any], where: str, calls: "_Calls") -> list[Body]:
    role = message.get("role")
    if role == "user":
        return _parts(message.get("content"), f"{where}.content")
    if role != "tool":
        raise invalid(f"cannot send role {role!r:.80} to this model", param=f"{where}.role")
    parts = _parts(message.get("content"), f"{where}.content")
    text = "".join(as_text(part.get("text")) for part in parts)
    media = [part for part in parts if "text" not in part]
    name = calls.names.get(as_text(message.get("tool_call_id")))
    if name is None:
        return [{"text": text}, *media] if text else media
    return [{"functionResponse": {"name": name, "response": calls.result(text)}}, *media]


class _Calls:
    """The calls of a request: their names by their ids, and how their results are read."""

    def __init__(self, messages: Sequence[Any]) -> None:
        results = [
            as_text(known.get("content"))
            for known in map(as_mapping, messages)
            if known.get("role") == "tool"
        ]
        self._are_small = not has_too_many_values(*results)
        self.names: dict[str, str] = {}

    def result(self, text: str) -> Body:
        """Return the result of a call as an object: its own JSON object, or the text as `result`."""
        if self._are_small and text.lstrip().startswith("{"):
            try:
                found = orjson.loads(text)
            except orjson.JSONDecodeError:
                return {"result": text}
            if isinstance(found, dict):
                return found
        return {"result": text}


def _model_parts(message: Mapping[str, Any], where: str, calls: "_Calls") -> list[Body]:
    """Return text and calls of a turn; `calls` gets the names of its calls."""
    text = text_or_refusal_of(message)
    parts: list[Body] = []
    if text:
        parts.append({"text": text, **_signed(message)})
    for index, call in enumerate(read_list(message, "tool_calls", f"{where}.tool_calls")):
        place = f"{where}.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise invalid(f"cannot read {place}: it has no function", param=place)
        arguments = parse_arguments(function.get("arguments"), f"{place}.function.arguments")
        name = as_text(function.get("name"))
        calls.names[as_text(call.get("id"))] = name
        parts.append({"functionCall": {"name": name, "args": arguments}, **_signed(call)})
    return parts


def _signed(holder: Mapping[str, Any]) -> Body:
    google = as_mapping(as_mapping(holder.get("extra_content")).get("google"))
    signature = as_text(google.get(SIGNATURE))
    return {"thoughtSignature": signature} if signature else {}


def _parts(content: Any, where: str) -> list[Body]:
    """Return the parts of a content without empty texts, which the protocol refuses."""
    return [part for part in read_parts(content, where, _media_part) if part != {"text": ""}]


def _media_part(part: Mapping[str, Any], where: str) -> Body:
    match part.get("type"):
        case "image_url" | "file":
            return _media(media_url(part), where)
        case "input_audio":
            audio = as_mapping(part.get("input_audio"))
            data = {"mimeType": f"audio/{as_text(audio.get('format')) or 'wav'}", "data": audio.get("data")}
            return {"inlineData": data}
        case kind:
            raise refused_part(kind, where)


def _media(url: object, where: str) -> Body:
    if isinstance(url, str) and url.startswith(OWN_FILES):
        return {"fileData": {"fileUri": url}}
    media_type, data = parse_data_url(url, where) if not _is_address(url) else ("", "")
    if not data:
        raise refused_address(where)
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _is_address(url: object) -> bool:
    return isinstance(url, str) and url.startswith(("http://", "https://"))


def _config(body: Mapping[str, Any], family: str, budget: SchemaBudget) -> Body:
    config: Body = {}
    for name, own in SAME_FIELDS.items():
        if body.get(name) is not None:
            config[own] = body[name]
    stop = body.get("stop")
    if stop:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    wanted = as_mapping(body.get("response_format")).get("type")
    if wanted in ("json_object", "json_schema"):
        config["responseMimeType"] = "application/json"
    schema = json_schema(body.get("response_format"))
    if schema is not None:
        config["responseSchema"] = reduce_schema(schema, "response_format.json_schema.schema", budget)
    thinking = thinking_config(body.get("reasoning_effort"), family)
    if thinking:
        config["thinkingConfig"] = thinking
    return config


def thinking_config(effort: object, family: str) -> Body:
    """Return how a model is to think: a budget up to Gemini 2.5, a level from Gemini 3 on."""
    if family.startswith(("gemini-1", "gemini-2.0")):
        return {}
    config: Body = {"includeThoughts": effort != "none"}
    if not isinstance(effort, str) or not effort:
        return config if family.startswith("gemini-") else {}
    if family.startswith("gemini-2.5"):
        return {**config, "thinkingBudget": BUDGETS.get(effort, BUDGETS["high"])}
    return {**config, "thinkingLevel": LEVELS.get(effort, effort)}


def _add_tools(request: Body, body: Mapping[str, Any], budget: SchemaBudget) -> None:
    tools = read_list(body, "tools")
    if not tools:
        return
    declared = [_declaration(tool, f"tools[{index}]", budget) for index, tool in enumerate(tools)]
    request["tools"] = [{"functionDeclarations": declared}]
    choice = _tool_choice(body.get("tool_choice"))
    if choice is not None:
        request["toolConfig"] = {"functionCallingConfig": choice}


def _declaration(tool: Any, where: str, budget: SchemaBudget) -> Body:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        raise invalid(f"cannot send {where}: it is not a function", param=where)
    declaration: Body = {"name": function.get("name")}
    if function.get("description"):
        declaration["description"] = function["description"]
    schema = as_mapping(function.get("parameters"))
    # An object without properties is refused; no parameters at all mean the same.
    if schema and (
        as_mapping(schema.get("properties")) or schema.keys() & {"$ref", "anyOf", "oneOf", "allOf"}
    ):
        declaration["parameters"] = reduce_schema(schema, f"{where}.function.parameters", budget)
    return declaration


def _tool_choice(choice: Any) -> Body | None:
    match choice:
        case None:
            return None
        case "auto" | "none":
            return {"mode": choice.upper()}
        case "required":
            return {"mode": "ANY"}
        case {"type": "function", "function": {"name": str(name)}}:
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case {"type": "allowed_tools", "allowed_tools": dict(allowed)}:
            functions = [
                as_mapping(as_mapping(tool).get("function")) for tool in as_sequence(allowed.get("tools"))
            ]
            mode = "ANY" if allowed.get("mode") == "required" else "AUTO"
            names = [function["name"] for function in functions if isinstance(function.get("name"), str)]
            return {"mode": mode, **({"allowedFunctionNames": names} if mode == "ANY" else {})}
        case _:
            raise invalid(
                "cannot read tool_choice: it is none of auto, none, required, a function", param="tool_choice"
            )
