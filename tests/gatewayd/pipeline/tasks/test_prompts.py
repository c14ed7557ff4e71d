"""Tests for gatewayd.pipeline.tasks.prompts."""

import orjson
import pytest

from gatewayd.pipeline.tasks import prompts
from gatewayd.pipeline.tasks.prompts import (
    FOLLOW_UPS,
    MAX_MESSAGE_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    TAGS,
    TITLE,
)


@pytest.mark.parametrize(
    "answer",
    [
        '{"title": "On things"}',
        '```json\n{"title": "On things"}\n```',
        'Sure! Here it is: {"title": "On things"} Have fun.',
        '<think>maybe {"title": "no"}</think>{"title": "On things"}',
        'A set {x} first, then {"title": "On things"}',
        '"On things"',
        "# On things\nmore",
        "On   things",
    ],
)
def test_title_is_read_whatever_stands_around_it(answer: str) -> None:
    assert prompts.read_title(answer) == "On things"


@pytest.mark.parametrize("answer", ["", "   ", "```", '{"title": 3}', '{"name": "x"}', "<think>x</think>"])
def test_answer_without_a_title_has_none(answer: str) -> None:
    assert prompts.read_title(answer) == ""


def test_answer_of_braces_alone_is_looked_through_to_a_bound() -> None:
    most = "{ " * (prompts.MAX_BRACES - 1)
    assert prompts.read_tags(most + '{"tags": ["A"]}') == ["A"]
    assert prompts.read_tags(most + '{ {"tags": ["A"]}') == []


def test_an_answer_that_holds_too_much_is_not_read() -> None:
    assert prompts.read_tags('{"tags": ["A"], "x": [' + "[]," * 250_000 + "[]]}") == []


def test_title_is_one_line_of_some_length() -> None:
    assert prompts.read_title('{"title": "a\\nb"}') == "a b"
    assert len(prompts.read_title("x" * 1000)) == MAX_TITLE_CHARACTERS


def test_question_is_the_last_resort() -> None:
    parts = [{"type": "text", "text": "What?"}]
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": parts}]
    assert prompts.fallback_title(messages) == "What?"
    assert prompts.fallback_title([]) == ""


def test_lists_are_read_with_each_text_once() -> None:
    assert prompts.read_tags('x {"tags": ["A", "b ", 3, "A", ""]} y') == ["A", "b"]
    assert prompts.read_follow_ups('{"follow_ups": ["Why?", null]}') == ["Why?"]


@pytest.mark.parametrize("answer", ["", "A, B", '{"tags": "A"}', "[1]", '{"other": ["A"]}'])
def test_answer_without_a_list_has_nothing(answer: str) -> None:
    assert prompts.read_tags(answer) == []
    assert prompts.read_follow_ups(answer) == []


def test_last_messages_are_shown_without_what_only_readers_see() -> None:
    hidden = '<details type="reasoning" done="true">\n<summary>x</summary>\n&gt; secret\n</details>\nshown'
    messages = [
        {"role": "user", "content": "long ago"},
        {"role": "user", "content": "x" * (MAX_MESSAGE_CHARACTERS + 50)},
        {"role": "assistant", "content": hidden},
    ]
    prompt = TITLE.prompt(messages)
    assert "long ago" not in prompt
    assert "secret" not in prompt
    assert "ASSISTANT: shown" in prompt
    assert "x" * MAX_MESSAGE_CHARACTERS in prompt
    assert "x" * (MAX_MESSAGE_CHARACTERS + 1) not in prompt


def test_callers_get_json() -> None:
    assert orjson.loads(prompts.render_task_answer(TITLE.key, "On things")) == {"title": "On things"}
    assert orjson.loads(prompts.render_task_answer(TAGS.key, "no list")) == {"tags": []}
    assert orjson.loads(prompts.render_task_answer(FOLLOW_UPS.key, '{"follow_ups": ["Q?"]}')) == {
        "follow_ups": ["Q?"]
    }
