"""Reads deltas, messages, events and errors in all the forms that providers use; pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
"""Fields in which providers put reasoning text, the most common first; several may repeat the same text."""

THOUGHT_FIELDS: Final = frozenset({"thinking_blocks", "reasoning_details", *REASONING_FIELDS})
"""All fields of a delta or message that may hold reasoning, apart from its content."""

UNNAMED_ERROR: Final = "cannot get an answer: the source reported an error without a name"

_MESSAGE_FIELDS: Final = ("error", "message", "detail", "msg", "text", "errors", "content")
_MAX_ERROR_DEPTH: Final = 4
_MAX_ERRORS: Final = 5


class ReasoningPiece(NamedTuple):
    """A piece of reasoning; `data` is set for redacted reasoning."""

    text: str = ""
    signature: str = ""
    data: str = ""


def message_of(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of the first choice of a whole completion; empty if there is none."""
    choices = as_sequence(completion.get("choices"))
    return dict(as_mapping(as_mapping(choices[0]).get("message"))) if choices else {}


def first_choices(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield those choices of an event or completion that have index 0 or no index."""
    for choice in as_sequence(event.get("choices")):
        if isinstance(choice, dict) and choice.get("index") in (0, None):
            yield choice


def delta_of(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the delta of a choice, or the whole message that some providers send instead."""
    return as_mapping(choice.get("delta")) or as_mapping(choice.get("message"))


def text_of(delta: Mapping[str, Any]) -> str:
    """Return the text of a delta or message; the text parts of a content list are joined."""
    content = delta.get("content")
    if isinstance(content, str):
        return content
    return "".join(as_text(as_mapping(part).get("text")) for part in as_sequence(content))


def reasoning_of(delta: Mapping[str, Any]) -> str:
    """Return the reasoning text of a delta or message once, whichever fields hold it."""
    for name in REASONING_FIELDS:
        if as_text(delta.get(name)):
            return as_text(delta[name])
    found = [*_reasoning_details(delta.get("reasoning_details")), *_thinking_parts(delta.get("content"))]
    return "".join(thought.text for thought in found)


def has_thinking_parts(content: object) -> bool:
    """Return True if a content has parts with reasoning."""
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("thinking") is not None for part in content
    )


def usage_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the usage of an event, also from the other places that providers use; empty if there is none."""
    usage = as_mapping(event.get("usage")) or as_mapping(as_mapping(event.get("x_groq")).get("usage"))
    for choice in as_sequence(event.get("choices")):
        usage = usage or as_mapping(as_mapping(choice).get("usage"))
    return usage


def event_characters(event: Mapping[str, Any]) -> int:
    """Return the number of characters of the texts in an event, with reasoning and arguments of calls."""
    choices = map(as_mapping, as_sequence(event.get("choices")))
    return sum(delta_characters(as_mapping(choice.get("delta"))) for choice in choices)


def answer_characters(answer: Mapping[str, Any]) -> int:
    """Return the number of characters of the texts in a completion or a message."""
    choices = map(as_mapping, as_sequence(answer.get("choices")))
    count = sum(delta_characters(as_mapping(choice.get("message"))) for choice in choices)
    return count + sum(delta_characters(as_mapping(block)) for block in as_sequence(answer.get("content")))


def delta_characters(delta: Mapping[str, Any]) -> int:
    """Return the number of characters of the texts in a delta, with reasoning and arguments of calls."""
    count = sum(len(value) for name, value in delta.items() if isinstance(value, str) and name != "role")
    for call in calls_of(delta):
        count += len(as_text(as_mapping(call.get("function")).get("arguments")))
    return count


def reasoning_pieces_of(message: Mapping[str, Any]) -> list[ReasoningPiece]:
    """Return the reasoning pieces of a message or delta from all fields that providers use.

    Fields that repeat the same text count once; fields with signatures come first.
    """
    if THOUGHT_FIELDS.isdisjoint(message) and not isinstance(message.get("content"), list):
        return []
    found: list[ReasoningPiece] = []
    taken = ""
    for group in (
        _thinking_blocks(message.get("thinking_blocks")),
        _reasoning_details(message.get("reasoning_details")),
        *([ReasoningPiece(as_text(message.get(name)))] for name in REASONING_FIELDS),
        _thinking_parts(message.get("content")),
    ):
        words = "".join(thought.text for thought in group)
        if words and words in taken:
            continue
        known = set(found)
        new = [thought for thought in group if any(thought) and (words or thought not in known)]
        found = found + new if taken else new + found
        taken += words
    return found


def text_or_refusal_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message or delta, including a refusal."""
    return text_of(message) + as_text(message.get("refusal"))


def calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the elements of `tool_calls`, or the single call of the deprecated `function_call`."""
    calls: list[Mapping[str, Any]]
    calls = [call for call in as_sequence(message.get("tool_calls")) if isinstance(call, dict)]
    older = as_mapping(message.get("function_call"))
    return calls if calls or not older else [{"index": 0, "function": older}]


def sentence_of(error: object) -> str:
    """Return the sentence in the `error` of an event, or UNNAMED_ERROR."""
    return error_message_in(error) or UNNAMED_ERROR


def error_message_in(answer: object, depth: int = 0) -> str | None:
    """Return the sentence of an error in any of the known provider and plugin formats, or None.

    Known formats are `{"error": {"message"}}`, `{"error": "..."}`, `{"detail": "..." | [{"msg"}]}`,
    `{"message"}`, `{"text"}`, `{"content"}`, `{"errors": [...]}`, and lists of them.
    """
    if isinstance(answer, str):
        return answer or None
    if depth > _MAX_ERROR_DEPTH:
        return None
    if isinstance(answer, list):
        found = [error_message_in(item, depth + 1) for item in answer[:_MAX_ERRORS]]
        return "; ".join(message for message in found if message) or None
    if not isinstance(answer, Mapping):
        return None
    for name in _MESSAGE_FIELDS:
        message = error_message_in(answer.get(name), depth + 1)
        if message:
            return message
    return None


def _thinking_blocks(value: object) -> list[ReasoningPiece]:
    found = []
    for block in as_sequence(value):
        match as_mapping(block).get("type"):
            case "thinking":
                found.append(ReasoningPiece(as_text(block.get("thinking")), as_text(block.get("signature"))))
            case "redacted_thinking":
                found.append(ReasoningPiece(data=as_text(block.get("data"))))
            case _:
                pass
    return found


def _reasoning_details(value: object) -> list[ReasoningPiece]:
    """Parse the texts in the `reasoning_details` of provider routers.

    Their signatures and encrypted data are for the router, and no signatures of the messages protocol.
    """
    details = map(as_mapping, as_sequence(value))
    return [ReasoningPiece(as_text(each.get("text")) or as_text(each.get("summary"))) for each in details]


def _thinking_parts(content: object) -> list[ReasoningPiece]:
    """Parse content parts with `thinking`, which is a text or a list of text parts."""
    found = [as_mapping(part).get("thinking") for part in as_sequence(content)]
    return [
        ReasoningPiece(as_text(inner) or text_of({"content": inner})) for inner in found if inner is not None
    ]
