"""Tests for gatewayd.pipeline.documents.prompt_context."""

from typing import Any

import pytest

from gatewayd.pipeline.documents.prompt_context import append_to_system, last_question, prepend_to_question

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        ([user("one"), {"role": "assistant", "content": "x"}, user("two")], "two"),
        ([user("one"), {"role": "assistant", "content": "x"}], "one"),
        ([user("one"), {"role": "tool", "content": "x"}], "one"),
        ([user([IMAGE, text("one"), text("two")])], "one\ntwo"),
        ([user("one"), user([IMAGE])], "one"),
        ([user("one"), user("  "), user(None), user([text(3), "x"])], "one"),
        ([{"role": "system", "content": "x"}], ""),
        ([], ""),
    ],
)
def test_last_question(messages: list[dict[str, Any]], question: str) -> None:
    assert last_question(messages) == question


def test_before_the_question() -> None:
    messages = [user("one"), {"role": "assistant", "content": "x"}, user("two")]
    assert prepend_to_question(messages, "CTX") == [*messages[:2], user("CTX\ntwo")]
    assert messages[2] == user("two")


def test_images_and_marks_stay() -> None:
    part = {**text("what is this?"), "cache_control": {"type": "ephemeral"}}
    messages = [{**user([IMAGE, part, text("more")]), "name": "ann"}]
    [changed] = prepend_to_question(messages, "CTX")
    assert changed["content"] == [IMAGE, {**part, "text": "CTX\nwhat is this?"}, text("more")]
    assert changed["name"] == "ann"
    assert messages[0]["content"][1] is part
    assert prepend_to_question([user([IMAGE])], "CTX") == [user([IMAGE])]


def test_after_the_system_message() -> None:
    asked = user("one")
    system = {"role": "system", "content": "be kind"}
    assert append_to_system([asked], "CTX") == [{"role": "system", "content": "CTX"}, asked]
    assert append_to_system([system, asked], "CTX")[0] == {"role": "system", "content": "be kind\n\nCTX"}
    parts = {"role": "developer", "content": [text("be kind")]}
    assert append_to_system([parts, asked], "CTX")[0]["content"] == [text("be kind"), text("CTX")]
    assert append_to_system([{"role": "system", "content": None}, asked], "CTX")[0]["content"] == "CTX"
    assert system["content"] == "be kind"
