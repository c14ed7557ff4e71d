"""The OpenAI embeddings dialect: parses requests, renders vectors as numbers or base64.

`parse_request` checks a request, `render` encodes the reply; both are pure.
"""

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.pipeline.endpoints import model_of

MAX_INPUTS: Final = 2048
"""Maximum number of inputs in one request, as in the OpenAI protocol."""

FORMATS: Final = ("float", "base64")

Input = str | list[int]
"""A text, or a list of token ids."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """An embeddings request for texts or token lists; `rest` holds all other fields unchanged."""

    model: str
    inputs: list[Input]
    encoding_format: str
    rest: Body

    @property
    def body(self) -> Body:
        """The request in the format of sources."""
        return {**self.rest, "model": self.model, "input": self.inputs}


def parse_request(value: Mapping[str, Any]) -> EmbeddingRequest:
    """Parse an embeddings body; raise invalid_request with the name of a bad field."""
    rest: Body = dict(value)
    model = model_of(value)
    del rest["model"]
    inputs = parse_input(rest.pop("input", None))
    encoding_format = rest.pop("encoding_format", None)
    if encoding_format is None:
        encoding_format = "float"
    if encoding_format not in FORMATS:
        raise invalid(
            f"cannot accept encoding_format: expected one of {', '.join(FORMATS)}", param="encoding_format"
        )
    dimensions = rest.get("dimensions")
    if dimensions is not None and not (type(dimensions) is int and dimensions > 0):
        raise invalid("cannot accept dimensions: expected a whole number of 1 or more", param="dimensions")
    return EmbeddingRequest(model, inputs, encoding_format, rest)


def parse_input(value: Any) -> list[Input]:
    """Return the inputs as a list; a single text or token list becomes a list of one."""
    if isinstance(value, str) or _is_tokens(value):
        value = [value]
    if not isinstance(value, list):
        raise invalid("cannot accept input: expected text, tokens, or a list of either", param="input")
    if not value:
        raise invalid("cannot accept input: the list is empty", param="input")
    check_count(value)
    kind = str if isinstance(value[0], str) else list
    for index, item in enumerate(value):
        _check_item(f"input[{index}]", item, kind)
    return value


def check_count(inputs: Sequence[Any]) -> None:
    """Raise invalid_request for more inputs than one request may have."""
    if len(inputs) > MAX_INPUTS:
        raise invalid(
            f"cannot accept input: it has {len(inputs)} elements, at most {MAX_INPUTS} are allowed",
            param="input",
        )


def refuse_tokens(inputs: Sequence[Any]) -> None:
    """Raise invalid_request for a list of token numbers: each model of a source has tokens of its own."""
    if not all(isinstance(item, str) for item in inputs):
        raise invalid(
            "cannot embed input: this provider takes texts, no lists of tokens (in LangChain set"
            " check_embedding_ctx_length to False)",
            param="input",
            code="unsupported_value",
        )


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


def _check_item(name: str, item: Any, kind: type) -> None:
    if not isinstance(item, str | list):
        raise invalid(f"cannot accept {name}: expected text or a list of tokens", param=name)
    if not isinstance(item, kind):
        raise invalid(f"cannot accept {name}: texts and tokens are mixed", param=name)
    if not item:
        raise invalid(f"cannot accept {name}: it is empty", param=name)
    if isinstance(item, list) and not all(type(token) is int and token >= 0 for token in item):
        raise invalid(f"cannot accept {name}: a token is a whole number of 0 or more", param=name)


def render(answer: Body, model: str, encoding_format: str) -> bytes:
    """Return the reply as JSON; raises as `reply_of` does."""
    return orjson.dumps(reply_of(answer, model, encoding_format))


def reply_of(answer: Body, model: str, encoding_format: str) -> Body:
    """Return the reply; `base64` encodes each vector as little-endian float32.

    `answer` has vectors of numbers. Raises upstream_failed for a number that exceeds float32.
    """
    data = answer["data"]
    if encoding_format == "base64":
        data = [{**item, "embedding": encode(item["embedding"])} for item in data]
    return {**answer, "data": data, "model": model}


def encode(vector: Sequence[float]) -> str:
    """Return a vector as base64 of its little-endian float32 bytes."""
    try:
        packed = struct.pack(f"<{len(vector)}f", *vector)
    except OverflowError as error:
        raise GatewayError(
            ErrorKind.UPSTREAM_FAILED,
            "cannot write the embedding as base64: a number is too large for float32",
        ) from error
    return base64.b64encode(packed).decode("ascii")
