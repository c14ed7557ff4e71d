"""Which reasoning goes back with the messages of a request."""

from typing import Any

import pytest

from gatewayd.completions.reasoning_history import ReasoningHistory, is_answer
from gatewayd.completions.reasoning_memory import (
    KeptCall,
    KeptReasoning,
    ReasoningMemory,
    call_key,
    content_key,
    text_key,
)

EXTRA = {"extra_content": {"google": {"thought_signature": "S"}}}
DETAILS = {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}]}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}
Message = dict[str, Any]


def said(text: str | None = "a", *ids: str, **more: Any) -> Message:
    calls = [
        {"id": each, "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}} for each in ids
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {}), **more}


def remembering(origin: str) -> ReasoningMemory:
    memory = ReasoningMemory()
    key = content_key("f", '{"a": 1}')
    kept = KeptReasoning(origin, "hm", DETAILS, (KeptCall("c1", key, EXTRA),))
    memory.put("ann", [call_key("c1", key), text_key("hm"), key], kept)
    return memory


def restored(
    message: Message, origin: str = "mine", *, made_by: str = "mine", user: str = "ann", **how: Any
) -> Message:
    history = ReasoningHistory(remembering(made_by), user, origin, **how)
    return history.restore(message) if is_answer(message) and history.concerns(message) else message


def test_the_maker_gets_back_what_the_client_dropped():
    message = restored(said(None, "c1"))
    assert message == {
        **said(None, "c1"),
        **DETAILS,
        "reasoning_content": "hm",
        "tool_calls": [{**said(None, "c1")["tool_calls"][0], **EXTRA}],
    }
    assert restored(said("a", reasoning_content="hm")) == said("a", reasoning_content="hm", **DETAILS)


def test_what_the_client_sent_stays():
    message = said(None, "c1", reasoning="changed", reasoning_details=[])
    message["tool_calls"][0]["extra_content"] = {"own": 1}
    assert restored(message) == message


def test_calls_without_their_ids():
    """Clients of the Ollama dialect drop the ids; the gateway numbers the calls."""
    assert restored(said(None, "call00001"))["reasoning_content"] == "hm"
    assert restored(said(None, "toolu_1")) == said(None, "toolu_1")


@pytest.mark.parametrize(
    "message",
    [
        said(None, "c1", reasoning_content="hm", thinking_blocks=[SIGNED]),
        said("a", reasoning="hm"),
        said("a", **DETAILS),
        said([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]),  # type: ignore[arg-type]
    ],
)
def test_others_get_nothing(message):
    found = restored(message, "other")
    assert found.keys() <= {"role", "content", "tool_calls"}
    assert "hm" not in str(found)
    message["tool_calls"] = [{**call, **EXTRA} for call in message.get("tool_calls", ())]
    found = restored(message, "other")
    assert all("extra_content" not in call for call in found.get("tool_calls", ()))


def test_another_user_gets_nothing():
    assert restored(said(None, "c1"), user="bob") == said(None, "c1")


def test_unknown_reasoning():
    """The client of a provider's own protocol knows where it goes; one of another protocol does not."""
    message = said("a", reasoning_content="what?")
    assert restored(message) is message
    assert restored(message, is_converted=True) == said("a")
    signed = said("a", thinking_blocks=[SIGNED], reasoning_content="what?")
    assert ReasoningHistory(ReasoningMemory(), "ann", "x", is_converted=True).restore(signed) == said(
        "a", thinking_blocks=[SIGNED]
    )


def test_marks():
    marked = said("a", reasoning_content="what?", reasoning_origin="mine")
    assert restored(marked, is_converted=True) == said("a", reasoning_content="what?")
    assert restored(marked, "other", is_converted=True) == said("a")


def test_an_entry_is_used_once():
    """A request cannot grow by naming one call many times."""
    history = ReasoningHistory(remembering("mine"), "ann", "mine")
    first, second = (history.restore(said(None, "c1")) for _ in range(2))
    assert "reasoning_content" in first
    assert second == said(None, "c1")


def test_calls_of_one_id():
    """Some providers number the calls of each answer anew: the newest answer made the last message."""
    memory, key = ReasoningMemory(), content_key("f", '{"a": 1}')
    for text in ("older", "newer"):
        memory.put("ann", [call_key("f:0", key)], KeptReasoning("mine", text, {}, (KeptCall("f:0", key),)))
    history = ReasoningHistory(memory, "ann", "mine")
    assert [history.restore(said(None, "f:0"))["reasoning_content"] for _ in range(2)] == ["newer", "older"]


@pytest.mark.parametrize(
    "message",
    [
        None,
        "text",
        {"role": "user", "content": "a", "reasoning_content": "x"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "tool_calls": [None, 7, {}, {"id": 5, "function": []}]},
        {
            "role": "assistant",
            "tool_calls": {"id": "c1"},
            "reasoning_details": "x",
            "thinking_blocks": [None],
        },
        {"role": "assistant", "content": [None], "reasoning_content": 7, "reasoning_origin": []},
    ],
)
@pytest.mark.parametrize("origin", ["mine", "other"])
def test_malformed(message, origin):
    restored(message, origin)
