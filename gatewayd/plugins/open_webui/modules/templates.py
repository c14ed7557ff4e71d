"""Functions of `open_webui.utils.misc` that make completions and chunks."""

from typing import Any

from gatewayd import ids


def openai_chat_message_template(model: str) -> dict[str, Any]:
    """Return the common members of a completion and a chunk, with an empty choice."""
    return {
        "id": f"{model}-{ids.new_id()}",
        "created": ids.now(),
        "model": model,
        "choices": [{"index": 0, "logprobs": None, "finish_reason": None}],
    }


def openai_chat_chunk_message_template(
    model: str,
    content: str | None = None,
    reasoning_content: str | None = None,
    tool_calls: list[dict[str, Any]] | None = None,
    usage: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a chunk; one without text and tool calls has finish_reason `stop`."""
    chunk = openai_chat_message_template(model)
    chunk["object"] = "chat.completion.chunk"
    delta: dict[str, Any] = {}
    if content:
        delta["content"] = content
    if reasoning_content:
        delta["reasoning_content"] = reasoning_content
    if tool_calls:
        delta["tool_calls"] = tool_calls
    choice = chunk["choices"][0]
    choice["delta"] = delta
    if not delta:
        choice["finish_reason"] = "stop"
    if usage:
        chunk["usage"] = usage
    return chunk


def openai_chat_completion_message_template(
    model: str,
    message: str | None = None,
    reasoning_content: str | None = None,
    tool_calls: list[dict[str, Any]] | None = None,
    usage: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a whole completion."""
    completion = openai_chat_message_template(model)
    completion["object"] = "chat.completion"
    choice = completion["choices"][0]
    if message is not None:
        choice["message"] = {
            "role": "assistant",
            "content": message,
            **({"reasoning_content": reasoning_content} if reasoning_content else {}),
            **({"tool_calls": tool_calls} if tool_calls else {}),
        }
    choice["finish_reason"] = "tool_calls" if tool_calls else "stop"
    if usage:
        completion["usage"] = usage
    return completion
