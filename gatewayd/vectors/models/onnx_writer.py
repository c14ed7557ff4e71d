"""Writer of BERT-like encoders as ONNX graphs of fused operators whose large products run in int8.

Weights are int8 with a scale per output; activations are quantised dynamically (unsigned, per tensor). The
graph reads `input_ids` and `attention_mask`, both [batch, tokens] int64, and returns `sentence_embedding`,
[batch, width] float32: the mean over the tokens of each text. Only the build of models uses this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gatewayd.vectors.models import onnx_file

MICROSOFT: Final = "com.microsoft"
OPSET: Final = 17
IR_VERSION: Final = 8
INPUTS: Final = ("input_ids", "attention_mask")
OUTPUT: Final = "sentence_embedding"
MAX_INT8: Final = 127

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QuantisedMatrix:
    """An int8 matrix [inputs, outputs] with a scale per output, and the bias of the linear map."""

    values: NDArray[np.int8]
    scales: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class QuantisedTable:
    """An int8 table [rows, width] with a scale for each row."""

    values: NDArray[np.int8]
    scales: Floats


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """The parameters of a layer normalisation."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class EncoderLayer:
    """One layer: `attention` holds query, key and value side by side."""

    attention: QuantisedMatrix
    projection: QuantisedMatrix
    attention_norm: LayerNorm
    inner: QuantisedMatrix
    outer: QuantisedMatrix
    output_norm: LayerNorm


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """All weights of an encoder; `positions` is [maximum tokens, width] with the token type added."""

    words: QuantisedTable
    positions: Floats
    norm: LayerNorm
    layers: Sequence[EncoderLayer]
    heads: int
    epsilon: float


def quantise(weights: Floats, bias: Floats) -> QuantisedMatrix:
    """Return a matrix [inputs, outputs] in int8."""
    scales = np.maximum(np.abs(weights).max(axis=0), np.finfo(np.float32).tiny) / MAX_INT8
    return QuantisedMatrix(np.rint(weights / scales).astype(np.int8), scales.astype(np.float32), bias)


def join_matrices(matrices: Sequence[QuantisedMatrix]) -> QuantisedMatrix:
    """Return matrices with the same inputs side by side."""
    return QuantisedMatrix(
        np.concatenate([matrix.values for matrix in matrices], axis=1),
        np.concatenate([matrix.scales for matrix in matrices]),
        np.concatenate([matrix.bias for matrix in matrices]),
    )


def write_encoder(encoder: EncoderWeights, path: Path, *, is_reduced: bool) -> None:
    """Write an encoder as an ONNX file.

    `is_reduced` drops one bit of each weight: processors without VNNI add pairs of products in 16 bits, which
    would overflow otherwise.
    """
    writer = _Writer(is_reduced=is_reduced)
    state = writer.embedded(encoder)
    mask = writer.node("Cast", ["attention_mask"], to=onnx_file.INT32)
    for layer in encoder.layers:
        state = writer.layer(encoder, layer, state, mask)
    writer.finish(writer.mean(state), encoder.positions.shape[1], path)


class _Writer:
    """Collects the nodes and constants of one graph."""

    def __init__(self, *, is_reduced: bool) -> None:
        self._is_reduced = is_reduced
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, array: NDArray[np.generic]) -> str:
        """Add a constant array and return its name."""
        name = f"c{len(self._constants)}"
        self._constants.append(onnx_file.make_tensor(array, name))
        return name

    def nodes(
        self, operator: str, inputs: Sequence[str], outputs: int, domain: str = "", **options: float
    ) -> list[str]:
        """Add a node and return the names of its outputs."""
        number = len(self._nodes)
        names = [f"t{number}.{index}" for index in range(outputs)]
        self._nodes.append(onnx_file.make_node(operator, inputs, names, f"n{number}", domain, **options))
        return names

    def node(self, operator: str, inputs: Sequence[str], domain: str = "", **options: float) -> str:
        """Add a node with one output and return its name."""
        return self.nodes(operator, inputs, 1, domain, **options)[0]

    def embedded(self, encoder: EncoderWeights) -> str:
        """Return words and positions of the input as vectors."""
        words = self.node("Gather", [self.constant(encoder.words.values), "input_ids"])
        scales = self.node("Gather", [self.constant(encoder.words.scales[:, None]), "input_ids"])
        words = self.node("Mul", [self.node("Cast", [words], to=onnx_file.FLOAT), scales])
        zero, one, two = (self.constant(np.array([number], np.int64)) for number in (0, 1, 2))
        length = self.node("Slice", [self.node("Shape", ["input_ids"]), one, two, zero])
        positions = self.node("Slice", [self.constant(encoder.positions), zero, length, zero])
        added = self.node("Add", [words, positions])
        return self.node(
            "LayerNormalization", [added, *self._norm(encoder.norm)], axis=-1, epsilon=encoder.epsilon
        )

    def layer(self, encoder: EncoderWeights, layer: EncoderLayer, state: str, mask: str) -> str:
        """Return the state after one layer."""
        heads = self._attention(layer.attention, state, mask, encoder.heads)
        projected = self._product(layer.projection, heads)
        state = self._normalised(layer.attention_norm, projected, state, layer.projection, encoder.epsilon)
        inner = self._product(layer.inner, state)
        inner = self.node("BiasGelu", [inner, self.constant(layer.inner.bias)], domain=MICROSOFT)
        outer = self._product(layer.outer, inner)
        return self._normalised(layer.output_norm, outer, state, layer.outer, encoder.epsilon)

    def mean(self, state: str) -> str:
        """Return the mean over the tokens that are not padding."""
        one = self.constant(np.array([1], np.int64))
        mask = self.node("Cast", ["attention_mask"], to=onnx_file.FLOAT)
        shares = self.node("Div", [mask, self.node("ReduceSum", [mask, one], keepdims=1)])
        sums = self.node("MatMul", [self.node("Unsqueeze", [shares, one]), state])
        return self.node("Squeeze", [sums, one])

    def finish(self, result: str, width: int, path: Path) -> None:
        """Write the graph whose output is `result`."""
        self.nodes("Identity", [result], 1)
        self._nodes[-1].output[0] = OUTPUT
        graph = onnx_file.make_graph(
            self._nodes,
            [onnx_file.make_value(name, onnx_file.INT64, "batch", "tokens") for name in INPUTS],
            onnx_file.make_value(OUTPUT, onnx_file.FLOAT, "batch", width),
            self._constants,
        )
        onnx_file.write_model(graph, {"": OPSET, MICROSOFT: 1}, IR_VERSION, path)

    def _attention(self, matrix: QuantisedMatrix, state: str, mask: str, heads: int) -> str:
        values, scales = self._weights(matrix)
        rounded, scale, zero = self.nodes("DynamicQuantizeLinear", [state], 3)
        inputs = [rounded, values, self.constant(matrix.bias), scale, scales, mask, zero]
        return self.node("QAttention", inputs, domain=MICROSOFT, num_heads=heads)

    def _product(self, matrix: QuantisedMatrix, state: str) -> str:
        return self.node("DynamicQuantizeMatMul", [state, *self._weights(matrix)], domain=MICROSOFT)

    def _normalised(
        self, norm: LayerNorm, state: str, skipped: str, matrix: QuantisedMatrix, epsilon: float
    ) -> str:
        inputs = [state, skipped, *self._norm(norm), self.constant(matrix.bias)]
        return self.node("SkipLayerNormalization", inputs, domain=MICROSOFT, epsilon=epsilon)

    def _norm(self, norm: LayerNorm) -> tuple[str, str]:
        return self.constant(norm.weight), self.constant(norm.bias)

    def _weights(self, matrix: QuantisedMatrix) -> tuple[str, str]:
        values, scales = matrix.values, matrix.scales
        if self._is_reduced:
            values, scales = np.rint(values / 2).astype(np.int8), scales * np.float32(2)
        return self.constant(values), self.constant(scales)
