import os
from pathlib import Path

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.messages import AnswerLimits, unpack_answer
from gatewayd.extract.reader_process import ReaderProcess
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import WorkerOptions

LIMITS = AnswerLimits(1000, 100)
OPTIONS = {"text": 1000, "size": 100, "overlap": 0, "tokens": 50, "seconds": 60, "sandbox": "require"}
CHILD = WorkerOptions("gatewayd.extract.child", (orjson.dumps(OPTIONS).decode(),))
ASKED = {"name": "x", "content_type": None}


async def test_a_process_finds_the_one_document_in_its_folder_and_nothing_else(tmp_path: Path) -> None:
    tasks = TaskRegistry()
    document, parent = tmp_path / "blob", tmp_path / "files" / "incoming"
    document.write_bytes(b"words")
    reader = await ReaderProcess.start(parent, CHILD, tasks)
    assert unpack_answer(*await reader.ask(document, ASKED), LIMITS).text == "words\n"
    assert list(reader.folder.iterdir()) == []
    assert document.read_bytes() == b"words"
    with pytest.raises(GatewayError) as caught:
        await reader.worker.call({**ASKED, "path": str(document)})
    assert (caught.value.kind, caught.value.message) == (
        ErrorKind.UNAVAILABLE,
        "cannot read the file: Permission denied",
    )
    with pytest.raises(GatewayError) as caught:
        await reader.ask(tmp_path / "nothing", ASKED)
    assert caught.value.message == "cannot read the file: No such file or directory"
    await reader.close()
    assert list(parent.iterdir()) == []
    await tasks.close()


async def test_where_a_file_cannot_have_two_names_it_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refuse)
    tasks = TaskRegistry()
    document = tmp_path / "blob"
    document.write_bytes(b"words")
    reader = await ReaderProcess.start(tmp_path / "incoming", CHILD, tasks)
    assert unpack_answer(*await reader.ask(document, ASKED), LIMITS).text == "words\n"
    assert list(reader.folder.iterdir()) == []
    await reader.close()
    await tasks.close()


async def test_no_process_is_left_without_a_folder_and_no_folder_without_a_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(GatewayError) as caught:
        await ReaderProcess.start(tmp_path / "file" / "incoming", CHILD, TaskRegistry())
    assert caught.value.kind is ErrorKind.UNAVAILABLE
