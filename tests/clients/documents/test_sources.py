"""One question about documents through every client: the same sources, and the same context for the model."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients.askers import Clients
from tests.clients.documents.conftest import KNOWLEDGE, SECONDS, Collections, Script
from tests.clients.scene import PREFIXES, Scene
from tests.fakes.documents.makers import pdf

QUESTION = "When does the ferry leave the harbour?"
FERRY = "The ferry leaves the harbour at nine."
NOTE = "In winter the ferry rests."
Source = Mapping[str, Any]
Ask = Callable[[Clients, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Shelf:
    """A collection of two files, of which one has two pages."""

    collection: str
    guide: str
    note: str

    def references(self, kind: str) -> list[dict[str, str]]:
        """Return what a request says in `files`."""
        if kind == "collection":
            return [{"type": "collection", "id": self.collection}]
        return [{"type": "file", "id": self.guide}, {"type": "file", "id": self.note}]


@pytest.fixture(scope="module")
def shelf(script: Script, new_collection: Collections, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder: Path = tmp_path_factory.mktemp("d")
    (folder / "guide.pdf").write_bytes(pdf(["The lighthouse is white.", FERRY]))
    (folder / "note.txt").write_text(NOTE)
    ids = [
        script.upload(folder / name, process_in_background="false")["id"]
        for name in ("guide.pdf", "note.txt")
    ]
    collection = new_collection()
    for file_id in ids:
        script.post(f"{KNOWLEDGE}/{collection}/file/add", {"file_id": file_id})
    return Shelf(collection, *ids)


def chats(clients: Clients, more: Mapping[str, Any]) -> Any:
    answer = clients.openai.chat.completions.create(**_request(), extra_body=dict(more))
    return answer.to_dict().get("sources")


def streamed_chats(clients: Clients, more: Mapping[str, Any]) -> Any:
    first = None
    with clients.openai.chat.completions.create(**_request(), stream=True, extra_body=dict(more)) as parts:
        for part in parts:
            first = first or part
    assert first is not None
    sources = first.to_dict().get("sources")
    assert not (sources and first.choices)
    return sources


def messages(clients: Clients, more: Mapping[str, Any]) -> Any:
    answer = clients.anthropic.messages.create(**_request(), max_tokens=9, extra_body=dict(more))
    return answer.to_dict().get("sources")


def streamed_messages(clients: Clients, more: Mapping[str, Any]) -> Any:
    with clients.anthropic.messages.create(
        **_request(), max_tokens=9, stream=True, extra_body=dict(more)
    ) as events:
        (started,) = [event.to_dict() for event in events if event.type == "message_start"]
    return started["message"].get("sources")


def runtime(clients: Clients, more: Mapping[str, Any]) -> Any:
    return _lines(clients, {**_request(), **more, "stream": False})[0].get("sources")


def streamed_runtime(clients: Clients, more: Mapping[str, Any]) -> Any:
    first, *rest = _lines(clients, {**_request(), **more, "stream": True})
    assert rest
    assert not any("sources" in line for line in rest)
    return first.get("sources")


def _lines(clients: Clients, body: Mapping[str, Any]) -> list[Any]:
    """Ask at the runtime's address: its client has no way to send a field that it does not know."""
    reply = requests.post(
        f"{clients.url}/ollama/api/chat",
        json=body,
        headers={"Authorization": f"Bearer {clients.key}"},
        timeout=SECONDS,
    )
    assert reply.status_code == 200, reply.text
    return [json.loads(line) for line in reply.iter_lines() if line]


def _request() -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}]}


MODEL = PREFIXES["openai"] + "m"
ASKS: Mapping[str, Ask] = {
    "openai": chats,
    "openai-streamed": streamed_chats,
    "anthropic": messages,
    "anthropic-streamed": streamed_messages,
    "ollama": runtime,
    "ollama-streamed": streamed_runtime,
}


@pytest.mark.parametrize("kind", ["file", "collection"])
def test_every_client_gets_the_same_sources(scene: Scene, clients: Clients, shelf: Shelf, kind: str) -> None:
    seen, told = {}, {}
    for name, ask in ASKS.items():
        scene.provider.script()
        seen[name] = ask(clients, {"files": shelf.references(kind)})
        told[name] = scene.provider.last().json["messages"]
    check(seen["openai"], shelf, kind)
    assert all(sources == seen["openai"] for sources in seen.values()), seen
    assert all(_text(said) == _text(told["openai"]) for said in told.values()), told
    context = _text(told["openai"])
    assert f">{FERRY}</source>" in " ".join(context.split())
    assert context.endswith(QUESTION)


def check(sources: Sequence[Source], shelf: Shelf, kind: str) -> None:
    """Look at the sources themselves: one for each reference, best passage first, with its page."""
    wanted = [shelf.collection] if kind == "collection" else [shelf.guide, shelf.note]
    assert [source["source"]["id"] for source in sources] == wanted
    best = sources[0]
    assert best["document"][0].strip() == FERRY
    assert (best["metadata"][0]["file_id"], best["metadata"][0]["page"]) == (shelf.guide, 1)
    assert best["distances"] == sorted(best["distances"], reverse=True)
    names = {metadata["name"] for source in sources for metadata in source["metadata"]}
    assert names == {"guide.pdf", "note.txt"}


def _text(said: Any) -> str:
    """Return the question as the provider got it, whether as text or in blocks."""
    content = said[-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize("name", ASKS)
def test_without_a_document_there_are_no_sources(clients: Clients, name: str) -> None:
    assert ASKS[name](clients, {"files": [{"type": "file", "id": "gone"}]}) is None


def test_what_cannot_be_used_is_said(scene: Scene) -> None:
    reply = requests.post(
        f"{scene.url}/api/chat/completions",
        json={**_request(), "files": [{"type": "file", "id": "gone"}]},
        headers={"Authorization": f"Bearer {scene.key}"},
        timeout=SECONDS,
    )
    assert reply.status_code == 200
    assert "'gone'" in reply.headers["X-Gateway-Warning"]
