"""BERT-like embedding models in a folder, run by onnxruntime with a WordPiece tokenizer."""

from pathlib import Path

import numpy as np
import onnxruntime
from nanotoken import Tokenizer

from gatewayd.vectors.interfaces import Header, Row, normalise_row
from gatewayd.vectors.models.catalogue import GRAPH_FILE, MAX_TEXT_TOKENS, TOKENIZER_FILE

MEAN = "mean"
INPUT_IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"


class WordPieceEmbedding:
    """Embedding model that treats queries and passages alike."""

    def __init__(self, description: Header) -> None:
        folder = Path(description["path"])
        self._is_pooled = description["pooling"] != MEAN
        self._tokenizer = Tokenizer.from_json((folder / TOKENIZER_FILE).read_bytes())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(str(folder / GRAPH_FILE), options, providers)
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._width = len(self.compute("a sample", {}))

    @property
    def width(self) -> int:
        """Return the dimension of the vectors."""
        return self._width

    def compute(self, text: str, request: Header) -> Row:
        """Return a vector of length 1."""
        # One text, on the calling thread: threads of the tokenizer would not have its priority.
        (ids,) = self._tokenizer.encode_batch_list([text], max_length=MAX_TEXT_TOKENS, parallel=False)
        given = np.array([ids], np.int64)
        values = {INPUT_IDS: given, MASK: np.ones_like(given), TYPES: np.zeros_like(given)}
        feeds = {name: values[name] for name in self._inputs}
        (found,) = self._session.run(None, feeds)[0]
        return normalise_row(found if self._is_pooled else found.mean(axis=0, dtype=np.float64))


def load(description: Header) -> WordPieceEmbedding:
    """Load a model; raises ValueError or an error of onnxruntime for invalid files."""
    return WordPieceEmbedding(description)
