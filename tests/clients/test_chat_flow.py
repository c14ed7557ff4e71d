"""Chats that a program keeps by itself, as scripts do it: make one, ask, wait, read, go on, delete."""

import uuid
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.clients.script import Script, asked, empty_answer, new_chat, says, user_message
from tests.fakes.daemons.chat_site import House, opened_house
from tests.fakes.providers.upstream import (
    SILENCE,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

PIPES = {
    "reply": '''"""
title: Reply
"""


class Pipe:
    async def pipe(self, body, __event_emitter__):
        """Tell where it looks, and answer with a source."""
        await __event_emitter__({"type": "status", "data": {"description": "looking", "done": True}})
        source = {"source": {"name": "a book"}, "document": ["text"], "metadata": [{"source": "a book"}]}
        await __event_emitter__({"type": "source", "data": source})
        said = [item["content"] for item in body["messages"] if item["role"] == "user"]
        return "You said: " + " / ".join(said)
''',
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened_house(tmp_path_factory.mktemp("h"), pipes=PIPES) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(house: House) -> Iterator[None]:
    house.provider.script()
    yield
    house.provider.release()
    house.assert_well()


@pytest.fixture
def script(house: House) -> Iterator[Script]:
    made = Script(house)
    with made.session:
        yield made


WAITS = {"content": Script.wait_for_content, "tasks": Script.wait_for_tasks}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("model", ["reply", "o.m"])
def test_the_recipe(script: Script, house: House, wait: Any, model: str) -> None:
    chat_id, question, answer = new_chat(script, "Hi", model)
    begun = script.post("/api/chat/completions", asked(chat_id, answer, model, says("Hi")))
    assert begun["status"] is True
    assert begun["task_ids"] == [begun["task_id"]]
    assert begun["chat_id"] == chat_id
    message = wait(script, chat_id, answer)
    expected = "You said: Hi" if model == "reply" else "Hello from m"
    assert message["content"] == expected
    assert (message["parentId"], message["childrenIds"], message["role"]) == (question, [], "assistant")
    assert message["output"][0]["content"][0]["text"] == expected
    if model == "reply":
        assert [source["source"]["name"] for source in message["sources"]] == ["a book"]
        assert [status["description"] for status in message["statusHistory"]] == ["looking"]
    # A further turn: the client names only what is new, and a node of which only the children change.
    next_question, next_answer = str(uuid.uuid4()), str(uuid.uuid4())
    nodes = {
        answer: {"childrenIds": [next_question]},
        next_question: {**user_message(next_question, "More", model, answer), "childrenIds": [next_answer]},
        next_answer: empty_answer(next_answer, next_question, model),
    }
    changed = script.post(
        f"/api/v1/chats/{chat_id}", {"chat": {"history": {"currentId": next_answer, "messages": nodes}}}
    )
    history = changed["chat"]["history"]
    assert history["currentId"] == next_answer
    assert history["messages"][answer]["content"] == expected
    assert history["messages"][answer]["childrenIds"] == [next_question]
    assert history["messages"][question]["content"] == "Hi"
    script.post("/api/chat/completions", asked(chat_id, next_answer, model, says("Hi", expected, "More")))
    second = wait(script, chat_id, next_answer)
    assert second["content"] == ("You said: Hi / More" if model == "reply" else "Hello from m")
    assert second["parentId"] == next_question
    record = script.get(f"/api/v1/chats/{chat_id}")
    assert [item["id"] for item in record["chat"]["messages"]] == [
        question,
        answer,
        next_question,
        next_answer,
    ]
    assert record["title"] == "New Chat"
    assert script.delete(chat_id) == (200, True)
    assert script.delete(chat_id)[0] == 404


def test_the_smallest_script(script: Script) -> None:
    question, answer = str(uuid.uuid4()), str(uuid.uuid4())
    messages = [
        {"id": question, "role": "user", "content": "Hi"},
        {"id": answer, "role": "assistant", "content": "", "parentId": question},
    ]
    history = {"current_id": answer, "currentId": answer, "messages": {item["id"]: item for item in messages}}
    chat = {"title": "T", "models": ["reply"], "messages": messages, "history": history}
    chat_id = script.post("/api/v1/chats/new", {"chat": chat})["id"]
    body = {"model": "reply", "messages": says("Hi"), "chat_id": chat_id, "id": answer, "session_id": "s"}
    assert script.post("/api/chat/completions", body)["status"] is True
    assert script.wait_for_content(chat_id, answer)["content"] == "You said: Hi"


def test_both_rules_hold_at_every_moment(script: Script, house: House) -> None:
    first, rest = sse(openai_chunk(content="Hello")), b"".join(openai_stream([" there"]))
    house.provider.script(Reply(steps=[first, SILENCE, rest]))
    chat_id, _, answer = new_chat(script, "Hi", "o.m")
    begun = script.post("/api/chat/completions", asked(chat_id, answer, "o.m", says("Hi")))
    # (b) The task is there as soon as the reply is, and (a) nothing half is shown.
    assert script.get(f"/api/tasks/chat/{chat_id}")["task_ids"] == begun["task_ids"]
    house.provider.wait_silent()
    message = script.message(chat_id, answer)
    assert (message["content"], message["done"]) == ("", False)
    house.provider.release()
    assert script.wait_for_tasks(chat_id, answer)["content"] == "Hello there"


def test_what_is_made_in_the_background_is_waited_for_too(script: Script, house: House) -> None:
    house.provider.script(
        Reply(steps=openai_stream(["Hello"])),
        json_reply(openai_completion('{"follow_ups": ["And then?"]}')),
        json_reply(openai_completion('{"title": "Greetings"}')),
        json_reply(openai_completion('{"tags": ["greeting"]}')),
    )
    chat_id, _, answer = new_chat(script, "Hi", "o.m")
    background = dict.fromkeys(("title_generation", "tags_generation", "follow_up_generation"), True)
    script.post(
        "/api/chat/completions", asked(chat_id, answer, "o.m", says("Hi"), background_tasks=background)
    )
    message = script.wait_for_tasks(chat_id, answer)
    assert message["followUps"] == ["And then?"]
    record = script.get(f"/api/v1/chats/{chat_id}")
    assert (record["title"], record["chat"]["title"]) == ("Greetings", "Greetings")
    assert record["meta"]["tags"] == ["greeting"]


def test_usage_is_kept(script: Script, house: House) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    last = {**openai_chunk(finish_reason="stop"), "usage": usage}
    house.provider.script(Reply(steps=[sse(openai_chunk(content="Hello")), sse(last), sse(b"[DONE]")]))
    chat_id, _, answer = new_chat(script, "Hi", "o.m")
    script.post("/api/chat/completions", asked(chat_id, answer, "o.m", says("Hi")))
    message = script.wait_for_tasks(chat_id, answer)
    assert {name: message["usage"][name] for name in usage} == usage


def test_a_failure_ends_the_wait_and_is_told(script: Script, house: House) -> None:
    house.provider.script(json_reply({"error": {"message": "no more credit"}}, 402))
    chat_id, _, answer = new_chat(script, "Hi", "o.m")
    script.post("/api/chat/completions", asked(chat_id, answer, "o.m", says("Hi")))
    message = script.wait_for_tasks(chat_id, answer)
    assert (message["content"], message["done"]) == ("", True)
    assert "no more credit" in message["error"]["content"]


# Without a session ---------------------------------------------------------------------------------------


def test_who_waits_gets_the_answer_and_it_is_kept(script: Script) -> None:
    chat_id, question, answer = new_chat(script, "Hi", "reply")
    body = asked(chat_id, answer, "reply", says("Hi"), stream=False)
    del body["session_id"]
    told = script.post("/api/chat/completions", body)
    assert told["choices"][0]["message"]["content"] == "You said: Hi"
    message = script.wait_for_tasks(chat_id, answer)
    assert (message["content"], message["done"], message["parentId"]) == ("You said: Hi", True, question)
    # Scripts that do not read the body wait by either rule all the same.
    assert script.wait_for_content(chat_id, answer) == message


def test_the_sdk_streams_and_it_is_kept(script: Script, house: House) -> None:
    chat_id, question, answer = new_chat(script, "Hi", "o.m")
    with openai.OpenAI(base_url=f"{script.base}/api", api_key=house.ann.key, max_retries=0) as client:
        extra = {"chat_id": chat_id, "id": answer}
        with client.chat.completions.create(
            model="o.m", messages=[{"role": "user", "content": "Hi"}], stream=True, extra_body=extra
        ) as stream:
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        assert text == "Hello from m"
        message = script.wait_for_tasks(chat_id, answer)
        assert (message["content"], message["done"], message["parentId"]) == (text, True, question)
        # What the gateway is told of the chat is not the provider's business.
        assert not {"chat_id", "id", "session_id"} & house.provider.last().json.keys()
        whole = client.chat.completions.create(
            model="reply", messages=[{"role": "user", "content": "Again"}], extra_body=extra
        )
        assert whole.choices[0].message.content == "You said: Again"
    assert script.wait_for_tasks(chat_id, answer)["content"] == "You said: Again"


def test_a_chat_that_is_not_there(script: Script, house: House) -> None:
    body = asked(str(uuid.uuid4()), str(uuid.uuid4()), "reply", says("Hi"))
    reply = script.session.post(f"{script.base}/api/chat/completions", json=body, timeout=30)
    assert reply.status_code == 404
    # Old scripts send ids that they made up, and only want an answer.
    del body["session_id"]
    assert script.post("/api/chat/completions", {**body, "stream": False})["object"] == "chat.completion"
    # A foreign chat is as if it were not there, to everybody who asks.
    foreign = house.begin("reply", who=house.bob)
    for fields in ({}, {"session_id": ""}):
        body = {**asked(foreign.chat_id, foreign.answer, "reply", says("Hi")), **fields}
        reply = script.session.post(f"{script.base}/api/chat/completions", json=body, timeout=30)
        assert reply.status_code == 404
    assert house.message(foreign, house.bob)["content"] == ""
