"""Parses the fields of a Responses request, apart from its input items, into a chat request; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.dialects.openai import parse_files
from gatewayd.dialects.responses.fields import (
    LeftOutParts,
    optional_count,
    optional_flag,
    optional_list,
    optional_number,
    optional_object,
    optional_text,
    read_text,
    wrong,
)
from gatewayd.dialects.responses.tools import ToolNames, convert_choice, convert_tools
from gatewayd.errors import GatewayError, invalid
from gatewayd.pipeline.documents.plugin_context import CHAT_FIELDS, OWN_FIELDS
from gatewayd.pipeline.endpoints import check_names, model_of
from gatewayd.pipeline.records import ChatRequest, Endpoint

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
LOGPROBS: Final = "message.output_text.logprobs"

SAME_FIELDS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Any]]] = {
    "temperature": optional_number,
    "top_p": optional_number,
    "presence_penalty": optional_number,
    "frequency_penalty": optional_number,
    "top_k": optional_count,
    "seed": optional_number,
    "user": optional_text,
    "safety_identifier": optional_text,
    "prompt_cache_key": optional_text,
    "prompt_cache_retention": optional_text,
    "service_tier": optional_text,
}
"""Fields that chat requests have under the same name, with their readers."""

ECHOED_FIELDS: Final = (
    *("instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "prompt_cache_key"),
    *("prompt_cache_retention", "safety_identifier", "service_tier", "temperature", "top_p", "user"),
)
"""Fields that a response repeats, null if the request has none."""

OTHER_FIELDS: Final = frozenset(
    {"model", "input", "instructions", "stream", "stream_options", "store", "include", "previous_response_id"}
    | {"max_output_tokens", "metadata", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"}
    | {"top_logprobs", "background", "conversation", "prompt"}
)
"""Fields that functions of this module parse."""

REFUSED_FIELDS: Final = ("conversation", "prompt")
"""Fields that name something stored at a provider, without which the request has another meaning."""


@dataclass(slots=True)
class ResponseRequest:
    """A parsed request.

    `fields` are those of the chat request apart from its messages, and `echo` those that each response
    repeats. `shows_sealed` tells whether reasoning items have `encrypted_content`.
    """

    model: str
    stream: bool
    is_stored: bool
    previous_id: str | None
    instructions: str
    shows_sealed: bool
    names: ToolNames
    fields: Body
    echo: Body
    options: dict[str, Any]
    files: list[dict[str, Any]]
    left_out: LeftOutParts
    is_background: bool = False

    def head_messages(self) -> list[Body]:
        """Return the messages before those of the input."""
        return [{"role": "system", "content": self.instructions}] if self.instructions else []

    def chat_request(self, messages: Sequence[Body], file_ids: Sequence[str] = ()) -> ChatRequest:
        """Return the chat request; `file_ids` are the gateway's own files that the input names."""
        if not messages:
            raise wrong("input", "text or a list with one item at least")
        named: list[dict[str, Any]] = [{"type": "file", "id": each} for each in dict.fromkeys(file_ids)]
        body: Body = {"model": self.model, "messages": list(messages), **self.fields}
        if self.stream:
            body.update(stream=True, stream_options={"include_usage": True})
        return ChatRequest(
            model=self.model,
            body=body,
            stream=self.stream,
            files=[*self.files, *named],
            options=self.options,
            warnings=self.left_out.sentences(),
            endpoint=Endpoint.RESPONSES,
        )


def parse_request(value: Mapping[str, Any], earlier: Sequence[Any] = ()) -> ResponseRequest:
    """Parse all fields but the input items; raise invalid_request with the name of a bad field.

    `earlier` are the items of the conversation that the request continues; they may offer tools.
    """
    check_names(value)
    model = model_of(value)
    _check_refused(value)
    left_out, names = LeftOutParts(), ToolNames()
    options = {name: value[name] for name in OWN_FIELDS - CHAT_FIELDS if name in value}
    files = parse_files(options.pop("files", None))
    include = _include(value, left_out)
    fields: Body = {}
    for name, read in SAME_FIELDS.items():
        found = read(value, name)
        if found is not None:
            fields[name] = found
    _add_limits(fields, value, include)
    reasoning = _add_reasoning(fields, value)
    text = _add_text(fields, value)
    _add_tools(fields, value, earlier, names, left_out)
    for name in value:
        if name not in OTHER_FIELDS and name not in SAME_FIELDS and name not in OWN_FIELDS:
            _leave_out(name, value, left_out)
    is_stored = optional_flag(value, "store")
    return ResponseRequest(
        model=model,
        stream=bool(optional_flag(value, "stream")),
        is_stored=is_stored is not False,
        previous_id=optional_text(value, "previous_response_id"),
        instructions=optional_text(value, "instructions") or "",
        shows_sealed=ENCRYPTED_REASONING in include,
        names=names,
        fields=fields,
        echo=_echo(value, reasoning, text),
        options=options,
        files=files,
        left_out=left_out,
        is_background=bool(optional_flag(value, "background")),
    )


def background_refusal() -> GatewayError:
    """Return the error for a response in the background."""
    return invalid(
        "cannot accept background: the request is answered at once only",
        param="background",
        code="unsupported_parameter",
    )


def _check_refused(value: Mapping[str, Any]) -> None:
    for name in REFUSED_FIELDS:
        if value.get(name) is not None:
            raise invalid(
                f"cannot accept {name}: only a provider that speaks the Responses protocol has it",
                param=name,
                code="unsupported_parameter",
            )


def _leave_out(name: str, value: Mapping[str, Any], left_out: LeftOutParts) -> None:
    """Record a field that no chat request has; the default of truncation is what happens anyway."""
    if value[name] is not None and not (name == "truncation" and value[name] == "disabled"):
        left_out.add(name[:80])


def _include(value: Mapping[str, Any], left_out: LeftOutParts) -> frozenset[str]:
    found = optional_list(value, "include")
    for index, name in enumerate(found):
        if not isinstance(name, str):
            raise wrong(f"include[{index}]", "text")
        if name not in (ENCRYPTED_REASONING, LOGPROBS):
            left_out.add(f"include of {name!r:.80}")
    return frozenset(found)


def _add_limits(fields: Body, value: Mapping[str, Any], include: frozenset[str]) -> None:
    most = optional_count(value, "max_output_tokens")
    if most is not None:
        fields["max_tokens"] = most
    alternatives = optional_count(value, "top_logprobs", 0)
    if LOGPROBS in include or alternatives:
        fields["logprobs"] = True
    if alternatives:
        fields["top_logprobs"] = alternatives


def _add_reasoning(fields: Body, value: Mapping[str, Any]) -> Body:
    """Set the effort and return the `reasoning` of the response."""
    given = optional_object(value, "reasoning")
    effort = optional_text(given, "effort", "reasoning")
    if effort is not None:
        fields["reasoning_effort"] = effort
    summary = optional_text(given, "summary", "reasoning") or optional_text(
        given, "generate_summary", "reasoning"
    )
    return {"effort": effort, "summary": summary}


def _add_text(fields: Body, value: Mapping[str, Any]) -> Body:
    """Set the format and the verbosity, and return the `text` of the response."""
    given = optional_object(value, "text")
    verbosity = optional_text(given, "verbosity", "text")
    if verbosity is not None:
        fields["verbosity"] = verbosity
    form = optional_object(given, "format", "text")
    match form.get("type", "text"):
        case "text":
            form = {"type": "text"}
        case "json_object":
            fields["response_format"] = {"type": "json_object"}
        case "json_schema":
            fields["response_format"] = {"type": "json_schema", "json_schema": _schema(form)}
        case _:
            raise wrong("text.format.type", "text, json_object or json_schema")
    return {"format": form, **({"verbosity": verbosity} if verbosity else {})}


def _schema(form: Body) -> Body:
    where = "text.format"
    name = read_text(form, "name", where, is_empty_allowed=False)
    if not isinstance(form.get("schema"), dict):
        raise wrong(f"{where}.schema", "an object")
    schema: Body = {"name": name, "schema": form["schema"]}
    description, strict = optional_text(form, "description", where), optional_flag(form, "strict", where)
    if description:
        schema["description"] = description
    if strict is not None:
        schema["strict"] = strict
    return schema


def _add_tools(
    fields: Body,
    value: Mapping[str, Any],
    earlier: Sequence[Any],
    names: ToolNames,
    left_out: LeftOutParts,
) -> None:
    is_parallel = optional_flag(value, "parallel_tool_calls")
    found = convert_tools(value, names, left_out, earlier)
    tools, choice = convert_choice(value, found, names, left_out)
    if not tools:
        return
    fields["tools"] = tools
    if choice is not None:
        fields["tool_choice"] = choice
    if is_parallel is False:
        fields["parallel_tool_calls"] = False


def _echo(value: Mapping[str, Any], reasoning: Body, text: Body) -> Body:
    """Return the fields that a response repeats, with the defaults of the protocol."""
    optional_count(value, "max_tool_calls")
    metadata = optional_object(value, "metadata")
    return {
        **{name: value.get(name) for name in ECHOED_FIELDS},
        "background": bool(value.get("background")),
        "metadata": metadata,
        "parallel_tool_calls": value.get("parallel_tool_calls") is not False,
        "reasoning": reasoning,
        "store": value.get("store") is not False,
        "text": text,
        "tool_choice": value.get("tool_choice") or "auto",
        "tools": [_shown_tool(tool) for tool in value.get("tools") or ()],
        "top_logprobs": value.get("top_logprobs") or 0,
        "truncation": as_text_or(value.get("truncation"), "disabled"),
    }


def _shown_tool(tool: Body) -> Body:
    """Return a checked tool with the fields that clients expect of a function."""
    if tool.get("type", "function") != "function":
        return tool
    return {"type": "function", "parameters": None, **tool, "strict": bool(tool.get("strict"))}


def as_text_or(value: object, default: str) -> str:
    """Return a text, or the default for any other value."""
    return value if isinstance(value, str) else default
