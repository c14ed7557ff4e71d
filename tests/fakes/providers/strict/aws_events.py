"""Messages of the binary event stream of Bedrock."""

import base64
import binascii
import struct
from collections.abc import Mapping

import orjson


def aws_message(headers: Mapping[str, str], payload: bytes, *, raw_headers: bytes = b"") -> bytes:
    """Return one message; `raw_headers` follow the others."""
    head = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    head += raw_headers
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + binascii.crc32(prelude).to_bytes(4, "big") + head + payload
    return message + binascii.crc32(message).to_bytes(4, "big")


def aws_event(event: bytes) -> bytes:
    """Return the message of one event of the messages protocol."""
    payload = orjson.dumps({"bytes": base64.b64encode(event).decode()})
    return aws_message({":message-type": "event", ":event-type": "chunk"}, payload)
