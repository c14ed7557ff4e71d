"""The native protocol of Gemini: refuses unknown names, roles, schemas, missing signatures, in its words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from tests.fakes.providers.strict import conversation
from tests.fakes.providers.upstream import FakeUpstream, Recorded, Reply, json_reply, sse

Object = dict[str, Any]

SIGNATURE: Final = "c2lnbmVk"
SKIPPED: Final = "skip_thought_signature_validator"
"""The word that the original takes in place of a signature of another model."""

KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}
        | {"cachedContent", "labels"}
    ),
    "generationConfig": frozenset(
        {"temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "seed"}
        | {"presencePenalty", "frequencyPenalty", "responseMimeType", "responseSchema", "thinkingConfig"}
        | {"responseModalities", "responseLogprobs", "logprobs", "mediaResolution"}
    ),
    "part": frozenset(
        {"text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"}
    ),
    "schema": frozenset(
        {"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties"}
        | {"required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example"}
        | {"anyOf", "propertyOrdering", "default", "items", "minimum", "maximum"}
    ),
}
"""Names of the members of each kind of object."""

USAGE: Final = {
    "promptTokenCount": conversation.PROMPT_TOKENS,
    "cachedContentTokenCount": conversation.CACHED_TOKENS,
    "candidatesTokenCount": conversation.COMPLETION_TOKENS - conversation.REASONING_TOKENS,
    "thoughtsTokenCount": conversation.REASONING_TOKENS,
    "totalTokenCount": conversation.PROMPT_TOKENS + conversation.COMPLETION_TOKENS,
}


class InvalidArgumentError(Exception):
    """The request is refused with this text."""


class StrictGemini(FakeUpstream):
    """The server."""

    def __init__(self, models: Sequence[str] = ("gemini-3-flash",)) -> None:
        super().__init__(models)
        self.key = "AIza-right"

    def _default(self, request: Recorded) -> Reply:
        if request.headers.get("x-goog-api-key") != self.key:
            return refusal(400, "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID")
        if request.method == "GET":
            return json_reply({"models": [listed(name) for name in self.models]})
        name, _, method = request.path.removeprefix("/v1beta/models/").partition(":")
        if name not in self.models:
            text = f"models/{name} is not found for API version v1beta, or is not supported for {method}."
            return refusal(404, text, status="NOT_FOUND")
        try:
            return self._answer_method(method, request)
        except InvalidArgumentError as error:
            return refusal(400, str(error))

    def _answer_method(self, method: str, request: Recorded) -> Reply:
        body = request.json
        if method == "batchEmbedContents":
            return json_reply({"embeddings": [{"values": [0.5, 0.25]} for _ in body["requests"]]})
        check(body, signs=request.path.startswith("/v1beta/models/gemini-3"))
        parts = answer_parts(body)
        if method == "streamGenerateContent":
            assert request.query == {"alt": "sse"}
            return Reply(steps=list(stream_of(parts)))
        return json_reply(answer(parts, reason="STOP"))


def listed(name: str) -> Object:
    """Return a model of the list."""
    return {
        "name": f"models/{name}",
        "displayName": name.title(),
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": True,
    }


def refusal(code: int, text: str, *, status: str = "INVALID_ARGUMENT", reason: str = "") -> Reply:
    """Return an error of Google."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    return json_reply({"error": {"code": code, "message": text, "status": status, "details": details}}, code)


def answer_parts(body: Mapping[str, Any]) -> list[Object]:
    """Return the parts of the answer to the conversation."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    if any("functionResponse" in part for part in parts):
        assert body["generationConfig"]["responseSchema"]["properties"] == {"weather": {"type": "string"}}
        return [{"text": conversation.ANSWER}]
    if not body.get("tools"):
        return [{"text": conversation.TEXT, "thoughtSignature": SIGNATURE}]
    assert {"inlineData": {"mimeType": "image/png", "data": conversation.IMAGE_DATA}} in parts
    thought = {"text": conversation.THOUGHT, "thought": True}
    call = {"name": conversation.TOOL, "args": conversation.ARGUMENTS}
    return [thought, {"text": conversation.TEXT}, {"functionCall": call, "thoughtSignature": SIGNATURE}]


def answer(parts: Sequence[Object], reason: str = "") -> Object:
    """Return a whole answer, or an object of a stream."""
    candidate: Object = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-3-flash",
        "responseId": "r1",
    }


def stream_of(parts: Sequence[Object]) -> Iterator[bytes]:
    """Yield the writes of a stream: texts in pieces, calls whole, the reason in the last object."""
    for part in parts:
        text = part.get("text", "")
        for piece in [text[start : start + 5] for start in range(0, len(text), 5)]:
            yield sse(answer([{**part, "text": piece}]))
        if not text:
            yield sse(answer([part]))
    yield sse(answer([{"text": ""}], reason="STOP"))


def check(body: Mapping[str, Any], *, signs: bool) -> None:
    """Refuse what the original refuses."""
    _check_names(body, "", "")
    _check_names(body.get("generationConfig", {}), "generationConfig", "generation_config")
    if not body.get("contents"):
        raise InvalidArgumentError("* GenerateContentRequest.contents: contents is not specified")
    for index, content in enumerate(body["contents"]):
        _check_content(content, f"contents[{index}]")
    if signs:
        _check_signatures(body["contents"])
    _check_turns(body["contents"])
    for tool in body.get("tools", []):
        for index, declared in enumerate(tool["functionDeclarations"]):
            where = f"tools[0].function_declarations[{index}].parameters"
            if "parameters" in declared:
                _check_schema(declared["parameters"], where)
    schema = body.get("generationConfig", {}).get("responseSchema")
    if schema is not None:
        _check_schema(schema, "generation_config.response_schema")


def _check_names(found: Mapping[str, Any], kind: str, where: str) -> None:
    place = f" at {where!r}" if where else ""
    lines = [
        f'Invalid JSON payload received. Unknown name "{name}"{place}: Cannot find field.'
        for name in found
        if name not in KNOWN[kind]
    ]
    if lines:
        raise InvalidArgumentError("\n".join(lines))


def _check_content(content: Mapping[str, Any], where: str) -> None:
    if content.get("role") not in ("user", "model"):
        raise InvalidArgumentError("Please use a valid role: user, model.")
    if not content["parts"]:
        raise InvalidArgumentError(
            "Unable to submit request because it must include at least one parts field."
        )
    for index, part in enumerate(content["parts"]):
        _check_names(part, "part", f"{where}.parts[{index}]")


def _check_turns(contents: Sequence[Mapping[str, Any]]) -> None:
    called = 0
    for content in contents:
        answered = sum("functionResponse" in part for part in content["parts"])
        if answered != called:
            raise InvalidArgumentError(
                "Please ensure that the number of function response parts is equal to the number of function"
                " call parts of the function call turn."
            )
        called = sum("functionCall" in part for part in content["parts"])


def _check_signatures(contents: Sequence[Mapping[str, Any]]) -> None:
    for place, content in enumerate(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and calls[0].get("thoughtSignature") not in (SIGNATURE, SKIPPED):
            name = calls[0]["functionCall"]["name"]
            raise InvalidArgumentError(
                "Function call is missing a thought_signature in functionCall parts. This is required for"
                f" tools to work correctly. Function call `default_api:{name}` , position {place}."
            )


def _check_schema(schema: Mapping[str, Any], where: str) -> None:
    _check_names(schema, "schema", where)
    if "anyOf" not in schema and schema.get("type") is None:
        raise InvalidArgumentError(f"* {where}.type: must be specified")
    if schema.get("enum") and schema.get("type") != "string":
        raise InvalidArgumentError(f"* {where}.enum: only allowed for STRING type")
    if schema.get("type") == "array" and "items" not in schema:
        raise InvalidArgumentError(f"* {where}.items: missing field.")
    for name, inner in schema.get("properties", {}).items():
        _check_schema(inner, f"{where}.properties[{name}]")
    if "items" in schema:
        _check_schema(schema["items"], f"{where}.items")
    for index, inner in enumerate(schema.get("anyOf", [])):
        _check_schema(inner, f"{where}.any_of[{index}]")
    assert orjson.dumps(schema)
