"""Chats as text."""

from typing import Any

from gatewayctl.events.transcripts import message_lines, transcript
from gatewayctl.wire.stored_chats import StoredChatDetail, StoredMessage


def message(message_id: str, parent_id: str | None = None, **more: Any) -> StoredMessage:
    return StoredMessage(id=message_id, parent_id=parent_id, role=more.pop("role", "user"), **more)


def chat(*messages: StoredMessage, **more: Any) -> StoredChatDetail:
    return StoredChatDetail(id="c1", title="Birds", user_id="u1", messages=list(messages), **more)


def test_a_message_with_everything() -> None:
    shown = message(
        "a1",
        role="assistant",
        model="m",
        created_at="2026-01-01T00:00:00Z",
        content="A heron.\n\nTwo.",
        status=[{"description": "looking", "done": True}, {"action": "search"}, {"x": 1}, "odd"],
        sources=[{"type": "code_execution", "name": "sum"}, {"source": {"name": "pump.md"}}],
        files=[{"name": "a.png"}, {"type": "image", "url": "u"}],
        embeds=["<p>"],
        error="it broke",
    )
    assert list(message_lines(shown)) == [
        "assistant  m  2026-01-01T00:00:00Z  a1",
        "  . looking (done)",
        "  . search",
        '  . {"x": 1}',
        '  . "odd"',
        "  A heron.",
        "  ",
        "  Two.",
        "  [1] pump.md",
        "  code: sum",
        "  file: a.png",
        "  file: u",
        "  1 embeds",
        "  error: it broke",
    ]


def test_a_message_that_is_being_made() -> None:
    assert list(message_lines(message("a", done=False)))[-1] == "  (not finished)"
    assert list(message_lines(message("a", done=True))) == ["user  a"]


def test_a_chat_begins_with_what_it_is() -> None:
    lines = list(transcript(chat(message("q1", content="what?"))))
    assert lines == ["Birds", "chat c1 of u1, 1 messages", "", "user  q1", "  what?"]
    facts = chat(user="ann@example.org", updated_at="2026", archived=True, pinned=True, tags=["a", "b"])
    told = "chat c1 of ann@example.org, changed 2026, archived, pinned, tags a b, 0 messages"
    assert list(transcript(facts)) == ["Birds", told]


def test_branches_are_indented_where_the_chat_parts() -> None:
    messages = [
        message("q1"),
        message("a1", "q1", current=False),
        message("q2", "a1", current=False, content="more"),
        message("a2", "q1"),
        message("q3", "a2"),
        message("a3", "q3"),
        message("a4", "q3", current=False),
    ]
    lines = [line for line in transcript(chat(*messages)) if line][2:]
    assert lines == [
        "user  q1",
        "  user  a1  (another branch)",
        "  user  q2  (another branch)",
        "    more",
        "  user  a2",
        "  user  q3",
        "    user  a3",
        "    user  a4  (another branch)",
    ]
