"""Requests of the Responses protocol, shown to filters as messages and taken back from them; pure.

`instructions` are a system message. Of the items of `input`, messages, calls of functions and custom tools,
and results of tools are messages; all others (reasoning, references, calls of the provider's own tools) stay
where they are.
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
"""The calls that are messages, and the field of each that the model has written."""

_NEW: Final = frozenset({None, "", "message", "function_call", "function_call_output"})
"""The types of items that can be made of any message."""

_RESULT: Final = "_output"
"""How the types of results of tools end."""

_PICTURE: Final = "computer_call_output"
"""The only result without a text."""

_OTHER_NAMES: Final = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "num_predict": "max_output_tokens",
}


class ResponseItems:
    """A `chat.conversions.Conversion`."""

    endpoint: Final = Endpoint.RESPONSES
    path: Final = "/responses"
    texts: Final = frozenset({"instructions", "input"})

    def with_system(self, body: Body, system: str) -> Body:
        """Return a request with a text at the start of its instructions."""
        given = as_text(body.get("instructions"))
        return {**body, "instructions": f"{system}\n{given}" if given else system}

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with the parameters under the names of this protocol, else under their own."""
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
        """Return the instructions and those items that are messages.

        Raises invalid_request for a text in a place that no message has: the variables of a stored prompt, or
        a result of another form.
        """
        if as_mapping(body.get("prompt")).get("variables"):
            raise unsupported_parameter(
                self.path, "prompt", "filters run for it, and they do not read its variables"
            )
        instructions, given = body.get("instructions"), body.get("input")
        messages: list[Body] = []
        if isinstance(instructions, str) and instructions:
            messages.append({"role": "system", "content": instructions})
        if isinstance(given, str):
            return [*messages, {"role": "user", "content": given}]
        shown = (_message(as_mapping(item)) for item in as_sequence(given))
        return [*messages, *(message for message in shown if message is not None)]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the messages in the places of its own.

        System messages before all others are the instructions. Where filters added or removed messages, the
        items are made anew, which those with items of other kinds cannot be.
        """
        more = len(messages) - len(self.to_messages({**body, "instructions": None}))
        has_instructions = bool(as_text(body.get("instructions")))
        head = max(more, int(has_instructions))
        if not all(message.get("role") in SYSTEM_ROLES for message in messages[:head]):
            head = int(has_instructions and bool(messages) and messages[0].get("role") in SYSTEM_ROLES)
        changed = dict(body)
        if head or has_instructions:
            told = [content_text(message.get("content"), self.path) for message in messages[:head]]
            changed["instructions"] = "\n\n".join(told) or None
        rest = messages[head:]
        given = body.get("input")
        if isinstance(given, str) and _is_plain(rest):
            changed["input"] = rest[0]["content"]
        elif rest or given is not None:
            changed["input"] = self._items(as_sequence(given), rest)
        return changed

    def to_chunk(self, event: Body) -> Body | None:
        """Return a piece of the answer's text as content of a delta; its end is a chunk without content."""
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
        """Return the piece with the content of a chunk; before the end of a text comes what was held back."""
        said = content_deltas(chunk)
        if event.get("type") == "response.output_text.delta":
            if "logprobs" in event and said != event.get("delta"):
                # The tokens of the text as it was.
                event = {**event, "logprobs": []}
            return [{**event, "delta": said}]
        kept = {name: value for name, value in event.items() if name not in ("text", "logprobs")}
        piece = {**kept, "type": "response.output_text.delta", "delta": said}
        return [piece, event] if said else [event]

    def _items(self, items: Sequence[Any], messages: Messages) -> list[Any]:
        shown = [(item, _message(as_mapping(item))) for item in items]
        known = [message for _, message in shown if message is not None]
        if [message["role"] for message in known] == [message.get("role") for message in messages]:
            changed = iter(messages)
            return [
                item if message is None else self._put(item, message, next(changed))
                for item, message in shown
            ]
        if any(as_mapping(item).get("type") not in _NEW for item in items):
            raise unsupported_parameter(
                self.path, "input", "a filter adds or removes messages beside items of other kinds"
            )
        return [item for message in messages for item in _new_items(message, self.path)]

    def _put(self, item: Body, before: Mapping[str, Any], after: Mapping[str, Any]) -> Body:
        """Return an item with what has changed in its message."""
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
    """Return an item as a message, None for one of another kind."""
    role, content, kind = item.get("role"), item.get("content"), item.get("type")
    if isinstance(role, str) and (not kind or kind == "message"):
        return {"role": role, "content": _shown(content)}
    if not isinstance(kind, str):
        return None
    if kind in _INPUTS:
        function = {"name": as_text(item.get("name")), "arguments": as_text(item.get(_INPUTS[kind]))}
        call = {"id": as_text(item.get("call_id")), "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind.endswith(_RESULT) and kind != _PICTURE:
        shown = _result(item.get("output"), kind)
        return {"role": "tool", "tool_call_id": as_text(item.get("call_id")), "content": shown}
    return None


def _shown(content: object) -> Any:
    return content if isinstance(content, str) else [_part(part) for part in as_sequence(content)]


def _result(output: object, kind: str) -> Any:
    """Return the result of a tool as the content of a message."""
    parts = output if isinstance(output, list) else []
    if not isinstance(output, str | list) or any(not as_text(as_mapping(part).get("type")) for part in parts):
        raise unsupported_parameter(
            ResponseItems.path, "input", f"filters run for it, and they do not read such a {kind}"
        )
    return _shown(output)


def _part(part: Any) -> Any:
    known = as_mapping(part)
    if known.get("type") in TEXTS:
        return {"type": "text", "text": as_text(known.get("text"))}
    if known.get("type") == "input_image" and isinstance(known.get("image_url"), str):
        detail = {"detail": known["detail"]} if "detail" in known else {}
        return {"type": "image_url", "image_url": {"url": known["image_url"], **detail}}
    return part


def _content(content: Any, role: str) -> Any:
    """Return the content of a message in this protocol's words."""
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
    """Return the items of a message that a request did not have."""
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
    """Tell whether messages are a single text of the user."""
    if len(messages) != 1:
        return False
    return messages[0].get("role") == "user" and isinstance(messages[0].get("content"), str)


def _format(given: Mapping[str, Any]) -> Body:
    """Return a `response_format` of chats as this protocol has it: the schema beside its type."""
    return {
        **{key: value for key, value in given.items() if key != "json_schema"},
        **as_mapping(given.get("json_schema")),
    }
