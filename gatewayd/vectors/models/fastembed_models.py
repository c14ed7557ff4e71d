"""Models that fastembed runs: those that the package does not bring, and e5-small."""

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
"""The name under which a folder's model is known to fastembed."""

POOLINGS: Final = {"mean": PoolingType.MEAN, "cls": PoolingType.CLS, "none": PoolingType.DISABLED}
SAMPLE: Final = "a sample"


class FastembedModel:
    """An embedding model; `purpose` in the request says what the texts are."""

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
    """A model that scores texts as answers to the `query` in the request."""

    def __init__(self, description: Header) -> None:
        self._model = TextCrossEncoder(**_arguments(description, TextCrossEncoder))
        self.compute(SAMPLE, {"query": SAMPLE})

    @property
    def width(self) -> int:
        """Return that a text gets one score."""
        return 1

    def compute(self, text: str, request: Header) -> Row:
        """Return a score from 0 to 1."""
        (logit,) = self._model.rerank(request["query"], [text])
        # Beyond these the float32 result is the same, and the exponential of more than 709 is none.
        bounded = min(max(float(logit), -80.0), 80.0)
        return np.array([1 / (1 + math.exp(-bounded))], dtype=np.float32)


def load(description: Header) -> InferenceModel:
    """Load a model; not_configured for a name that is not known, ValueError for files that are no model."""
    return CrossEncoder(description) if description["task"] == "rerank" else FastembedModel(description)


def _arguments(description: Header, family: type[TextEmbedding] | type[TextCrossEncoder]) -> dict[str, Any]:
    """Return what a family's model is made with; one in a folder is made known first."""
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
    # Without a folder for downloads one is looked for and made, which a confined process cannot.
    return {**common, "model_name": LOCAL, "specific_model_path": path, "cache_dir": path}
