"""What tests of embedding models share: texts, similarities, a tiny cross-encoder."""

import asyncio
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import orjson
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gatewayd.errors import GatewayError

DIMENSION = 384

TEXTS = (
    "Install the package with apt and restart the service.",
    "How to set up software from the distribution's archive",
    "The cat sleeps on the warm stove.",
    "A kitten naps beside the fire.",
    "The minutes of the board meeting are kept for ten years.",
    "x",
    "Each index is stored in its own file; see the chapter on storage. " * 30,
    "Ein Satz in einer anderen Sprache, mit Umlauten: äöü.",
)


def rows_of(packed: bytes, width: int = DIMENSION) -> NDArray[np.float32]:
    """Return packed vectors as rows."""
    return np.frombuffer(packed, "<f4").reshape(-1, width)


def cosines(packed: bytes, other: bytes) -> list[float]:
    """Return the products of vectors with the same place."""
    return [float(value) for value in (rows_of(packed) * rows_of(other)).sum(axis=1)]


class Answers:
    """Keeps what a served model answers; futures that were asked for are set from any thread."""

    def __init__(self) -> None:
        self.rows: dict[int, bytes] = {}
        self.errors: dict[int, GatewayError] = {}
        self.order: list[int] = []
        self._loop = asyncio.get_running_loop()
        self._awaited: dict[int, asyncio.Event] = {}

    def answer(self, message: Mapping[str, Any], header: Mapping[str, Any], blob: bytes = b"") -> None:
        """Keep an answer."""
        self.rows[message["number"]] = blob
        self._note(message["number"])

    def refuse(self, message: Mapping[str, Any], error: GatewayError) -> None:
        """Keep a failure."""
        self.errors[message["number"]] = error
        self._note(message["number"])

    async def to(self, number: int) -> None:
        """Wait for the answer to a message."""
        event = self._awaited.setdefault(number, asyncio.Event())
        if number not in self.order:
            await event.wait()

    def _note(self, number: int) -> None:
        self.order.append(number)
        self._loop.call_soon_threadsafe(lambda: self._awaited.setdefault(number, asyncio.Event()).set())


def write_cross_encoder(folder: Path, tokenizer: Path, word_id: int) -> None:
    """Write a model that scores a pair by how often it has a word: its logit is that count less 2."""
    vocabulary = orjson.loads(tokenizer.read_bytes())["model"]["vocab"]
    weights = np.zeros((len(vocabulary), 1), np.float32)
    weights[word_id] = 1
    nodes = [
        helper.make_node("Gather", ["weights", "input_ids"], ["found"]),
        helper.make_node("ReduceSum", ["found", "tokens"], ["count"], keepdims=0),
        helper.make_node("Sub", ["count", "two"], ["logits"]),
    ]
    constants = {"weights": weights, "tokens": np.array([1], np.int64), "two": np.array([2], np.float32)}
    graph = helper.make_graph(
        nodes,
        "scores",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])],
        [numpy_helper.from_array(array_, name) for name, array_ in constants.items()],
    )
    folder.mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    (folder / "tokenizer_config.json").write_bytes(
        orjson.dumps({"model_max_length": 512, "pad_token": "[PAD]"})
    )
    (folder / "config.json").write_bytes(orjson.dumps({"pad_token_id": 0}))


def floats(packed: bytes) -> list[float]:
    """Return packed numbers."""
    return list(array("f", packed))
