"""A provider of the Responses protocol that refuses what OpenAI refuses, in its words.

It keeps nothing: reasoning comes back encrypted, and only what it has encrypted itself is read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from tests.fakes.providers.responses_stream import call, events_of, message, reasoning, response_of
from tests.fakes.providers.strict import conversation
from tests.fakes.providers.upstream import FakeUpstream, Recorded, Reply, anthropic_events, json_reply

KNOWN_FIELDS: Final = frozenset(
    {"background", "context_management", "conversation", "include", "input", "instructions"}
    | {"max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls"}
    | {"previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options"}
    | {"prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream"}
    | {"stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p"}
    | {"truncation", "user"}
)

USAGE: Final[dict[str, Any]] = {
    "input_tokens": conversation.PROMPT_TOKENS,
    "input_tokens_details": {"cached_tokens": conversation.CACHED_TOKENS},
    "output_tokens": conversation.COMPLETION_TOKENS,
    "output_tokens_details": {"reasoning_tokens": conversation.REASONING_TOKENS},
    "total_tokens": conversation.PROMPT_TOKENS + conversation.COMPLETION_TOKENS,
}

PLAIN_MODELS: Final = frozenset({"gpt-4o", "plain"})
"""Models without reasoning."""


class RefusedRequestError(Exception):
    """The request is refused with this error object."""

    def __init__(self, text: str, param: str | None, code: str | None, status: int = 400) -> None:
        super().__init__(text)
        self.status = status
        self.body = {
            "error": {"message": text, "type": "invalid_request_error", "param": param, "code": code}
        }


class StrictResponses(FakeUpstream):
    """The server. `organization` is what its encrypted reasoning is readable for."""

    def __init__(self, models: Sequence[str] = ("gpt-6-astra",), organization: str = "org") -> None:
        super().__init__(models)
        self.organization = organization
        self.key = "sk-right"
        self.has_summaries = True

    def _default(self, request: Recorded) -> Reply:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return json_reply(
                {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, 401
            )
        try:
            if request.path == "/v1/chat/completions":
                check_chat(request.json)
            if request.path == "/v1/responses":
                return self._respond(request.json)
        except RefusedRequestError as refused:
            return json_reply(refused.body, refused.status)
        return super()._default(request)

    def _respond(self, body: Mapping[str, Any]) -> Reply:
        if isinstance(body["input"], str):
            body = {**body, "input": [{"role": "user", "content": body["input"]}]}
        check_fields(body, has_summaries=self.has_summaries)
        self._check_items(body["input"])
        for index, tool in enumerate(body.get("tools", [])):
            check_tool(tool, index)
        response = response_of(*self._output(body), usage=USAGE, model=body["model"])
        if not body.get("stream"):
            return json_reply(response)
        return Reply(steps=[anthropic_events(event) for event in events_of(response)])

    def _output(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        if any(item.get("type") == "function_call_output" for item in body["input"]):
            return [message(conversation.ANSWER)]
        sealed = f"sealed for {self.organization}" if "include" in body else ""
        asked = body.get("reasoning", {})
        thought = [conversation.THOUGHT] if asked.get("summary") else []
        thoughts = [] if body["model"] in PLAIN_MODELS else [reasoning(*thought, data=sealed)]
        output = [*thoughts, message(conversation.TEXT)]
        if not body.get("tools"):
            return output
        return [*output, call(conversation.TOOL, orjson.dumps(conversation.ARGUMENTS).decode())]

    def _check_items(self, items: Sequence[Mapping[str, Any]]) -> None:
        called = {item["call_id"] for item in items if item.get("type") == "function_call"}
        for place, item in enumerate(items):
            match item.get("type", "message"):
                case "reasoning":
                    self._check_reasoning(item, items[place + 1 : place + 2])
                case "function_call_output" if item["call_id"] not in called:
                    text = f"No tool call found for function call output with call_id {item['call_id']}."
                    raise RefusedRequestError(text, "input", None)
                case "message":
                    check_content(item, f"input[{place}]")
        answered = {item["call_id"] for item in items if item.get("type") == "function_call_output"}
        for call_id in called - answered:
            raise RefusedRequestError(f"No tool output found for function call {call_id}.", "input", None)

    def _check_reasoning(self, item: Mapping[str, Any], following: Sequence[Mapping[str, Any]]) -> None:
        if item.get("encrypted_content") != f"sealed for {self.organization}":
            text = "The encrypted content could not be verified."
            raise RefusedRequestError(text, None, "invalid_encrypted_content")
        if not following or following[0].get("role") not in (None, "assistant"):
            where = f"Item '{item.get('id')}' of type 'reasoning'"
            text = f"{where} was provided without its required following item."
            raise RefusedRequestError(text, "input", None)


def check_chat(body: Mapping[str, Any]) -> None:
    """Refuse function tools beside any effort but none, as the newest models do."""
    model = body["model"]
    if body.get("tools") and model not in PLAIN_MODELS and body.get("reasoning_effort") != "none":
        text = (
            f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions."
            " Please use /v1/responses instead."
        )
        raise RefusedRequestError(text, "reasoning_effort", None)


def check_fields(body: Mapping[str, Any], *, has_summaries: bool) -> None:
    """Refuse unknown fields, and those that the model does not have."""
    for name in sorted(body.keys() - KNOWN_FIELDS):
        raise RefusedRequestError(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    if body.get("max_output_tokens", 16) < 16:
        text = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
        raise RefusedRequestError(text, "max_output_tokens", "integer_below_min_value")
    reasoning_field = body.get("reasoning", {})
    if body["model"] in PLAIN_MODELS:
        if body.get("include"):
            raise RefusedRequestError("Encrypted content is not supported with this model.", "include", None)
        for name in reasoning_field:
            text = f"Unsupported parameter: 'reasoning.{name}' is not supported with this model."
            raise RefusedRequestError(text, f"reasoning.{name}", "unsupported_parameter")
        return
    if reasoning_field.get("summary") and not has_summaries:
        text = "Your organization must be verified to generate reasoning summaries."
        raise RefusedRequestError(text, "reasoning.summary", "unsupported_value")
    for name in ("temperature", "top_p"):
        if name in body:
            text = f"Unsupported parameter: '{name}' is not supported with this model."
            raise RefusedRequestError(text, name, "unsupported_parameter")


def check_tool(tool: Mapping[str, Any], index: int) -> None:
    """Refuse tools in the shape of chat completions, and strict ones with a loose schema."""
    if tool["type"] == "function" and "name" not in tool:
        where = f"tools[{index}].name"
        raise RefusedRequestError(
            f"Missing required parameter: '{where}'.", where, "missing_required_parameter"
        )
    # Without a word about it the original makes the schema strict itself.
    if tool["type"] != "function" or not tool.get("strict"):
        return
    parameters = tool["parameters"]
    if parameters.get("additionalProperties") is not False:
        text = (
            f"Invalid schema for function '{tool['name']}': In context=(), 'additionalProperties' is required"
            " to be supplied and to be false."
        )
        raise RefusedRequestError(text, f"tools[{index}].parameters", "invalid_function_parameters")


def check_content(item: Mapping[str, Any], where: str) -> None:
    """Refuse parts of other protocols."""
    content = item.get("content")
    for index, part in enumerate(content if isinstance(content, list) else []):
        kind = part["type"]
        known = (
            {"output_text", "refusal"}
            if item["role"] == "assistant"
            else {"input_text", "input_image", "input_file"}
        )
        if kind not in known:
            supported = " and ".join(f"'{name}'" for name in sorted(known))
            text = f"Invalid value: '{kind}'. Supported values are: {supported}."
            raise RefusedRequestError(text, f"{where}.content[{index}]", "invalid_value")
