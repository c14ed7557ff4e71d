"""Reads one delta, message, event or error of an answer, whatever shape its provider gave it; pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatewayd.completions.json_access import mapping, sequence, text

REASONING: Final = ("reasoning_content", "reasoning", "thinking")
"""Where providers put the text of their reasoning, the most usual first; several may say the same."""

THOUGHT_FIELDS: Final = frozenset({"thinking_blocks", "reasoning_details", *REASONING})
"""Every field of a delta or message that may hold reasoning, beside its content."""

UNNAMED_ERROR: Final = "cannot get an answer: the source reported an error without a name"

_MESSAGE_FIELDS: Final = ("error", "message", "detail", "msg", "text", "errors", "content")
_MAX_ERROR_DEPTH: Final = 4
_MAX_ERRORS: Final = 5


class Thought(NamedTuple):
    """A piece of thinking; with `data` a redacted one."""

    text: str = ""
    signature: str = ""
    data: str = ""


def message_of(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of the first choice of a whole answer; empty when there is none."""
    choices = sequence(completion.get("choices"))
    return dict(mapping(mapping(choices[0]).get("message"))) if choices else {}


def first_choices(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the choices of an event, or of a whole answer, that belong to the first answer of several."""
    for choice in sequence(event.get("choices")):
        if isinstance(choice, dict) and choice.get("index") in (0, None):
            yield choice


def delta_of(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the delta of a choice, or the whole message in its place."""
    return mapping(choice.get("delta")) or mapping(choice.get("message"))


def said(delta: Mapping[str, Any]) -> str:
    """Return the text of a delta or message, also of one whose content is a list of parts."""
    content = delta.get("content")
    if isinstance(content, str):
        return content
    return "".join(text(mapping(part).get("text")) for part in sequence(content))


def thought(delta: Mapping[str, Any]) -> str:
    """Return the reasoning of a delta or message, once, under whatever names it came."""
    for name in REASONING:
        if text(delta.get(name)):
            return text(delta[name])
    found = [*_reasoning_details(delta.get("reasoning_details")), *_thinking_parts(delta.get("content"))]
    return "".join(thought.text for thought in found)


def usage_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the usage in an event, also where some providers hide it; empty when there is none."""
    usage = mapping(event.get("usage")) or mapping(mapping(event.get("x_groq")).get("usage"))
    for choice in sequence(event.get("choices")):
        usage = usage or mapping(mapping(choice).get("usage"))
    return usage


def thoughts_of(message: Mapping[str, Any]) -> list[Thought]:
    """Return the thinking in a message or delta, wherever the provider puts it.

    Fields that say the same count once, those with signatures first.
    """
    if THOUGHT_FIELDS.isdisjoint(message) and not isinstance(message.get("content"), list):
        return []
    found: list[Thought] = []
    taken = ""
    for group in (
        _thinking_blocks(message.get("thinking_blocks")),
        _reasoning_details(message.get("reasoning_details")),
        *([Thought(text(message.get(name)))] for name in REASONING),
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


def words_of(message: Mapping[str, Any]) -> str:
    """Return the text in a message or delta; a refusal is text too."""
    return said(message) + text(message.get("refusal"))


def calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the elements of `tool_calls`, or the one call of the older `function_call`."""
    calls: list[Mapping[str, Any]]
    calls = [call for call in sequence(message.get("tool_calls")) if isinstance(call, dict)]
    older = mapping(message.get("function_call"))
    return calls if calls or not older else [{"index": 0, "function": older}]


def sentence_of(error: object) -> str:
    """Return the sentence in the `error` of an event, or one that says that there is none."""
    return sentence_in(error) or UNNAMED_ERROR


def sentence_in(answer: object, depth: int = 0) -> str | None:
    """Return the sentence inside the error shapes that providers and plugins use, or None.

    Known are `{"error": {"message"}}`, `{"error": "..."}`, `{"detail": "..." | [{"msg"}]}`, `{"message"}`,
    `{"text"}`, `{"content"}`, `{"errors": [...]}` and a list around any of them.
    """
    if isinstance(answer, str):
        return answer or None
    if depth > _MAX_ERROR_DEPTH:
        return None
    if isinstance(answer, list):
        found = [sentence_in(item, depth + 1) for item in answer[:_MAX_ERRORS]]
        return "; ".join(said for said in found if said) or None
    if not isinstance(answer, Mapping):
        return None
    for name in _MESSAGE_FIELDS:
        said = sentence_in(answer.get(name), depth + 1)
        if said:
            return said
    return None


def _thinking_blocks(value: object) -> list[Thought]:
    found = []
    for block in sequence(value):
        match mapping(block).get("type"):
            case "thinking":
                found.append(Thought(text(block.get("thinking")), text(block.get("signature"))))
            case "redacted_thinking":
                found.append(Thought(data=text(block.get("data"))))
            case _:
                pass
    return found


def _reasoning_details(value: object) -> list[Thought]:
    """Read the details that routers of several providers give; what is encrypted for others is not ours."""
    found = []
    for detail in sequence(value):
        match mapping(detail).get("type"):
            case "reasoning.encrypted":
                if text(detail.get("format")).startswith("anthropic"):
                    found.append(Thought(data=text(detail.get("data"))))
            case _:
                words = text(mapping(detail).get("text")) or text(mapping(detail).get("summary"))
                found.append(Thought(words, text(mapping(detail).get("signature"))))
    return found


def _thinking_parts(content: object) -> list[Thought]:
    """Read parts with `thinking`, which is a text or a list of text parts."""
    found = [mapping(part).get("thinking") for part in sequence(content)]
    return [Thought(text(inner) or said({"content": inner})) for inner in found if inner is not None]
