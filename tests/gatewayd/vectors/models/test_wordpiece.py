from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tokenizers import Tokenizer

from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.catalogue import MINILM_TOKENIZER
from gatewayd.vectors.models.fastembed_models import FastembedModel
from gatewayd.vectors.models.wordpiece import WordPieceEmbedding, load
from tests.fakes.providers.embedding_models import TEXTS

REFERENCE = Tokenizer.from_file(str(MINILM_TOKENIZER))
REFERENCE.no_padding()
REFERENCE.enable_truncation(catalogue.MAX_TEXT_TOKENS)


@pytest.fixture(scope="module")
def model(minilm: Path) -> WordPieceEmbedding:
    return load({"path": str(minilm), "pooling": "none"})


def test_vectors_are_those_of_fastembed(model: WordPieceEmbedding, minilm: Path) -> None:
    description = {"task": "embed", "name": "x", "path": str(minilm), "pooling": "none", "cache": ""}
    other = FastembedModel(description)
    assert model.width == other.width == 384
    for text in (*TEXTS, ""):
        row = model.compute(text, {"purpose": "passage"})
        assert row.dtype == np.float32
        assert np.array_equal(row, other.compute(text, {"purpose": "passage"}))


def test_the_model_as_shipped_is_pooled_here(tmp_path: Path, model: WordPieceEmbedding) -> None:
    shipped = load(
        {"path": str(catalogue.make_shipped_folder(tmp_path, catalogue.MINILM)), "pooling": "mean"}
    )
    assert shipped.width == 384
    for text in TEXTS:
        assert float(shipped.compute(text, {}) @ model.compute(text, {})) > 0.97


@settings(deadline=None, max_examples=300)
@given(some.text(max_size=80) | some.text("aé中ß '-.[]CLSEP\u0301\u200b\n", max_size=80))
def test_tokens_are_those_that_the_vectors_were_made_with(model: WordPieceEmbedding, text: str) -> None:
    (ids,) = model._tokenizer.encode_batch_list([text], max_length=catalogue.MAX_TEXT_TOKENS, parallel=False)
    assert ids == REFERENCE.encode(text).ids


def test_a_long_text_is_cut_where_it_was(model: WordPieceEmbedding) -> None:
    text = "a long text, " * 1000
    (ids,) = model._tokenizer.encode_batch_list([text], max_length=catalogue.MAX_TEXT_TOKENS, parallel=False)
    assert ids == REFERENCE.encode(text).ids
    assert len(ids) == catalogue.MAX_TEXT_TOKENS


def test_a_folder_without_a_tokenizer_is_no_model(tmp_path: Path) -> None:
    (tmp_path / catalogue.TOKENIZER_FILE).write_bytes(orjson.dumps({"model": {"type": "BPE"}}))
    with pytest.raises(ValueError):
        load({"path": str(tmp_path), "pooling": "none"})
