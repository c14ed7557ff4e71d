"""Chats that a program keeps by itself, as scripts do it: make one, ask, wait, read, go on, delete."""

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import openai
import pytest
import requests

from tests.fakes.living import House, opened_house
from tests.fakes.upstream import (
    SILENCE,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

DEADLINE = 20.0
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
    "weather": '''"""
title: Weather
"""


class Tools:
    async def weather(self, city: str) -> str:
        """Tell the weather.
        :param city: where
        """
        return f"it rains in {city}"
''',
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened_house(tmp_path_factory.mktemp("h"), pipes=PIPES) as opened:
        everybody = {"access_grants": [{"principal_type": "user", "principal_id": "*", "permission": "read"}]}
        opened.ok("POST", "/api/v1/tools/id/weather/access/update", everybody, opened.admin)
        yield opened


@pytest.fixture(autouse=True)
def well(house: House) -> Iterator[None]:
    house.provider.script()
    yield
    house.provider.release()
    house.assert_well()


class Script:
    """What a script has: an address, a key, and requests."""

    def __init__(self, house: House) -> None:
        self.base = house.daemon.base_url
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {house.ann.key}"

    def get(self, path: str) -> Any:
        reply = self.session.get(self.base + path, timeout=30)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        reply = self.session.post(self.base + path, json=body, timeout=30)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def message(self, chat_id: str, message_id: str) -> Any:
        return self.get(f"/api/v1/chats/{chat_id}")["chat"]["history"]["messages"][message_id]

    def wait_for_content(self, chat_id: str, message_id: str) -> Any:
        """Rule (a): wait until the message has content, which is then whole."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            message = self.message(chat_id, message_id)
            if message["content"]:
                return message
            time.sleep(0.01)
        raise AssertionError("no content came")

    def wait_for_tasks(self, chat_id: str, message_id: str) -> Any:
        """Rule (b): wait until nothing runs for the chat."""
        deadline = time.monotonic() + DEADLINE
        while self.get(f"/api/tasks/chat/{chat_id}")["task_ids"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self.message(chat_id, message_id)

    def delete(self, chat_id: str) -> Any:
        reply = self.session.delete(f"{self.base}/api/v1/chats/{chat_id}", timeout=30)
        return reply.status_code, reply.json()


@pytest.fixture
def script(house: House) -> Iterator[Script]:
    made = Script(house)
    with made.session:
        yield made


def now() -> int:
    return int(time.time())


def user_message(message_id: str, text: str, model: str, parent: str | None = None) -> dict[str, Any]:
    return {
        "id": message_id,
        "parentId": parent,
        "childrenIds": [],
        "role": "user",
        "content": text,
        "timestamp": now(),
        "models": [model],
    }


def empty_answer(message_id: str, parent: str, model: str) -> dict[str, Any]:
    return {
        "id": message_id,
        "parentId": parent,
        "childrenIds": [],
        "role": "assistant",
        "content": "",
        "model": model,
        "modelName": model,
        "modelIdx": 0,
        "timestamp": now(),
        "done": False,
    }


def new_chat(script: Script, text: str, model: str) -> tuple[str, str, str]:
    """Step 1: return the ids of the chat, the question and the answer."""
    question, answer = str(uuid.uuid4()), str(uuid.uuid4())
    asked, told = user_message(question, text, model), empty_answer(answer, question, model)
    asked["childrenIds"] = [answer]
    record = script.post(
        "/api/v1/chats/new",
        {
            "chat": {
                "title": "New Chat",
                "models": [model],
                "messages": [asked, told],
                "history": {"currentId": answer, "messages": {question: asked, answer: told}},
            }
        },
    )
    assert record["title"] == "New Chat"
    return record["id"], question, answer


def asked(chat_id: str, answer: str, model: str, messages: Any, **fields: Any) -> dict[str, Any]:
    """Step 2: the request as the recipe has it."""
    return {
        "chat_id": chat_id,
        "id": answer,
        "messages": messages,
        "model": model,
        "stream": True,
        "background_tasks": {
            "title_generation": False,
            "tags_generation": False,
            "follow_up_generation": False,
        },
        "features": {
            "code_interpreter": False,
            "web_search": False,
            "image_generation": False,
            "memory": False,
        },
        "variables": {"{{USER_NAME}}": "", "{{USER_LANGUAGE}}": "en-US", "{{CURRENT_DATETIME}}": ""},
        "session_id": f"api-{uuid.uuid4()}",
        **fields,
    }


def says(*texts: str) -> list[dict[str, str]]:
    """Return a conversation that begins with the user."""
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


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


# The tool prompt -----------------------------------------------------------------------------------------


def choose_the_weather() -> Reply:
    return json_reply(
        openai_completion('{"tool_calls": [{"name": "weather", "parameters": {"city": "Ulm"}}]}')
    )


@pytest.mark.parametrize("mode", ["legacy", "default"])
def test_tools_by_prompt_without_a_chat(script: Script, house: House, mode: str) -> None:
    house.provider.script(choose_the_weather(), json_reply(openai_completion("Take an umbrella.")))
    body = {
        "model": "o.m",
        "messages": says("Weather in Ulm?"),
        "stream": False,
        "tool_ids": ["weather"],
        "params": {"function_calling": mode},
    }
    answer = script.post("/api/chat/completions", body)
    assert answer["choices"][0]["message"]["content"] == "Take an umbrella."
    (source,) = answer["sources"]
    assert source["document"] == ["it rains in Ulm"]
    assert source["source"]["name"] == "weather/weather"
    assert "it rains in Ulm" in str(house.provider.last().json["messages"])


def test_tools_by_prompt_in_a_chat(script: Script, house: House) -> None:
    house.provider.script(choose_the_weather(), Reply(steps=openai_stream(["Take ", "an umbrella."])))
    chat_id, _, answer = new_chat(script, "Weather in Ulm?", "o.m")
    params = {"function_calling": "legacy"}
    script.post(
        "/api/chat/completions",
        asked(chat_id, answer, "o.m", says("Weather in Ulm?"), params=params, tool_ids=["weather"]),
    )
    message = script.wait_for_content(chat_id, answer)
    assert message["content"] == "Take an umbrella."
    assert [source["document"] for source in message["sources"]] == [["it rains in Ulm"]]


def test_tools_of_the_gateway_are_called_in_a_chat(script: Script, house: House) -> None:
    function = {"name": "weather", "arguments": '{"city": "Ulm"}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    calling = [
        sse(openai_chunk(tool_calls=[call])),
        sse(openai_chunk(finish_reason="tool_calls")),
        sse(b"[DONE]"),
    ]
    house.provider.script(Reply(steps=calling), Reply(steps=openai_stream(["Take an umbrella."])))
    chat_id, _, answer = new_chat(script, "Weather in Ulm?", "o.m")
    script.post(
        "/api/chat/completions",
        asked(chat_id, answer, "o.m", says("Weather in Ulm?"), tool_ids=["weather"]),
    )
    message = script.wait_for_tasks(chat_id, answer)
    assert message["content"].endswith("Take an umbrella.")
    kinds = [item["type"] for item in message["output"]]
    assert kinds == ["function_call", "function_call_output", "message"]
    told = [item for item in house.provider.last().json["messages"] if item["role"] == "tool"]
    assert [item["content"] for item in told] == ["it rains in Ulm"]


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
