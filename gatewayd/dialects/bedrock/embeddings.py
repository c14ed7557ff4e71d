"""Embeddings of Bedrock's models, which have a form for each maker: requests and replies; pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.dialects.embeddings import refuse_tokens

COHERE_TEXTS: Final = 96
"""Maximum number of texts of one request to a model of Cohere."""

DEFAULT_INPUT_TYPE: Final = "search_document"

INPUT_TYPES: Final = {"query": "search_query", "document": DEFAULT_INPUT_TYPE, "passage": DEFAULT_INPUT_TYPE}
"""Words of other makers for the `input_type` that models of Cohere demand; other words go on unchanged."""

TOKENS_HEADER: Final = "x-amzn-bedrock-input-token-count"


@dataclass(frozen=True, slots=True)
class EmbeddingForm:
    """The form of one family: `texts` in a request at most, how to write it, and how to read its vectors."""

    texts: int
    write: Callable[[Sequence[str], Mapping[str, Any]], Body]
    vectors: Callable[[Mapping[str, Any]], Sequence[Any]]


def form_of(model_id: str) -> EmbeddingForm | None:
    """Return the form of a model by its id, an inference profile or an address; None if it has no vectors."""
    return next((form for name, form in _FORMS if name in model_id), None)


def to_requests(body: Mapping[str, Any], form: EmbeddingForm) -> Iterator[Body]:
    """Yield the requests for the inputs of an embeddings request; raise invalid_request for tokens."""
    texts = as_sequence(body.get("input"))
    refuse_tokens(texts)
    for start in range(0, len(texts), form.texts):
        yield form.write(texts[start : start + form.texts], body)


def tokens_of(answer: Mapping[str, Any], headers: Mapping[str, str]) -> int:
    """Return the number of tokens of a request: of its reply, or of its header; 0 if neither tells."""
    told = headers.get(TOKENS_HEADER, "")
    billed = as_mapping(as_mapping(answer.get("meta")).get("billed_units")).get("input_tokens")
    counts = (as_count(answer.get("inputTextTokenCount")), as_count(billed))
    return next(filter(None, counts), int(told) if told.isdecimal() and len(told) < 16 else 0)


def _write_titan_1(texts: Sequence[str], body: Mapping[str, Any]) -> Body:
    return {"inputText": texts[0]}


def _write_titan_2(texts: Sequence[str], body: Mapping[str, Any]) -> Body:
    return {"inputText": texts[0], **_given(body, {"dimensions": "dimensions", "normalize": "normalize"})}


def _write_titan_image(texts: Sequence[str], body: Mapping[str, Any]) -> Body:
    size = _given(body, {"dimensions": "outputEmbeddingLength"})
    return {"inputText": texts[0], **({"embeddingConfig": size} if size else {})}


def _write_cohere_3(texts: Sequence[str], body: Mapping[str, Any]) -> Body:
    kind = body.get("input_type") or DEFAULT_INPUT_TYPE
    kind = INPUT_TYPES.get(kind, kind) if isinstance(kind, str) else kind
    return {"texts": list(texts), "input_type": kind, **_given(body, {"truncate": "truncate"})}


def _write_cohere_4(texts: Sequence[str], body: Mapping[str, Any]) -> Body:
    more = _given(body, {"dimensions": "output_dimension", "max_tokens": "max_tokens"})
    return {**_write_cohere_3(texts, body), "embedding_types": ["float"], **more}


def _given(body: Mapping[str, Any], names: Mapping[str, str]) -> Body:
    return {name: body[field] for field, name in names.items() if body.get(field) is not None}


def _titan_vectors(answer: Mapping[str, Any]) -> Sequence[Any]:
    return [answer.get("embedding")]


def _cohere_vectors(answer: Mapping[str, Any]) -> Sequence[Any]:
    found = answer.get("embeddings")
    return as_sequence(found.get("float") if isinstance(found, Mapping) else found)


_FORMS: Final = (
    ("amazon.titan-embed-image", EmbeddingForm(1, _write_titan_image, _titan_vectors)),
    ("amazon.titan-embed-text-v2", EmbeddingForm(1, _write_titan_2, _titan_vectors)),
    ("amazon.titan-embed", EmbeddingForm(1, _write_titan_1, _titan_vectors)),
    ("cohere.embed-v4", EmbeddingForm(COHERE_TEXTS, _write_cohere_4, _cohere_vectors)),
    ("cohere.embed", EmbeddingForm(COHERE_TEXTS, _write_cohere_3, _cohere_vectors)),
)
"""Families by a part of their ids, the narrower ones first."""
