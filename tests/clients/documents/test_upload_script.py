"""The script that everybody writes: upload, wait, add to a collection, ask."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients.documents.conftest import FILES, KNOWLEDGE, SECONDS, Collections, Script
from tests.clients.scene import Scene
from tests.fakes.documents.makers import SENTENCE, pdf

QUESTION = "Where does the blue heron stand?"


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "heron.pdf"
    path.write_bytes(pdf([f"{SENTENCE} It was seen from {tmp_path.name}."]))
    return path


def test_upload_poll_add_and_ask(
    scene: Scene, script: Script, new_collection: Collections, document: Path
) -> None:
    record = script.upload(document)
    assert record["filename"] == "heron.pdf"
    assert record["data"]["status"] == "pending"
    assert script.processed(record["id"]) == {"status": "completed"}
    collection = new_collection()
    added = script.post(f"{KNOWLEDGE}/{collection}/file/add", {"file_id": record["id"]})
    assert [file["id"] for file in added["files"]] == [record["id"]]
    # Added again, as a script does that is run again.
    script.post(f"{KNOWLEDGE}/{collection}/file/add", {"file_id": record["id"]})
    for reference in (
        {"type": "file", "id": record["id"]},
        {"type": "collection", "id": collection},
        # Scripts of old send more than is needed.
        {"type": "collection", "id": collection, "status": "processed", "name": "Shelf", "legacy": False},
    ):
        body = {
            "model": "o.m",
            "messages": [{"role": "user", "content": QUESTION}],
            "files": [reference],
        }
        answer = script.post("/api/chat/completions", body)
        assert answer["choices"][0]["message"]["content"] == "Hello from m"
        assert SENTENCE in answer["sources"][0]["document"][0]
        assert SENTENCE in str(scene.provider.last().json["messages"])


def test_the_status_as_a_stream(script: Script, document: Path) -> None:
    record = script.upload(document)
    seen: list[Any] = []
    with script.session.get(
        f"{script.url}{FILES}{record['id']}/process/status",
        params={"stream": "true"},
        stream=True,
        timeout=SECONDS,
    ) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        for line in reply.iter_lines():
            if line.startswith(b"data: "):
                seen.append(json.loads(line.removeprefix(b"data: ")))
                if seen[-1]["status"] in {"completed", "failed"}:
                    break
    assert seen[-1] == {"status": "completed"}


def test_a_failure_in_both_forms_of_the_status(script: Script, tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    path.write_bytes(pdf(password="heron"))
    record = script.upload(path)
    status = script.processed(record["id"])
    assert status["status"] == "failed"
    assert "encrypted" in status.get("error")
    reply = script.session.get(
        f"{script.url}{FILES}{record['id']}/process/status?stream=true", timeout=SECONDS
    )
    (line,) = [line for line in reply.text.splitlines() if line.startswith("data: ")]
    assert json.loads(line.removeprefix("data: ")) == status


@pytest.mark.parametrize(("make", "status"), [(pdf, "completed"), (bytes, "failed")])
def test_an_upload_that_waits(script: Script, tmp_path: Path, make: Any, status: str) -> None:
    path = tmp_path / "heron.pdf"
    path.write_bytes(make())
    record = script.upload(path, process_in_background="false")
    assert record["data"]["status"] == status
    assert script.get(f"{FILES}{record['id']}/process/status")["status"] == status
    assert ("error" in record["data"]) == (status == "failed")


def test_adding_too_early_says_so_and_harms_nothing(
    script: Script, new_collection: Collections, document: Path
) -> None:
    record = script.upload(document, process="false")
    collection = new_collection()
    reply = script.session.post(
        f"{script.url}{KNOWLEDGE}/{collection}/file/add", json={"file_id": record["id"]}, timeout=SECONDS
    )
    assert reply.status_code == 400
    assert "empty" in reply.json()["detail"]
    script.post("/api/v1/retrieval/process/file", {"file_id": record["id"]})
    script.post(f"{KNOWLEDGE}/{collection}/file/add", {"file_id": record["id"], "wait": 60})


def test_an_unknown_file_is_404(script: Script) -> None:
    for path in ("no-such-file", "no-such-file/process/status"):
        assert script.session.get(f"{script.url}{FILES}{path}", timeout=SECONDS).status_code == 404


def test_without_the_last_stroke_no_redirect_loses_the_form(script: Script, document: Path) -> None:
    with document.open("rb") as file:
        reply = script.session.post(
            script.url + FILES.rstrip("/"), files={"file": file}, allow_redirects=False, timeout=SECONDS
        )
    assert reply.status_code == 200
    assert reply.json()["filename"] == "heron.pdf"


def test_twice_the_same_text(script: Script, new_collection: Collections, document: Path) -> None:
    first, second = (script.upload(document, process_in_background="false")["id"] for _ in range(2))
    collection = new_collection()
    script.post(f"{KNOWLEDGE}/{collection}/file/add", {"file_id": first})
    reply = script.session.post(
        f"{script.url}{KNOWLEDGE}/{collection}/file/add", json={"file_id": second}, timeout=SECONDS
    )
    assert reply.status_code == 400
    assert "duplicate content" in reply.json()["detail"].lower()
    # The file itself is as it was, and another collection takes it.
    assert script.get(f"{FILES}{second}/process/status") == {"status": "completed"}
    script.post(f"{KNOWLEDGE}/{new_collection()}/file/add", {"file_id": second})


def test_a_key_is_needed(scene: Scene, document: Path) -> None:
    with document.open("rb") as file:
        reply = requests.post(scene.url + FILES, files={"file": file}, timeout=SECONDS)
    assert reply.status_code == 401
