from pathlib import Path

import numpy as np
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.vectors.models import fastembed_models
from gatewayd.vectors.models.catalogue import TOKENIZER_FILE
from gatewayd.vectors.models.fastembed_models import CrossEncoder, FastembedModel, load
from tests.fakes.providers.embedding_models import TEXTS, write_cross_encoder

LIGHTHOUSE = 10171
"""The id of the word in the tokenizer."""


@pytest.fixture(autouse=True)
def own_name(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    # fastembed keeps a name for the life of the process, which has one model outside of tests.
    monkeypatch.setattr(fastembed_models, "LOCAL", f"local/{request.node.name}".lower())


def description(path: Path | None, **fields: str) -> dict[str, object]:
    return {"task": "embed", "name": "x", "path": path, "pooling": "none", "cache": "", **fields}


def test_a_folder_s_model_gives_vectors_of_length_1(minilm: Path) -> None:
    model = load(description(minilm))
    assert isinstance(model, FastembedModel)
    assert model.width == 384
    for purpose in ("passage", "query"):
        row = model.compute(TEXTS[0], {"purpose": purpose})
        assert row.dtype == np.float32
        assert row.shape == (384,)
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)


def test_a_folder_s_cross_encoder_gives_scores(minilm: Path, tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "m", minilm / TOKENIZER_FILE, LIGHTHOUSE)
    model = load(description(tmp_path / "m", task="rerank"))
    assert isinstance(model, CrossEncoder)
    texts = ["nothing", "a lighthouse", "lighthouse upon lighthouse, lighthouse"]
    scores = [model.compute(text, {"query": "where is the lighthouse"}) for text in texts]
    assert [float(score) for (score,) in scores] == pytest.approx(
        [1 / (1 + np.exp(-logit)) for logit in (-1, 0, 2)]
    )


@pytest.mark.parametrize("task", ["embed", "rerank"])
def test_a_name_that_fastembed_does_not_know_is_refused(task: str) -> None:
    with pytest.raises(GatewayError, match="'acme/none': fastembed does not know it") as refusal:
        load(description(None, name="acme/none", task=task))
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


def test_files_that_are_no_model_are_refused(minilm: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        (tmp_path / "model.onnx").write_bytes((minilm / "model.onnx").read_bytes())
        load(description(tmp_path))
