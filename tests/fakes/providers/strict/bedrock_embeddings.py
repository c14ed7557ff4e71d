"""InvokeModel of Bedrock for vectors: the forms of Titan and Cohere, with their refusals."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.fakes.providers.upstream import Reply, json_reply

TITAN_1: Final = "amazon.titan-embed-text-v1"
TITAN_2: Final = "amazon.titan-embed-text-v2:0"
TITAN_IMAGE: Final = "amazon.titan-embed-image-v1"
COHERE_3: Final = "cohere.embed-multilingual-v3"
COHERE_4: Final = "us.cohere.embed-v4:0"
EMBEDDERS: Final = (TITAN_1, TITAN_2, TITAN_IMAGE, COHERE_3, COHERE_4)
COHERE_MAX_TEXTS: Final = 96
INPUT_TYPES: Final = ("search_document", "search_query", "classification", "clustering", "image")

FIELDS: Final = {
    TITAN_1: {"inputText"},
    TITAN_2: {"inputText", "dimensions", "normalize", "embeddingTypes"},
    TITAN_IMAGE: {"inputText", "inputImage", "embeddingConfig"},
    COHERE_3: {"texts", "input_type", "truncate", "embedding_types", "images"},
    COHERE_4: {"texts", "input_type", "truncate", "embedding_types", "output_dimension", "max_tokens"},
}


class ValidationError(Exception):
    """The request is refused with this text."""


def vector(text: str, size: int) -> list[float]:
    """Return the vector of a text."""
    return [float(len(text)), *[0.5] * (size - 1)]


def answer(model: str, body: Mapping[str, Any]) -> Reply:
    """Return the answer of a model; raise ValidationError as the original refuses."""
    if model not in FIELDS:
        raise ValidationError("The requested operation is not supported for this model.")
    for name in sorted(set(body) - FIELDS[model]):
        raise ValidationError(
            f"Malformed input request: extraneous key [{name}] is not permitted, please reformat your input"
            " and try again."
        )
    return _titan(model, body) if model.startswith("amazon") else _cohere(model, body)


def _titan(model: str, body: Mapping[str, Any]) -> Reply:
    text = body.get("inputText")
    if not isinstance(text, str):
        raise ValidationError("Malformed input request: expected type: String, found: JSONArray")
    if model == TITAN_IMAGE:
        size = body.get("embeddingConfig", {}).get("outputEmbeddingLength", 1024)
    else:
        size = body.get("dimensions", 1024 if model == TITAN_2 else 1536)
    if size not in {256, 384, 512, 1024, 1536}:
        raise ValidationError(f"Malformed input request: {size} is not a valid enum value")
    found: dict[str, Any] = {"embedding": vector(text, size), "inputTextTokenCount": len(text.split())}
    if model == TITAN_2:
        found["embeddingsByType"] = {"float": found["embedding"]}
    return json_reply(found)


def _cohere(model: str, body: Mapping[str, Any]) -> Reply:
    texts: Sequence[str] = body.get("texts", ())
    if not texts or len(texts) > COHERE_MAX_TEXTS or not all(isinstance(text, str) for text in texts):
        raise ValidationError(
            f"Malformed input request: #/texts: expected maximum item count: 96, found: {len(texts)}"
        )
    if body.get("input_type") not in INPUT_TYPES:
        raise ValidationError(
            f"Malformed input request: #/input_type: {body.get('input_type')} is not a valid enum value"
        )
    vectors = [vector(text, body.get("output_dimension", 1024)) for text in texts]
    tokens = sum(len(text.split()) for text in texts)
    is_typed = "embedding_types" in body
    found = {
        "id": "e1",
        "texts": texts,
        "embeddings": {"float": vectors} if is_typed else vectors,
        "response_type": "embeddings_by_type" if is_typed else "embeddings_floats",
    }
    return json_reply(found, X_Amzn_Bedrock_Input_Token_Count=str(tokens))
