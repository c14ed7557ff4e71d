from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.build import build
from gatewayd.vectors.models.catalogue import MINILM
from gatewayd.workers import WorkerOptions, WorkerProcess


async def test_the_process_makes_a_model_ready_and_says_where(tmp_path: Path, tasks: TaskRegistry) -> None:
    worker = await WorkerProcess.start(WorkerOptions("gatewayd.vectors.models.build"), tasks)
    answer, _ = await worker.call({"state": str(tmp_path), "model": "minilm"})
    with pytest.raises(GatewayError, match="'nope'") as refusal:
        await worker.call({"state": str(tmp_path), "model": "nope"})
    await worker.close()
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED
    assert catalogue.is_ready(Path(answer["folder"]), MINILM)


def test_a_damaged_model_is_built_again(minilm: Path, tmp_path: Path) -> None:
    folder = build(tmp_path, MINILM)
    graph = folder / catalogue.GRAPH_FILE
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    assert not catalogue.is_ready(folder, MINILM)
    build(tmp_path, MINILM)
    assert graph.read_bytes() == (minilm / catalogue.GRAPH_FILE).read_bytes()


def test_a_state_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").write_bytes(b"a file")
    with pytest.raises(GatewayError, match="cannot write the embedding model 'minilm' to") as failure:
        build(tmp_path, MINILM)
    assert failure.value.kind is ErrorKind.INTERNAL
