"""Embedding models and cross-encoders that fastembed runs: e5-small and all models that are not built in."""

import math
from typing import Any, Final

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.rerank.cross_encoder import TextCrossEncoder

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingPurpose
from gatewayd.vectors.interfaces import Header, InferenceModel, Row, normalise_row
from gatewayd.vectors.models.catalogue import GRAPH_FILE

LOCAL: Final = "local/model"
"""Name under which the model of a folder is registered with fastembed."""

POOLINGS: Final = {"mean": PoolingType.MEAN, "cls": PoolingType.CLS, "none": PoolingType.DISABLED}
SAMPLE: Final = "a sample"


class FastembedModel:
    """Embedding model; the field `purpose` of the request says whether texts are queries or passages."""

    def __init__(self, description: Header) -> None:
        self._model = TextEmbedding(**_arguments(description, TextEmbedding))
        self._width = len(self.compute(SAMPLE, {"purpose": EmbeddingPurpose.PASSAGE}))

    @property
    def width(self) -> int:
        """Return the dimension of the vectors."""
        return self._width

    def compute(self, text: str, request: Header) -> Row:
        """Return a vector of length 1."""
        is_query = EmbeddingPurpose(request["purpose"]) is EmbeddingPurpose.QUERY
        (found,) = self._model.query_embed(text) if is_query else self._model.passage_embed([text])
        return normalise_row(found)


class CrossEncoder:
    """Cross-encoder that scores texts as answers to the field `query` of the request."""

    def __init__(self, description: Header) -> None:
        self._model = TextCrossEncoder(**_arguments(description, TextCrossEncoder))
        self.compute(SAMPLE, {"query": SAMPLE})

    @property
    def width(self) -> int:
        """Return 1: one score per text."""
        return 1

    def compute(self, text: str, request: Header) -> Row:
        """Return a score from 0 to 1."""
        (logit,) = self._model.rerank(request["query"], [text])
        # Beyond these bounds the float32 result is the same, and math.exp overflows above 709.
        bounded = min(max(float(logit), -80.0), 80.0)
        return np.array([1 / (1 + math.exp(-bounded))], dtype=np.float32)


def load(description: Header) -> InferenceModel:
    """Load a model; raises not_configured for an unknown name, ValueError for invalid files."""
    return CrossEncoder(description) if description["task"] == "rerank" else FastembedModel(description)


def _arguments(description: Header, family: type[TextEmbedding] | type[TextCrossEncoder]) -> dict[str, Any]:
    """Return the constructor arguments of a model; register it first if it is in a folder."""
    common = {"threads": 1, "enable_cpu_mem_arena": False}
    name, path = description["name"], description["path"]
    if path is None:
        known = {model["model"].lower() for model in family.list_supported_models()}
        if name.lower() not in known:
            sentence = f"cannot use the model {name!r}: fastembed does not know it"
            raise GatewayError(ErrorKind.NOT_CONFIGURED, sentence)
        return {**common, "model_name": name, "cache_dir": description["cache"]}
    source = ModelSource(hf=LOCAL)
    if issubclass(family, TextEmbedding):
        pooling = POOLINGS[description["pooling"]]
        family.add_custom_model(
            LOCAL, pooling=pooling, normalization=False, sources=source, dim=0, model_file=GRAPH_FILE
        )
    else:
        family.add_custom_model(LOCAL, sources=source, model_file=GRAPH_FILE)
    # Without `cache_dir` fastembed creates one, which a confined process cannot.
    return {**common, "model_name": LOCAL, "specific_model_path": path, "cache_dir": path}
