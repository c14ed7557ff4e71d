"""Converts requests of the Responses protocol to chat messages for filters, and back; pure.

`instructions` become a system message. Items of `input` that become messages are messages, calls of functions
and custom tools, and tool results. All others (reasoning, references, calls of the provider's own tools) stay
in their place.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.pipeline.documents.presets import apply_params
from gatewayd.pipeline.documents.prompt_context import SYSTEM_ROLES
from gatewayd.pipeline.filters.conversions import (
    Messages,
    content_deltas,
    content_text,
    unsupported_parameter,
)
from gatewayd.pipeline.records import Endpoint

TEXTS: Final = frozenset({"input_text", "output_text", "text"})

_INPUTS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls that become messages, and the field of each that the model wrote."""

_NEW: Final = frozenset({None, "", "message", "function_call", "function_call_output"})
"""Types of items that any message can be converted to."""

_RESULT: Final = "_output"
"""Suffix of the types of tool results."""

_IMAGE_RESULT: Final = "computer_call_output"
"""The only type of result without text."""

_OTHER_NAMES: Final = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "num_predict": "max_output_tokens",
}


class ResponseItems:
    """The `pipeline.filters.conversions.RequestConversion` of the responses endpoint."""

    endpoint: Final = Endpoint.RESPONSES
    path: Final = "/responses"
    texts: Final = frozenset({"instructions", "input"})

    def with_system(self, body: Body, system: str) -> Body:
        """Return a request with a text prepended to its instructions."""
        given = as_text(body.get("instructions"))
        return {**body, "instructions": f"{system}\n{given}" if given else system}

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with the parameters under the names of this protocol, if it has other names."""
        changed, named = dict(body), {}
        for name, value in params.items():
            match name:
                case "reasoning_effort":
                    named["reasoning"] = {**as_mapping(body.get("reasoning")), "effort": value}
                case "response_format":
                    named["text"] = {**as_mapping(body.get("text")), "format": _format(as_mapping(value))}
                case _:
                    named[_OTHER_NAMES.get(name, name)] = value
        apply_params(changed, named)
        return changed

    def to_messages(self, body: Body) -> list[Body]:
        """Return the instructions, and the items that are messages.

        Raises invalid_request for text that no message can hold: variables of a stored prompt, or a result in
        an unknown form.
        """
        if as_mapping(body.get("prompt")).get("variables"):
            raise unsupported_parameter(
                self.path, "prompt", "filters apply, and they do not read its variables"
            )
        instructions, given = body.get("instructions"), body.get("input")
        messages: list[Body] = []
        if isinstance(instructions, str) and instructions:
            messages.append({"role": "system", "content": instructions})
        if isinstance(given, str):
            return [*messages, {"role": "user", "content": given}]
        converted = (_message(as_mapping(item)) for item in as_sequence(given))
        return [*messages, *(message for message in converted if message is not None)]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the messages in the positions of its own items.

        Leading system messages become the instructions. If filters added or removed messages, the items are
        rebuilt, which is refused if there are items of other kinds.
        """
        more = len(messages) - len(self.to_messages({**body, "instructions": None}))
        has_instructions = bool(as_text(body.get("instructions")))
        head = max(more, int(has_instructions))
        if not all(message.get("role") in SYSTEM_ROLES for message in messages[:head]):
            head = int(has_instructions and bool(messages) and messages[0].get("role") in SYSTEM_ROLES)
        changed = dict(body)
        if head or has_instructions:
            texts = [content_text(message.get("content"), self.path) for message in messages[:head]]
            changed["instructions"] = "\n\n".join(texts) or None
        rest = messages[head:]
        given = body.get("input")
        if isinstance(given, str) and _is_plain(rest):
            changed["input"] = rest[0]["content"]
        elif rest or given is not None:
            changed["input"] = self._items(as_sequence(given), rest)
        return changed

    def to_chunk(self, event: Body) -> Body | None:
        """Return a piece of text as a delta; the end of a text becomes a chunk without content."""
        match event.get("type"):
            case "response.output_text.delta":
                delta, reason = {"content": as_text(event.get("delta"))}, None
            case "response.output_text.done":
                delta, reason = {}, "stop"
            case _:
                return None
        choice = {"index": as_count(event.get("output_index")), "delta": delta, "finish_reason": reason}
        return {"object": "chat.completion.chunk", "choices": [choice]}

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the piece with the content of a chunk; buffered text is sent before the end of a text."""
        text = content_deltas(chunk)
        if event.get("type") == "response.output_text.delta":
            if "logprobs" in event and text != event.get("delta"):
                # The probabilities belong to the original text.
                event = {**event, "logprobs": []}
            return [{**event, "delta": text}]
        kept = {name: value for name, value in event.items() if name not in ("text", "logprobs")}
        piece = {**kept, "type": "response.output_text.delta", "delta": text}
        return [piece, event] if text else [event]

    def _items(self, items: Sequence[Any], messages: Messages) -> list[Any]:
        converted = [(item, _message(as_mapping(item))) for item in items]
        known = [message for _, message in converted if message is not None]
        if [message["role"] for message in known] == [message.get("role") for message in messages]:
            changed = iter(messages)
            return [
                item if message is None else self._update_item(item, message, next(changed))
                for item, message in converted
            ]
        if any(as_mapping(item).get("type") not in _NEW for item in items):
            raise unsupported_parameter(
                self.path, "input", "a filter adds or removes messages beside items of other kinds"
            )
        return [item for message in messages for item in _new_items(message, self.path)]

    def _update_item(self, item: Body, before: Mapping[str, Any], after: Mapping[str, Any]) -> Body:
        """Return an item with the changes of its message."""
        if after == before:
            return item
        kind = as_text(item.get("type"))
        content = after.get("content")
        if kind in _INPUTS:
            calls = as_sequence(after.get("tool_calls"))
            function = as_mapping(as_mapping(calls[0]).get("function")) if calls else {}
            return {**item, _INPUTS[kind]: as_text(function.get("arguments"))}
        if not kind.endswith(_RESULT):
            return {**item, "content": _content(content, as_text(after.get("role")))}
        is_text = isinstance(item["output"], str)
        return {**item, "output": content_text(content, self.path) if is_text else _content(content, "tool")}


def _message(item: Mapping[str, Any]) -> Body | None:
    """Return an item as a message; None for an item of another kind."""
    role, content, kind = item.get("role"), item.get("content"), item.get("type")
    if isinstance(role, str) and (not kind or kind == "message"):
        return {"role": role, "content": _to_content(content)}
    if not isinstance(kind, str):
        return None
    if kind in _INPUTS:
        function = {"name": as_text(item.get("name")), "arguments": as_text(item.get(_INPUTS[kind]))}
        call = {"id": as_text(item.get("call_id")), "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind.endswith(_RESULT) and kind != _IMAGE_RESULT:
        converted = _result(item.get("output"), kind)
        return {"role": "tool", "tool_call_id": as_text(item.get("call_id")), "content": converted}
    return None


def _to_content(content: object) -> Any:
    return content if isinstance(content, str) else [_part(part) for part in as_sequence(content)]


def _result(output: object, kind: str) -> Any:
    """Return a tool result as the content of a message."""
    parts = output if isinstance(output, list) else []
    if not isinstance(output, str | list) or any(not as_text(as_mapping(part).get("type")) for part in parts):
        raise unsupported_parameter(
            ResponseItems.path, "input", f"filters apply, and they do not read such a {kind}"
        )
    return _to_content(output)


def _part(part: Any) -> Any:
    known = as_mapping(part)
    if known.get("type") in TEXTS:
        return {"type": "text", "text": as_text(known.get("text"))}
    if known.get("type") == "input_image" and isinstance(known.get("image_url"), str):
        detail = {"detail": known["detail"]} if "detail" in known else {}
        return {"type": "image_url", "image_url": {"url": known["image_url"], **detail}}
    return part


def _content(content: Any, role: str) -> Any:
    """Return the content of a message in the format of this protocol."""
    if isinstance(content, str) or not isinstance(content, list):
        return as_text(content)
    kind = "output_text" if role == "assistant" else "input_text"
    return [_own_part(part, kind) for part in content]


def _own_part(part: Any, kind: str) -> Any:
    known = as_mapping(part)
    if known.get("type") == "text":
        return {"type": kind, "text": as_text(known.get("text"))}
    if known.get("type") == "image_url":
        image = as_mapping(known.get("image_url"))
        detail = {"detail": image["detail"]} if "detail" in image else {}
        return {"type": "input_image", "image_url": image.get("url"), **detail}
    return part


def _new_items(message: Mapping[str, Any], path: str) -> list[Body]:
    """Return the items of a new message."""
    role = as_text(message.get("role"))
    if role == "tool":
        output = content_text(message.get("content"), path)
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    items: list[Body] = []
    if message.get("content"):
        items.append({"type": "message", "role": role, "content": _content(message["content"], role)})
    for call in map(as_mapping, as_sequence(message.get("tool_calls"))):
        function = as_mapping(call.get("function"))
        named = {
            "call_id": call.get("id"),
            "name": function.get("name"),
            "arguments": function.get("arguments"),
        }
        items.append({"type": "function_call", **named})
    return items


def _is_plain(messages: Messages) -> bool:
    """Return True if the messages are one user message with plain text."""
    if len(messages) != 1:
        return False
    return messages[0].get("role") == "user" and isinstance(messages[0].get("content"), str)


def _format(given: Mapping[str, Any]) -> Body:
    """Return a chat `response_format` in the form of this protocol: the schema beside its type."""
    return {
        **{key: value for key, value in given.items() if key != "json_schema"},
        **as_mapping(given.get("json_schema")),
    }
