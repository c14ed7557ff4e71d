"""A region of Bedrock: Converse and its event stream in the encoding of Amazon, with its refusals."""

import base64
import binascii
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from tests.fakes.providers.strict import bedrock_embeddings, conversation
from tests.fakes.providers.strict.bedrock_embeddings import ValidationError
from tests.fakes.providers.upstream import FakeUpstream, Recorded, Reply, json_reply

Object = dict[str, Any]

SIGNATURE: Final = "c2lnbmVk"
STREAM_TYPE: Final = "application/vnd.amazon.eventstream"

USAGE: Final = {
    "inputTokens": conversation.PROMPT_TOKENS - conversation.CACHED_TOKENS,
    "cacheReadInputTokens": conversation.CACHED_TOKENS,
    "outputTokens": conversation.COMPLETION_TOKENS,
    "totalTokens": conversation.PROMPT_TOKENS + conversation.COMPLETION_TOKENS,
}


class StrictBedrock(FakeUpstream):
    """The server."""

    def __init__(self, models: Sequence[str] = ("us.anthropic.claude-opus-4-6-v1",)) -> None:
        super().__init__(models)
        self.key = "AKID:secret-access-key"

    def _default(self, request: Recorded) -> Reply:
        signed = f"AWS4-HMAC-SHA256 Credential={self.key.partition(':')[0]}/"
        if not request.headers.get("Authorization", "").startswith((signed, "Bearer right")):
            return refusal("UnrecognizedClientException", "The security token is invalid.", 403)
        if request.path == "/foundation-models":
            found = [("amazon.nova-2-lite-v1:0", "Nova")]
            if request.query["byOutputModality"] == "EMBEDDING":
                found = [("amazon.titan-embed-text-v2:0", "Titan")]
            return json_reply(
                {"modelSummaries": [{"modelId": key, "modelName": name} for key, name in found]}
            )
        if request.path == "/inference-profiles":
            found = [
                {"inferenceProfileId": name, "inferenceProfileName": name.title()} for name in self.models
            ]
            return json_reply({"inferenceProfileSummaries": found})
        _, _, model, operation = request.path.split("/")
        if model not in self.models:
            return refusal("ResourceNotFoundException", "The provided model identifier is invalid.", 404)
        try:
            if operation == "invoke":
                return bedrock_embeddings.answer(model, request.json)
            check(request.json)
        except ValidationError as error:
            return refusal("ValidationException", str(error), 400)
        content = answer_content(request.json)
        reason = "tool_use" if "toolUse" in content[-1] else "end_turn"
        if operation == "converse-stream":
            writes = [frame(name, body) for name, body in events_of(content, reason)]
            return Reply(steps=writes, content_type=STREAM_TYPE)
        output = {"message": {"role": "assistant", "content": content}}
        return json_reply(
            {"output": output, "stopReason": reason, "usage": USAGE, "metrics": {"latencyMs": 1}}
        )


def refusal(kind: str, text: str, status: int) -> Reply:
    """Return an error of Amazon."""
    return json_reply({"message": text}, status, x_amzn_ErrorType=kind)


def answer_content(body: Mapping[str, Any]) -> list[Object]:
    """Return the content of the answer to the conversation."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    if any("toolResult" in block for block in blocks):
        schema = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
        assert orjson.loads(schema) == conversation.SCHEMA
        return [{"text": conversation.ANSWER}]
    if "toolConfig" not in body:
        return [{"text": conversation.TEXT}]
    image = {"format": "png", "source": {"bytes": conversation.IMAGE_DATA}}
    assert {"image": image} in blocks
    thought = {"text": conversation.THOUGHT, "signature": SIGNATURE}
    use = {"toolUseId": "tooluse_1", "name": conversation.TOOL, "input": conversation.ARGUMENTS}
    return [
        {"reasoningContent": {"reasoningText": thought}},
        {"text": conversation.TEXT},
        {"toolUse": use},
    ]


def events_of(content: Sequence[Object], reason: str) -> Iterator[tuple[str, Object]]:
    """Yield names and bodies of the events of a stream."""
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(content):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            use = block["toolUse"]
            start = {"toolUseId": use["toolUseId"], "name": use["name"]}
            yield "contentBlockStart", {**at, "start": {"toolUse": start}}
        for delta in deltas_of(block):
            yield "contentBlockDelta", {**at, "delta": delta}
        yield "contentBlockStop", at
    yield "messageStop", {"stopReason": reason}
    yield "metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}}


def deltas_of(block: Mapping[str, Any]) -> Iterator[Object]:
    """Yield the deltas of a block."""
    if "text" in block:
        yield from ({"text": piece} for piece in pieces(block["text"]))
    elif "toolUse" in block:
        text = orjson.dumps(block["toolUse"]["input"]).decode()
        yield from ({"toolUse": {"input": piece}} for piece in pieces(text))
    else:
        thought = block["reasoningContent"]["reasoningText"]
        yield from ({"reasoningContent": {"text": piece}} for piece in pieces(thought["text"]))
        yield {"reasoningContent": {"signature": thought["signature"]}}


def pieces(text: str) -> list[str]:
    """Return a text in pieces."""
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def frame(name: str, body: Mapping[str, Any], kind: str = "event") -> bytes:
    """Return an event in the binary encoding: lengths, checksum, headers, payload, checksum."""
    named = {
        f":{kind}-type": name,
        ":content-type": "application/json",
        ":message-type": kind,
    }
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for key, value in named.items()
    )
    payload = orjson.dumps(body)
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + payload
    return head + struct.pack("!I", binascii.crc32(head))


def check(body: Mapping[str, Any]) -> None:
    """Refuse what the original refuses."""
    messages = body["messages"]
    blocks = [block for message in messages for block in message["content"]]
    if any("toolUse" in block or "toolResult" in block for block in blocks) and "toolConfig" not in body:
        raise ValidationError(
            "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        )
    if any(block.get("text", "x").strip() == "" for block in blocks):
        raise ValidationError(
            "The text field in the ContentBlock object is blank. Add text to the text field."
        )
    if messages[-1]["role"] != "user":
        raise ValidationError(
            "This model does not support assistant message prefill. The conversation must end with a user"
            " message."
        )
    if body.get("inferenceConfig", {}).get("temperature", 0) > 1:
        raise ValidationError(
            "Value at 'inferenceConfig.temperature' failed to satisfy constraint: Member must be <= 1"
        )
    for block in blocks:
        tool_id = block.get("toolUse", block.get("toolResult", {})).get("toolUseId", "x")
        if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool_id) is None:
            raise ValidationError("Value at 'toolUseId' failed to satisfy constraint: [a-zA-Z0-9_-]+")
        thought = block.get("reasoningContent", {}).get("reasoningText")
        if thought is not None and thought.get("signature") != SIGNATURE:
            raise ValidationError("messages.1.content.0: Invalid `signature` in `thinking` block")
        if "image" in block:
            base64.b64decode(block["image"]["source"]["bytes"], validate=True)
