from gatewayd.plugins.open_webui.modules import templates as t


def test_a_chunk() -> None:
    chunk = t.openai_chat_chunk_message_template("small", "hi", usage={"total_tokens": 1})
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["model"] == "small"
    assert chunk["id"].startswith("small-")
    assert chunk["choices"] == [
        {"index": 0, "logprobs": None, "finish_reason": None, "delta": {"content": "hi"}}
    ]
    assert chunk["usage"] == {"total_tokens": 1}


def test_the_last_chunk_is_without_text() -> None:
    choice = t.openai_chat_chunk_message_template("small")["choices"][0]
    assert (choice["delta"], choice["finish_reason"]) == ({}, "stop")


def test_reasoning_and_calls() -> None:
    calls = [{"id": "t1"}]
    choice = t.openai_chat_chunk_message_template("small", None, "hm", calls)["choices"][0]
    assert choice["delta"] == {"reasoning_content": "hm", "tool_calls": calls}
    whole = t.openai_chat_completion_message_template("small", "", "hm", calls, {"total_tokens": 2})
    assert whole["choices"][0]["message"] == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "hm",
        "tool_calls": calls,
    }
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    assert whole["usage"] == {"total_tokens": 2}


def test_a_completion() -> None:
    whole = t.openai_chat_completion_message_template("small", "hi")
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "hi"}
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert "usage" not in whole
    assert isinstance(t.openai_chat_message_template("small")["created"], int)
