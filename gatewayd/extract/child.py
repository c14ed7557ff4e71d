"""Child process that extracts documents and splits them into chunks: `python -m gatewayd.extract.child`."""

import math
import resource
import sys
from pathlib import Path
from typing import Any

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.messages import AnswerLimits, pack_answer
from gatewayd.extract.readers import read_document
from gatewayd.extract.records import MB, OVER_MEMORY, DocumentLimits, ExtractedDocument
from gatewayd.ingest.chunker import ChunkRules, split_text
from gatewayd.sandbox import confinement
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.workers import ParentPipe


def main() -> None:
    """Answer requests until the parent closes the pipe.

    A request is `{path, name, content_type}`; the reply is a text with its chunks (`messages`). The reply to
    a manual page in roff is `{is_roff}` and the page; a second request has the HTML of the page as its bytes.

    The first argument is a JSON object with `text` (characters), `size`, `overlap`, `tokens` (of chunks),
    `seconds` (processor time of a document) and `sandbox`, the second one the folder of documents.
    """
    options = orjson.loads(sys.argv[1])
    limits = DocumentLimits(text=options["text"])
    rules = ChunkRules(options["size"], options["overlap"], options["tokens"])
    parent = ParentPipe()
    # The process keeps access to the folder of the documents only.
    confinement.apply_sandbox(SandboxMode(options["sandbox"]), [Path(sys.argv[2])])
    for message, formatted in parent.messages():
        _limit_cpu_time(options["seconds"])
        try:
            header, blob = _extract(message, formatted, limits, rules)
        except GatewayError as error:
            parent.refuse(message, error)
        except MemoryError:
            parent.refuse(message, _over_memory())
        except OSError as error:
            sentence = f"cannot read the file: {error.strerror or error}"
            parent.refuse(message, GatewayError(ErrorKind.UNAVAILABLE, sentence))
        else:
            parent.answer(message, header, blob)


def _extract(
    message: dict[str, Any], formatted: bytes, limits: DocumentLimits, rules: ChunkRules
) -> tuple[dict[str, Any], bytes]:
    path, name, content_type = Path(message["path"]), message["name"], message["content_type"]
    document: ExtractedDocument = read_document(path, name, content_type, limits, formatted)
    if document.is_roff:
        return {"is_roff": True}, document.text.encode()
    chunks = split_text(document.text, document.parts, rules)
    return pack_answer(document, chunks, AnswerLimits(limits.text, rules.size))


def _limit_cpu_time(seconds: float) -> None:
    """Limit the processor time of the next document: the kernel kills the process above it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


def _over_memory() -> GatewayError:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return GatewayError(
        ErrorKind.INVALID_REQUEST,
        f"cannot read the file: it takes more than {limit // MB} MB of memory; "
        "split it, or raise ingest_memory_limit",
        code=OVER_MEMORY,
    )


if __name__ == "__main__":
    main()
