"""Prompts for titles, tags and follow-up questions, and the parsers of their answers; pure."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import text_of
from gatewayd.completions.embedded_json import has_too_many_values
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.reasoning_tags import ReasoningSplitter
from gatewayd.pipeline.runs.history import strip_details

MAX_MESSAGE_CHARACTERS: Final = 4000
"""Maximum length of each message in a task prompt."""

MAX_TITLE_CHARACTERS: Final = 100
MAX_TAGS: Final = 8
MAX_FOLLOW_UPS: Final = 5
MAX_FOLLOW_UP_CHARACTERS: Final = 500
MAX_BRACES: Final = 100
"""Maximum number of opening braces that are tried as the start of the JSON object."""


@dataclass(frozen=True, slots=True)
class TaskPrompt:
    """A task: its name for plugins, its prompt, the number of messages in it, and the key in the answer."""

    name: str
    ask: str
    messages: int
    key: str

    def prompt(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the prompt with the conversation."""
        history = "\n".join(_render_message(message) for message in messages[-self.messages :])
        return f"{self.ask}\n\nThe conversation:\n<chat_history>\n{history}\n</chat_history>"


TITLE: Final = TaskPrompt(
    "title_generation",
    "Write a title of 3 to 5 words for the conversation below, in the language that it is held in. It names"
    ' the subject, without quotation marks. Answer with JSON alone: {"title": "the title"}',
    2,
    "title",
)
TAGS: Final = TaskPrompt(
    "tags_generation",
    "Name 1 to 3 broad fields of knowledge, and up to 3 narrower subjects, that the conversation below is"
    ' about, each one or two words, in its language. If there are none, name "General". Answer with JSON'
    ' alone: {"tags": ["first", "second"]}',
    6,
    "tags",
)
FOLLOW_UPS: Final = TaskPrompt(
    "follow_up_generation",
    "Suggest 3 to 5 questions that the user may ask next in the conversation below: short, in the user's"
    " words and language, and not answered yet. Answer with JSON alone:"
    ' {"follow_ups": ["first question?", "second question?"]}',
    6,
    "follow_ups",
)


def read_title(answer: str) -> str:
    """Return the title in an answer; an answer without JSON is the title itself; "" if it is empty."""
    found = find_json_object(answer)
    title = found.get("title") if found is not None else _first_line(answer)
    return shorten_title(title) if isinstance(title, str) else ""


def fallback_title(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return a title made of the first question."""
    for message in messages:
        if message.get("role") == "user" and text_of(message).strip():
            return shorten_title(text_of(message))
    return ""


def read_tags(answer: str) -> list[str]:
    """Return the tags in an answer without duplicates; none if it has no list of tags."""
    return _texts(find_json_object(answer), TAGS.key)[:MAX_TAGS]


def read_follow_ups(answer: str) -> list[str]:
    """Return the follow-up questions in an answer; none if it has no list of them."""
    found = _texts(find_json_object(answer), FOLLOW_UPS.key)
    return [question[:MAX_FOLLOW_UP_CHARACTERS] for question in found[:MAX_FOLLOW_UPS]]


def render_task_answer(key: str, answer: str) -> str:
    """Render the answer of a task as the JSON text that clients of the task endpoints expect."""
    values: Mapping[str, Any] = {
        TITLE.key: read_title(answer) if key == TITLE.key else None,
        TAGS.key: read_tags(answer) if key == TAGS.key else None,
        FOLLOW_UPS.key: read_follow_ups(answer) if key == FOLLOW_UPS.key else None,
    }
    return orjson.dumps({key: values[key]}).decode()


def find_json_object(answer: str) -> Mapping[str, Any] | None:
    """Return the JSON object in an answer, or None; reasoning, code fences and sentences are ignored."""
    text = _without_reasoning(answer)
    if has_too_many_values(text):
        return None
    end = text.rfind("}") + 1
    for brace in islice(re.finditer("{", text[:end]), MAX_BRACES):
        with suppress(orjson.JSONDecodeError):
            return as_mapping(orjson.loads(text[brace.start() : end]))
    return None


def shorten_title(text: str) -> str:
    """Return a text as a title: one line without surrounding quotation marks."""
    line = " ".join(text.split()).strip(
        "\"'`*# \N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
    )
    return line if len(line) <= MAX_TITLE_CHARACTERS else f"{line[: MAX_TITLE_CHARACTERS - 3].rstrip()}..."


def _without_reasoning(answer: str) -> str:
    thinking = ReasoningSplitter()
    pieces = [*thinking.feed(answer), *thinking.finish()]
    return "".join(text for is_thought, text in pieces if not is_thought)


def _render_message(message: Mapping[str, Any]) -> str:
    text = strip_details(text_of(message))
    if len(text) > MAX_MESSAGE_CHARACTERS:
        text = f"{text[:MAX_MESSAGE_CHARACTERS]}..."
    return f"{str(message.get('role')).upper()}: {text}"


def _first_line(answer: str) -> str:
    lines = [line.strip() for line in _without_reasoning(answer).strip().splitlines()]
    return next((line for line in lines if line.strip("`{}")), "")


def _texts(found: Mapping[str, Any] | None, key: str) -> list[str]:
    values = as_sequence((found or {}).get(key))
    texts = [" ".join(value.split()) for value in values if isinstance(value, str)]
    return list(dict.fromkeys(text for text in texts if text))
