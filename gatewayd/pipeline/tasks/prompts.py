"""What a model is asked for titles, tags and questions that may follow, and what its answers say; pure."""

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
"""Of each message that a model is shown for such a task."""

MAX_TITLE_CHARACTERS: Final = 100
MAX_TAGS: Final = 8
MAX_FOLLOW_UPS: Final = 5
MAX_FOLLOW_UP_CHARACTERS: Final = 500
MAX_BRACES: Final = 100
"""Of the opening braces in an answer, so many are tried as the begin of the object."""


@dataclass(frozen=True, slots=True)
class TaskPrompt:
    """One task: its name as plugins know it, what is asked about how many messages, the key in the answer."""

    name: str
    ask: str
    messages: int
    key: str

    def prompt(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the whole question about a conversation."""
        shown = "\n".join(_shown(message) for message in messages[-self.messages :])
        return f"{self.ask}\n\nThe conversation:\n<chat_history>\n{shown}\n</chat_history>"


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
    """Return the title in an answer; one that is not JSON is the title itself, "" when it says nothing."""
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
    """Return the tags in an answer, each once; none when it has no list of them."""
    return _texts(find_json_object(answer), TAGS.key)[:MAX_TAGS]


def read_follow_ups(answer: str) -> list[str]:
    """Return the questions in an answer; none when it has no list of them."""
    found = _texts(find_json_object(answer), FOLLOW_UPS.key)
    return [question[:MAX_FOLLOW_UP_CHARACTERS] for question in found[:MAX_FOLLOW_UPS]]


def render_task_answer(key: str, answer: str) -> str:
    """Return what a task's answer says, as the JSON text that callers of the task endpoints expect."""
    values: Mapping[str, Any] = {
        TITLE.key: read_title(answer) if key == TITLE.key else None,
        TAGS.key: read_tags(answer) if key == TAGS.key else None,
        FOLLOW_UPS.key: read_follow_ups(answer) if key == FOLLOW_UPS.key else None,
    }
    return orjson.dumps({key: values[key]}).decode()


def find_json_object(answer: str) -> Mapping[str, Any] | None:
    """Return the JSON object in an answer, None without one; thoughts, fences and sentences do not count."""
    text = _spoken(answer)
    if has_too_many_values(text):
        return None
    end = text.rfind("}") + 1
    for brace in islice(re.finditer("{", text[:end]), MAX_BRACES):
        with suppress(orjson.JSONDecodeError):
            return as_mapping(orjson.loads(text[brace.start() : end]))
    return None


def shorten_title(text: str) -> str:
    """Return a text as a title: one line, without quotation marks around it."""
    line = " ".join(text.split()).strip(
        "\"'`*# \N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
    )
    return line if len(line) <= MAX_TITLE_CHARACTERS else f"{line[: MAX_TITLE_CHARACTERS - 3].rstrip()}..."


def _spoken(answer: str) -> str:
    thinking = ReasoningSplitter()
    pieces = [*thinking.feed(answer), *thinking.finish()]
    return "".join(text for is_thought, text in pieces if not is_thought)


def _shown(message: Mapping[str, Any]) -> str:
    text = strip_details(text_of(message))
    if len(text) > MAX_MESSAGE_CHARACTERS:
        text = f"{text[:MAX_MESSAGE_CHARACTERS]}..."
    return f"{str(message.get('role')).upper()}: {text}"


def _first_line(answer: str) -> str:
    lines = [line.strip() for line in _spoken(answer).strip().splitlines()]
    return next((line for line in lines if line.strip("`{}")), "")


def _texts(found: Mapping[str, Any] | None, key: str) -> list[str]:
    values = as_sequence((found or {}).get(key))
    texts = [" ".join(value.split()) for value in values if isinstance(value, str)]
    return list(dict.fromkeys(text for text in texts if text))
