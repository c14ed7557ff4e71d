"""Schemas of the answers of models in each dialect. Additional members of providers are forwarded."""

from typing import Any

from gatewayd.http.reply_schemas.chats import started_answer
from gatewayd.http.schemas import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    TRUE,
    either,
    listed,
    record,
)


def completion() -> dict[str, Any]:
    """Return the schema of a chat completion."""
    known = record(
        {"usage": OBJECT, "sources": listed(ANYTHING)},
        id=TEXT,
        object={"const": "chat.completion"},
        created=INTEGER,
        model=TEXT,
        choices=listed(OBJECT),
    )
    return {**known, "additionalProperties": True}


def chat_answer() -> dict[str, Any]:
    """Return the schema of the answer to a chat request: a completion, or the started tasks."""
    return dict(either(completion, started_answer))


def embeddings() -> dict[str, Any]:
    """Return the schema of embeddings; a text is base64 of little-endian float32."""
    vector = {"type": ["array", "string"], "items": NUMBER}
    item = {**record(index=INTEGER, embedding=vector), "additionalProperties": True}
    known = record(object={"const": "list"}, data=listed(item), model=TEXT)
    return {**known, "additionalProperties": True}


def deleted_stream() -> dict[str, Any]:
    """Return the schema of a deleted stream."""
    return record(id=TEXT, object={"const": "stream"}, deleted=TRUE)


def token_count() -> dict[str, Any]:
    """Return the schema of a token estimate of a request."""
    return record(input_tokens=INTEGER)


def response_answer() -> dict[str, Any]:
    """Return the schema of a response of the Responses protocol."""
    known = record(
        {"output": listed(OBJECT), "usage": {"type": ["object", "null"]}, "sources": listed(ANYTHING)},
        id=TEXT,
        object={"const": "response"},
        created_at=NUMBER,
        model=TEXT,
    )
    return {**known, "additionalProperties": True}


def response_items() -> dict[str, Any]:
    """Return the schema of a page of input items."""
    return record(
        object={"const": "list"},
        data=listed(OBJECT),
        first_id=TEXT_OR_NULL,
        last_id=TEXT_OR_NULL,
        has_more=BOOLEAN,
    )


def response_deletion() -> dict[str, Any]:
    """Return the schema of the deletion of a response."""
    return {**record(id=TEXT, object=TEXT, deleted=BOOLEAN), "additionalProperties": True}


def response_token_count() -> dict[str, Any]:
    """Return the schema of a token count of a Responses request."""
    known = record(object={"const": "response.input_tokens"}, input_tokens=INTEGER)
    return {**known, "additionalProperties": True}


def response_compaction() -> dict[str, Any]:
    """Return the schema of a shortened conversation."""
    known = record(
        id=TEXT,
        object={"const": "response.compaction"},
        created_at=NUMBER,
        output=listed(OBJECT),
        usage=OBJECT,
    )
    return {**known, "additionalProperties": True}


def messages_answer() -> dict[str, Any]:
    """Return the schema of an answer of the messages dialect."""
    known = record(
        {"stop_sequence": TEXT_OR_NULL, "sources": listed(ANYTHING)},
        id=TEXT,
        type={"const": "message"},
        role={"const": "assistant"},
        model=TEXT,
        content=listed(OBJECT),
        stop_reason=TEXT_OR_NULL,
        usage=OBJECT,
    )
    return {**known, "additionalProperties": True}


def runtime_models() -> dict[str, Any]:
    """Return the schema of the models of the runtimes; `urls` are the indexes of the runtimes with the
    model."""
    item = {
        **record({"urls": listed(INTEGER), "connection_type": TEXT}, name=TEXT, model=TEXT),
        "additionalProperties": True,
    }
    return record(models=listed(item))


def runtime_version() -> dict[str, Any]:
    """Return the schema of the lowest version of the runtimes."""
    return record(version=TEXT)


def runtime_generation() -> dict[str, Any]:
    """Return the schema of a whole completion, and of each line of a streamed one."""
    return {**record({"model": TEXT, "response": TEXT, "done": BOOLEAN}), "additionalProperties": True}


def runtime_chat() -> dict[str, Any]:
    """Return the schema of a whole chat answer, and of each line of a streamed one."""
    return {**record({"model": TEXT, "message": OBJECT, "done": BOOLEAN}), "additionalProperties": True}


def runtime_embeddings() -> dict[str, Any]:
    """Return the schema of the embeddings of texts."""
    return {**record({"model": TEXT, "embeddings": listed(listed(NUMBER))}), "additionalProperties": True}


def runtime_embedding() -> dict[str, Any]:
    """Return the schema of the embedding of one text."""
    return {**record({"embedding": listed(NUMBER)}), "additionalProperties": True}
