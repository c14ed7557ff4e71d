from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from gatewayd.vectors.models.onnx_writer import (
    EncoderLayer,
    EncoderWeights,
    LayerNorm,
    QuantisedMatrix,
    QuantisedTable,
    join_matrices,
    quantise,
    write_encoder,
)

WIDTH, HEADS, INNER, WORDS, LONGEST = 64, 4, 128, 50, 16
RANDOM = np.random.default_rng(7)

Array = NDArray[np.float32]


def matrix(inputs: int, outputs: int) -> QuantisedMatrix:
    weights = RANDOM.normal(0, 0.2, (inputs, outputs)).astype(np.float32)
    return quantise(weights, RANDOM.normal(0, 0.1, outputs).astype(np.float32))


def norm() -> LayerNorm:
    return LayerNorm(
        RANDOM.normal(1, 0.1, WIDTH).astype(np.float32), RANDOM.normal(0, 0.1, WIDTH).astype(np.float32)
    )


def layer() -> EncoderLayer:
    attention = join_matrices([matrix(WIDTH, WIDTH) for _ in range(3)])
    return EncoderLayer(
        attention, matrix(WIDTH, WIDTH), norm(), matrix(WIDTH, INNER), matrix(INNER, WIDTH), norm()
    )


@pytest.fixture(scope="module")
def encoder() -> EncoderWeights:
    words = quantise(RANDOM.normal(0, 1, (WIDTH, WORDS)).astype(np.float32), np.empty(0, np.float32))
    positions = RANDOM.normal(0, 0.1, (LONGEST, WIDTH)).astype(np.float32)
    table = QuantisedTable(words.values.T.copy(), words.scales)
    return EncoderWeights(table, positions, norm(), [layer() for _ in range(2)], HEADS, 1e-12)


def product(matrix: QuantisedMatrix, state: Array) -> Array:
    return state @ (matrix.values * matrix.scales) + matrix.bias


def normalised(norm: LayerNorm, state: Array) -> Array:
    centred = state - state.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True)) * norm.weight + norm.bias


def gelu(value: Array) -> Array:
    # The tanh form, within 0.001 of the exact one.
    return 0.5 * value * (1 + np.tanh(np.sqrt(2 / np.pi) * (value + 0.044715 * value**3)))


def attended(layer: EncoderLayer, state: Array) -> Array:
    parts = product(layer.attention, state).reshape(len(state), 3, HEADS, WIDTH // HEADS)
    query, key, value = (parts[:, number].transpose(1, 0, 2) for number in range(3))
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return (shares @ value).transpose(1, 0, 2).reshape(len(state), WIDTH)


def expected(encoder: EncoderWeights, ids: list[int]) -> Array:
    """Return what the encoder gives for a text, computed in float32."""
    words = encoder.words.values[ids] * encoder.words.scales[ids][:, None]
    state = normalised(encoder.norm, words + encoder.positions[: len(ids)])
    for layer in encoder.layers:
        state = normalised(layer.attention_norm, state + product(layer.projection, attended(layer, state)))
        inner = gelu(product(layer.inner, state))
        state = normalised(layer.output_norm, state + product(layer.outer, inner))
    return state.mean(0)


def computed(path: Path, texts: list[list[int]]) -> Array:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    longest = max(map(len, texts))
    ids = np.zeros((len(texts), longest), np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    (rows,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    return rows


def cosine(first: Array, second: Array) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


@pytest.mark.parametrize("is_reduced", [False, True])
def test_the_graph_computes_the_encoder_for_each_text_of_a_batch(
    tmp_path: Path, encoder: EncoderWeights, is_reduced: bool
) -> None:
    write_encoder(encoder, tmp_path / "model.onnx", is_reduced=is_reduced)
    texts = [[3, 1, 4, 1, 5, 9, 2, 6], [7, 7, 8], [49]]
    rows = computed(tmp_path / "model.onnx", texts)
    assert rows.shape == (3, WIDTH)
    wanted = [expected(encoder, text) for text in texts]
    assert all(cosine(row, want) > 0.99 for row, want in zip(rows, wanted, strict=True))
    assert cosine(rows[0], wanted[1]) < 0.9


def test_reduced_weights_keep_pairs_of_products_in_16_bits(tmp_path: Path, encoder: EncoderWeights) -> None:
    write_encoder(encoder, tmp_path / "full.onnx", is_reduced=False)
    write_encoder(encoder, tmp_path / "reduced.onnx", is_reduced=True)
    assert _largest(tmp_path / "full.onnx") == 127
    assert 2 * 255 * _largest(tmp_path / "reduced.onnx") < 2**15


def test_quantised_weights_are_within_half_a_step() -> None:
    weights = RANDOM.normal(0, 1, (40, 6)).astype(np.float32)
    weights[:, 2] = 0
    made = quantise(weights, np.zeros(6, np.float32))
    assert (np.abs(made.values * made.scales - weights) <= made.scales / 2 * 1.001).all()


def _largest(path: Path) -> int:
    arrays = [onnx.numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer]
    large = [int(np.abs(item.astype(np.int16)).max()) for item in arrays if item.dtype == np.int8]
    # The first is the table of words, which nothing is multiplied with in int8.
    return max(large[1:])
