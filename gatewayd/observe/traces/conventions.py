"""Names and buckets of the semantic conventions for HTTP and generative AI, in one place because they change.

github.com/open-telemetry/semantic-conventions-genai, status Development. No attribute has content.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

OPERATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chat": "chat",
        "task": "chat",
        "responses": "chat",
        "completions": "text_completion",
        "embeddings": "embeddings",
        "images": "generate_content",
        "speech": "generate_content",
        "transcriptions": "generate_content",
    }
)
"""`gen_ai.operation.name` by endpoint; others keep their own word."""

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - the name of an attribute
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITTEN_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
ERROR_TYPE: Final = "error.type"

HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"
CLIENT_ADDRESS: Final = "client.address"
REQUEST_ID: Final = "gatewayd.request_id"

DURATION: Final = "gen_ai.client.operation.duration"
DURATION_BOUNDS: Final = tuple(0.01 * 2**step for step in range(14))
FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
FIRST_CHUNK_BOUNDS: Final = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    10.0,
)
TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - the name of a metric
TOKEN_BOUNDS: Final = tuple(4.0**step for step in range(14))
HTTP_DURATION: Final = "http.server.request.duration"
HTTP_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
