"""A script that keeps chats by itself, and the requests that it sends."""

import time
import uuid
from collections.abc import Mapping
from typing import Any

import requests

from tests.fakes.daemons.chat_site import House

DEADLINE = 30.0


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
