"""Tests for gatewayd.events.message_effects."""

from typing import Any

import pytest

from gatewayd.events.message_effects import StoredEffects, is_stored
from gatewayd.events.records import Effect, EventTarget
from tests.fakes.storage.events import TARGET, make_state
from tests.fakes.storage.memory_chats import MemoryEffects


@pytest.mark.parametrize(
    ("chat_id", "message_id", "expected"),
    [
        ("c1", "m1", True),
        ("", "m1", False),
        ("c1", "", False),
        ("local:c1", "m1", False),
        ("temporary:1", "m1", False),
        ("channel:1", "m1", False),
        ("localised", "m1", True),
    ],
)
def test_where_something_can_be_stored(chat_id: str, message_id: str, expected: bool) -> None:
    assert is_stored(EventTarget("ann", chat_id, message_id)) is expected


@pytest.mark.parametrize(
    ("effect", "sent", "content", "items", "told"),
    [
        (Effect.NONE, [{"content": "a"}], "", {}, {"content": "a"}),
        (Effect.APPEND_CONTENT, [{"content": "a"}, {"content": "b"}], "ab", {}, {"content": "b"}),
        (Effect.APPEND_CONTENT, [{"content": ""}], "", {}, {"content": ""}),
        (Effect.REPLACE_CONTENT, [{"content": "a"}, {"content": "b"}], "b", {}, {"content": "b"}),
        (Effect.REPLACE_CONTENT, [{"content": "a"}, {"content": ""}], "", {}, {"content": ""}),
        (Effect.APPEND_STATUS, [{"n": 1}, {"n": 2}], "", {"statusHistory": [{"n": 1}, {"n": 2}]}, {"n": 2}),
        (Effect.APPEND_SOURCES, [{"n": 1}, {"n": 2}], "", {"sources": [{"n": 1}, {"n": 2}]}, {"n": 2}),
        (
            Effect.APPEND_FILES,
            [{"files": [1]}, {"files": [2, 3], "x": 1}],
            "",
            {"files": [1, 2, 3]},
            {"files": [1, 2, 3], "x": 1},
        ),
        (
            Effect.APPEND_EMBEDS,
            [{"embeds": ["a"]}, {"embeds": ["b"]}],
            "",
            {"embeds": ["a", "b"]},
            {"embeds": ["a", "b"]},
        ),
        (
            Effect.APPEND_EMBEDS,
            [{"embeds": ["a"]}, {"embeds": ["b"], "replace": True}],
            "",
            {"embeds": ["b"]},
            {"embeds": ["b"], "replace": True},
        ),
        (
            Effect.APPEND_FILES,
            [{"files": [1]}, {"files": [2], "replace": True}],
            "",
            {"files": [1, 2]},
            {"files": [1, 2], "replace": True},
        ),
    ],
)
async def test_what_is_stored_and_what_is_told(
    effect: Effect, sent: list[Any], content: str, items: dict[str, Any], told: Any
) -> None:
    state = make_state()
    effects = StoredEffects(MemoryEffects(state))
    heard = [await effects.apply(TARGET, effect, data) for data in sent]
    message = state.messages["c1"]["m1"]
    assert (message.content, message.items) == (content, items)
    assert heard[-1] == told


@pytest.mark.parametrize("effect", list(Effect))
async def test_a_message_that_is_not_there_changes_nothing(effect: Effect) -> None:
    state = make_state()
    data = {"content": "a", "files": [1], "embeds": [1], "replace": True}
    effects = StoredEffects(MemoryEffects(state))
    assert await effects.apply(EventTarget("ann", "c1", "other"), effect, data) == data
    assert list(state.messages["c1"]) == ["m1"]
    assert state.messages["c1"]["m1"].items == {}
