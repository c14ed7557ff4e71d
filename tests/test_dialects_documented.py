"""gatewayd-dialects(7) is complete and true: its rows are tried, the names that the code knows are in it."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import fields
from pathlib import Path

import pytest

from gatewayd import json_decoder
from gatewayd.assembly.gateway import assemble
from gatewayd.assembly.routes import public_rows
from gatewayd.batches import files as batch_files
from gatewayd.batches import lines as batch_lines
from gatewayd.batches import run as batch_run
from gatewayd.batches import service as batch_service
from gatewayd.catalog import failover, model_list, runtimes
from gatewayd.chats import json_limits as storable
from gatewayd.chats import parser as chats_parser
from gatewayd.chats import records, transfer
from gatewayd.completions import deltas, embedded_json, limits, provider_errors, refusal_reasons
from gatewayd.completions.refusal_reasons import RefusalReason
from gatewayd.dialects import embeddings, openai, rerank, token_estimate
from gatewayd.dialects.anthropic import betas, blocks, effort, hosts
from gatewayd.dialects.anthropic import completion as anthropic_completion
from gatewayd.dialects.anthropic import content as anthropic_content
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.anthropic import reply as anthropic_reply
from gatewayd.dialects.anthropic import request as anthropic_request
from gatewayd.dialects.anthropic import source as anthropic_source
from gatewayd.dialects.bedrock import thinking_fields
from gatewayd.dialects.gemini import reply as gemini_reply
from gatewayd.dialects.gemini import request as gemini_request
from gatewayd.dialects.gemini import schemas
from gatewayd.dialects.ollama import dialect as ollama
from gatewayd.dialects.ollama import options as ollama_options
from gatewayd.dialects.ollama import source as ollama_source
from gatewayd.dialects.providers import formats, message_request, reasoning_wish
from gatewayd.dialects.providers.family import TEXT_EMBEDDERS
from gatewayd.dialects.providers.rules import Protocol
from gatewayd.dialects.responses import reasoning_details, upstream_request
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http import body, idempotency, media_forms, uploads
from gatewayd.http.control import stored_chats
from gatewayd.http.errors import CODE_STATUSES, STATUSES, status_of, type_of
from gatewayd.http.public.chats import routes as chats_routes
from gatewayd.http.public.model_runtimes import routes as runtime_routes
from gatewayd.http.public.models import anthropic_lists
from gatewayd.http.responses import heartbeat, resumable
from gatewayd.http.routes import BASES, Route, RouteDialect
from gatewayd.knowledge import reranker_source
from gatewayd.pipeline import embeddings as batches
from gatewayd.pipeline.documents import model_info, placeholders
from gatewayd.pipeline.media.endpoints import (
    IMAGE_EDIT,
    MEDIA_ENDPOINTS,
    TRANSCRIPTION,
    TRANSLATION,
)
from gatewayd.pipeline.runs import message_builder
from gatewayd.resumption import idempotency as replies
from gatewayd.resumption import live_stream
from gatewayd.resumption import service as streams
from gatewayd.settings import definitions, load
from gatewayd.settings.definitions import table_fields
from gatewayd.text import MAX_JSON_DEPTH
from gatewayd.upstream.sources import (
    bedrock_client,
    failures,
    key_ring,
    message_requests,
    provider_client,
    refusals,
)
from gatewayd.upstream.sources.config import SourceKind
from tests.fakes.http.samples_models import BELOW_BASES, MODEL_PATHS
from tests.fakes.providers.conversions import KINDS, TABLES, converting
from tests.fakes.providers.native_conversions import CONVERTERS, outcome
from tests.fakes.providers.noted_json import note
from tests.write_provider_rules import update as with_provider_rules

PAGE = (Path(__file__).parents[1] / "man" / "gatewayd-dialects.7").read_text()
ENDS = "|".join(end[1:] for end in BELOW_BASES)

TAGS = {"batches", "chat", "embeddings", "forwarding", "media", "models", "responses", "runtime"}

NAMES = {
    "the gateway's own fields": openai.OWN_FIELDS,
    "the gateway's own params": openai.OWN_PARAMS,
    "roles": openai.ROLES,
    "checked fields": [name for name, _, _ in openai._FIELD_TYPES],
    "fields of the messages protocol": anthropic.FOREIGN_FIELDS,
    "message fields of the messages protocol": anthropic.FOREIGN_MESSAGE_FIELDS,
    "part fields of the messages protocol": anthropic.FOREIGN_PART_FIELDS,
    "parts of the messages protocol": anthropic.FOREIGN_PARTS,
    "kept fields of messages": anthropic_request.UNCHANGED_FIELDS,
    "read fields of messages": anthropic_request.OTHER_FIELDS,
    "efforts of messages": anthropic_request._EFFORTS,
    "fields of other hosts": message_requests._HOST_FIELDS,
    "blocks of the provider": anthropic_content.SERVER_BLOCKS,
    "kept fields towards messages": anthropic_source._UNCHANGED_FIELDS,
    "tiers": anthropic_source._SERVICE_TIERS,
    "parts towards messages": anthropic_source._ANTHROPIC_PARTS,
    "levels": effort.LEVELS,
    "kept usage": anthropic_completion.EXTRA_USAGE,
    "thinking": deltas.THOUGHT_FIELDS,
    "reasoning": deltas.REASONING_FIELDS,
    "native reasons": anthropic_reply.NATIVE_REASONS,
    "refused of generate": ollama._REFUSED_FIELDS,
    "unused of generate": ollama._UNUSED_FIELDS,
    "numbers of options": [f"options.{name}" for name in ollama_options._NUMBERS],
    "whole numbers of options": [f"options.{name}" for name in ollama_options._WHOLE_NUMBERS],
    "levels of think": ollama_options._EFFORTS,
    "options of a runtime": ollama_source._OPTIONS,
    "kept fields towards a runtime": ollama_source._UNCHANGED_FIELDS,
    "embed fields of a runtime": ollama_source._EMBED_FIELDS,
    "counters": ollama_source._COUNTERS,
    "rates": [name for name, _ in ollama_source._RATES],
    "efforts towards a runtime": ollama_source._EFFORTS,
    "formats of embeddings": embeddings.FORMATS,
    "counts of embeddings": batches.USAGE_FIELDS,
    "what pages of models tell": anthropic_lists.MODEL_FIELDS,
    "what users read of a record": [*model_info.PUBLIC_RECORD_FIELDS, *model_info.PUBLIC_META_FIELDS],
    "what users read of a base": model_info.PUBLIC_PROVIDER_FIELDS,
    "headers": [
        body.WARNING_HEADER,
        "anthropic-version",
        "request-id",
        "X-Request-Id",
        "Retry-After",
        resumable.STREAM_HEADER,
        resumable.STREAM_ID_HEADER,
        resumable.LAST_EVENT_ID,
        idempotency.KEY_HEADER,
        idempotency.REPLAYED_HEADER,
    ],
    "media types": ["application/json", "application/x-ndjson"],
    "kinds of sources": [kind.value for kind in SourceKind],
    "protocols of sources": [protocol.value for protocol in Protocol],
    "finish reasons of Bedrock": ["guardrail_intervened", "content_filtered"],
    "finish reasons of Gemini": gemini_reply.FINISH_REASONS.keys() - gemini_reply.PLAIN_REASONS,
}

SENTENCES = [
    f"A user has at most {batch_service.MAX_UNFINISHED} unfinished batches, and"
    f" {batch_files.MAX_USER_FILES} files of {batch_files.MAX_USER_BYTES} bytes in all",
    f"at most {batch_files.MAX_FILE_BYTES} bytes and {batch_lines.MAX_LINES} lines, a line"
    f" {batch_lines.MAX_LINE_BYTES} bytes",
    f"The answers of a batch have at most {batch_run.MAX_RESULT_BYTES} bytes",
    f"is tried {batch_run.MAX_ATTEMPTS} times, with growing pauses of up to"
    f" {batch_run.MAX_PAUSE_SECONDS:g} seconds",
    f"An ended batch is kept for {batch_service.RETENTION_SECONDS // 86400} days",
    f"says less ({batch_files.MIN_LIFE_SECONDS} seconds at least)",
    f"at most {batch_lines.MAX_CUSTOM_ID_CHARACTERS} characters, once in a file",
    f"up to {batch_lines.MAX_REPORTED_ERRORS} errors",
    f"{', '.join(batch_lines.ENDPOINTS[:-1])} and {batch_lines.ENDPOINTS[-1]};",
    "a budget of {}, {}, {}, {} or {} tokens".format(*gemini_request.BUDGETS.values()),
    "a budget of {}, {}, {}, {}, {} or {} tokens".format(*thinking_fields.BUDGETS.values()),
    f"in at most {bedrock_client.MAX_CALLS} threads",
    f"else {bedrock_client.DEFAULT_REGION}.",
    f"up to {schemas.MAX_SCHEMA_NODES} schemas in all",
    f"is at least {upstream_request.MIN_OUTPUT_TOKENS}.",
    f"with 401 or 402 rests for {key_ring.REST_SECONDS[401]:g} seconds, with 403 or 429 for"
    f" {key_ring.REST_SECONDS[429]:g},",
    reasoning_details.FORMAT,
    f"At most {streams.MAX_RUNNING_STREAMS_PER_USER} streams of a user and"
    f" {streams.MAX_RUNNING_STREAMS:,} in all run at a time",
    f"keeps {streams.MAX_KEPT_STREAMS_PER_USER} and {streams.MAX_KEPT_BYTES_PER_USER // 2**20} MiB of a user,"
    f" and {streams.MAX_KEPT_STREAMS:,} and {streams.MAX_KEPT_BYTES // 2**30} GiB in all",
    f"A stream has at most {live_stream.MAX_STREAM_BYTES // 2**20} MiB",
    f"at most {live_stream.MAX_PENDING_BYTES // 1024} KiB and one event in memory",
    f"another {live_stream.MAX_KEPT_BYTES // 1024} KiB while somebody reads it",
    f"a text of 1 to {idempotency.MAX_KEY_CHARACTERS} ASCII characters",
    f"waits up to {replies.WAIT_SECONDS:g} seconds",
    f"At most {replies.MAX_REQUESTS_PER_USER:,} replies with {replies.MAX_CHARACTERS_PER_USER // 2**20} Mi",
    f"over {replies.MAX_REPLY_CHARACTERS // 2**20} Mi characters is not kept",
    f"At most {replies.MAX_RUNNING_PER_USER} requests of a user with a key",
    f"over {placeholders.MAX_PLACEHOLDERS:,} pairs of opening braces",
    f"insert over {placeholders.MAX_INSERTED_CHARACTERS:,} characters",
    f"at most {embeddings.MAX_INPUTS} of them",
    f"(at most {rerank.MAX_DOCUMENTS})",
    f"at most {reranker_source.MAX_RERANKED_DOCUMENTS} documents, scores",
    f"at most {media_forms.MAX_FORM_PARTS} parts; its fields together have at most"
    f" {uploads.MAX_FIELD_BYTES} bytes",
    f"An event has at most {provider_client.MAX_MEDIA_EVENT_BYTES // 2**20} MiB",
    f"from 1 to {anthropic_lists.MAX_PAGE_SIZE}",
    f"at most {runtimes.ASK_SECONDS:g} seconds",
    f"asked last for {failover.REST_SECONDS:g} seconds",
    f"the first {model_list.MAX_MODELS} models",
    f"a list has at most {provider_client.MAX_LIST_BYTES // 2**20} MiB",
    f"without a runtime it is {runtime_routes.PROTOCOL_VERSION}",
    f"up to {MAX_JSON_DEPTH} levels",
    f"was sent for {heartbeat.HEARTBEAT_SECONDS:g} seconds",
    f"up to {body.MAX_HEADER_CHARACTERS} characters",
    f"at most {failures.MAX_MESSAGE_CHARACTERS} characters",
    f"at most {failures.MAX_RETRY_AFTER_SECONDS}.",
    provider_errors.OVERFLOW,
    provider_errors.QUOTA,
    anthropic.TOO_LONG,
    anthropic.NO_CREDIT,
    f"without either it is {anthropic_source.DEFAULT_MAX_TOKENS}",
    f"below {anthropic_request.MEDIUM_BUDGET}",
    f"below {anthropic_request.HIGH_BUDGET}",
    f"over {anthropic_request.MAX_USER_CHARACTERS} characters",
    f"{', '.join(map(str, list(effort.BUDGETS.values())[:-1]))} or",
    f"of {effort.MIN_BUDGET} or less",
    f"with {token_estimate.MESSAGE_TOKENS} more for each turn and {token_estimate.TOOL_TOKENS} for each tool",
    f"{token_estimate.PIXELS_PER_TOKEN} pixels, at most {token_estimate.IMAGE_TOKENS}",
    f"{token_estimate.DOCUMENT_TOKENS} for each {token_estimate.PAGE_BYTES} bytes",
    f"whole has at most {provider_client.MAX_ANSWER_BYTES // 2**20} MiB",
    f"A stream has at most {limits.MAX_STREAM_BYTES // 2**20} MiB",
    f"at most {limits.MAX_TOOL_CALLS} tool calls, with {limits.MAX_ARGUMENT_CHARACTERS} characters",
    f"in all, {limits.MAX_ARGUMENT_MARKS} of them brackets that open and commas,",
    f"and {limits.MAX_NAME_CHARACTERS} of each name;",
    f"request that together hold over {embedded_json.MAX_VALUES} values; of arguments of over"
    f" {embedded_json.MAX_EXAMINED_CHARACTERS // 2**20} MiB",
    f"an answer has at most {limits.MAX_CHOICES} choices",
    f"at most {limits.MAX_KEPT_CHARACTERS} characters",
    f"counts as {message_builder.PART_CHARACTERS}",
    f"of a stream {limits.MAX_LINE_BYTES // 2**20} MiB",
    blocks.INVALID_INPUT,
    f"to {refusals.MAX_RETRIES} times for",
    f"below {reasoning_wish.MEDIUM_BUDGET} tokens is low",
    f"below {reasoning_wish.HIGH_BUDGET} medium",
    f"one of over {formats.MAX_SCHEMA_BYTES // 1024} KiB is left out",
    f"at most {message_request.MAX_CACHE_BLOCKS} blocks with cache_control",
    f"at least {message_request.MIN_BUDGET} tokens",
]


def plain(source: str) -> str:
    """Return mdoc source as one line of text, without macros and escapes."""
    text = re.sub(r"(?m)^\.\\\".*$", "", source)
    text = re.sub(r"(?m)^\.(?:[A-Z][a-z]) ", "", text)
    text = text.replace("\\(dq", '"').replace("\\(aq", "'").replace("\\&", "")
    return re.sub(r" ([,.;:)])", r"\1", " ".join(text.split()))


TEXT = plain(PAGE)
WORDS = set(re.findall(r"[A-Za-z_][\w./-]*\w", TEXT)) | set(re.findall(r"\b[a-z]\b", TEXT))


def rows(name: str) -> list[list[str]]:
    """Return the cells of a table of the page; the header is the one with `Sy`."""
    found = re.search(rf'(?s)^\.\\" begin {name}\n(.*?)^\.\\" end {name}$', PAGE, re.MULTILINE)
    assert found, f"the page has no table {name}"
    lines = re.findall(r"(?m)^\.It (.+)$", found[1])
    return [re.split(r" Ta (?:Pa )?", line) for line in lines if "Sy " not in line]


def missing(names: Iterable[str]) -> list[str]:
    """Return the names that are nowhere in the page, not even as the last part of another."""
    return sorted(
        name
        for name in names
        if name not in WORDS
        and not any(word.endswith(f".{name}") or word.startswith(f"{name}.") for word in WORDS)
    )


@pytest.fixture
async def endpoints(state: Path) -> Sequence[Route]:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        made = await assemble(settings, stack)
        return public_rows(made.services, made.streaming)


def test_every_endpoint_of_media_has_its_row() -> None:
    forms = {IMAGE_EDIT, TRANSCRIPTION, TRANSLATION}
    assert rows("media") == [
        [
            f"BASE{each.path}",
            "form" if each in forms else "JSON",
            ".".join(each.permission or ("none",)),
            " ".join(each.fields),
        ]
        for each in MEDIA_ENDPOINTS
    ]


def test_every_path_that_reaches_a_model_has_its_row() -> None:
    decided: dict[str, list[str]] = {}
    for (_, path), path_of_model in MODEL_PATHS.items():
        if path_of_model.is_administration or path.endswith("{index}"):
            continue
        named = re.sub(r"/tasks/\w+/", "/tasks/TASK/", path).replace("{id}", "ID")
        for base in BASES if not path.endswith("/messages") else ():
            named = re.sub(rf"^{base}/(?=(?:{ENDS}|responses/\w+)$)", "BASE/", named)
        decided[named] = [path_of_model.prompt, path_of_model.documents, path_of_model.filters]
    assert {name: said for name, *said in rows("model paths")} == decided


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_a_row_for_each_field(name: str) -> None:
    assert [row[0] for row in rows(name)] == list(TABLES[name].samples)


@pytest.mark.parametrize("name", TABLES)
async def test_a_table_says_what_sources_get(name: str) -> None:
    table = TABLES[name]
    tried = []
    async with converting() as conversions:
        for label, *said in rows(name):
            kinds = KINDS[: len(said)]
            sample = table.samples[label]
            tried.append([label, *[await conversions.outcome(table, sample, kind) for kind in kinds]])
    assert rows(name) == tried


def test_the_table_of_other_sources_says_what_they_get() -> None:
    tried = []
    for name in ("OpenAI messages", "OpenAI fields"):
        for label, sample in TABLES[name].samples.items():
            outcomes = [outcome(convert, sample) for convert in CONVERTERS.values()]
            if set(outcomes) != {"left out"}:
                tried.append([label, *outcomes])
    assert rows("other sources") == tried


@pytest.mark.parametrize("name", TABLES)
def test_what_a_parser_reads_is_in_the_page(name: str) -> None:
    table = TABLES[name]
    seen: set[str] = set()
    for sample in table.samples.values():
        with contextlib.suppress(GatewayError):
            table.parse(note({"model": "m", **table.base, **sample.request}, seen))
    assert missing(seen) == []


@pytest.mark.parametrize("kind", ["anthropic", "ollama"])
def test_what_a_source_reads_is_in_the_page(kind: str) -> None:
    seen: set[str] = set()
    for name in ("OpenAI messages", "OpenAI fields"):
        for sample in TABLES[name].samples.values():
            asked = note({"model": "m", **TABLES[name].base, **sample.request}, seen)
            with contextlib.suppress(GatewayError):
                if kind == "anthropic":
                    anthropic_source.to_request(asked)
                else:
                    ollama_source.to_request(asked, stream=False)
    assert missing(seen) == []


@pytest.mark.parametrize("what", NAMES)
def test_names_are_in_the_page(what: str) -> None:
    assert NAMES[what]
    assert missing(NAMES[what]) == []


@pytest.mark.parametrize("sentence", SENTENCES)
def test_numbers_are_those_of_the_code(sentence: str) -> None:
    assert sentence in TEXT


async def test_every_endpoint_has_its_line(endpoints: Sequence[Route]) -> None:
    listed = [(method, path) for method, path in rows("endpoints")]
    served = [
        (row.method, spelled(row))
        for row in endpoints
        if row.tag in TAGS and (row.dialect is not RouteDialect.NATIVE or row.tag == "chat")
    ]
    assert listed == list(dict.fromkeys(served))


def spelled(row: Route) -> str:
    """Return a path as the page has it."""
    path = re.sub(r"/\{index:.*\}$", "", row.path)
    path = re.sub(r"\{([a-z]+)(:[^}]*)?\}", lambda found: found[1].upper(), path)
    if path.startswith("/openai/deployments/") or row.tag == "batches":
        return path
    bases = [base for base in BASES if row.dialect is RouteDialect.OPENAI and path.startswith(f"{base}/")]
    return f"BASE{path.removeprefix(max(bases, key=len))}" if bases else path


def test_each_base_address_is_named_wherever_they_are_listed() -> None:
    for place in ("BASE\nstands for", "The base address may end in any of"):
        listed = PAGE[PAGE.index(place) :].partition("\nThey are")[0].partition("\nAll need")[0]
        assert re.findall(r"(?m)^\.Pa (/\S+)", listed) == list(BASES)


def test_every_reason_is_mapped_as_the_page_says() -> None:
    assert dict(map(tuple, rows("FINISH_REASONS"))) == anthropic_completion.FINISH_REASONS
    assert dict(map(tuple, rows("STOP_REASONS"))) == anthropic_reply.STOP_REASONS


def test_every_kind_of_failure_has_its_line() -> None:
    assert [row[0] for row in rows("STATUSES")] == list(ErrorKind)
    said = {kind: (int(status), openai, messages) for kind, status, openai, messages in rows("STATUSES")}
    assert said == {kind.value: told for kind, told in STATUSES.items()}
    assert dict(re.findall(r"(?m)^\.Ic (\w+) No \((\d+)\)", PAGE)) == {
        code: str(status) for code, status in CODE_STATUSES.items()
    }


def test_every_status_of_a_provider_has_its_kind() -> None:
    said = {
        int(status): kind
        for cells, kind in rows("PROVIDER_STATUSES")
        for status in re.findall(r"\d{3}", cells)
    }
    assert said == failures._KINDS_BY_STATUS


def test_every_reason_of_a_provider_has_its_code_status_and_type() -> None:
    found = [row[0] for row in rows("REASONS")]
    assert found == list(RefusalReason)
    for code, kind, *told in rows("REASONS"):
        error = GatewayError(failures.KINDS_BY_REASON[RefusalReason(code)], "no", provider_code=code)
        assert error.kind == kind
        assert told == [
            f"{status_of(error, dialect)} {type_of(error, dialect)}"
            for dialect in (RouteDialect.OPENAI, RouteDialect.ANTHROPIC)
        ]
    makers = PAGE.partition("begin TEXT_EMBEDDERS")[2].partition("end TEXT_EMBEDDERS")[0]
    assert set(re.findall(r"(?m)^\.Cm (\w+)", makers)) == TEXT_EMBEDDERS
    exact = PAGE.partition("begin EXACT_CODES")[2].partition("end EXACT_CODES")[0]
    assert set(re.findall(r"(?m)^\.Ic (\w+)", exact)) == refusal_reasons.EXACT_CODES


def test_every_beta_has_its_parts() -> None:
    words = {"config": "output_config {}", "cache": "cache_control {}", "tool_fields": "members {} of tools"}
    prefixes = {"edits", "tools", "blocks"}
    said = {}
    for beta, parts in betas.PARTS.items():
        told = []
        for item in fields(parts):
            names = [
                f"{name}*" if item.name in prefixes else name for name in sorted(getattr(parts, item.name))
            ]
            names = [name.replace("_**", "_*") for name in names]
            if names:
                told.append(words.get(item.name, item.name + " {}").format(", ".join(names)))
        said[beta] = ", ".join(told)
    assert dict(map(tuple, rows("betas"))) == said


def test_every_host_has_its_betas() -> None:
    said = {
        host.value: ", ".join(sorted(rules.betas or ())) or f"all but {', '.join(sorted(rules.lacking))}"
        for host, rules in hosts.HOST_RULES.items()
        if host is not hosts.MessageHost.NATIVE
    }
    assert {host: told for host, _, told in rows("hosts")} == said
    for host, name, _ in rows("hosts"):
        assert hosts.host_of(name.replace("REGION", "us-east-1").replace("NAME", "n")) == host


def test_settings_that_the_page_names_exist() -> None:
    settings = {"custom_api_key_header", "request_body_limit", "stream_head_timeout"}
    keys = {"kind", "prefix", "connections", "connect_timeout", "stream_idle_timeout", "timeout"}
    assert missing(settings | keys) == []
    assert settings <= set(definitions())
    assert keys <= {name for name, _, _ in table_fields("providers")}


LIMITS = {
    "bytes of any other body": body.MAX_SMALL_BODY_BYTES,
    "lists and objects of any other body": json_decoder.SMALL_LIMITS.containers,
    "values of any other body": json_decoder.SMALL_LIMITS.values,
    "bytes of memory of one text": json_decoder.MAX_TEXT_BYTES,
    "lists and objects of a request to a model": json_decoder.LARGE_LIMITS.containers,
    "values of a request to a model": json_decoder.LARGE_LIMITS.values,
    "bytes of a chat or a message": chats_routes.MAX_CHAT_BYTES,
    "lists and objects of a chat": json_decoder.BULK_LIMITS.containers,
    "values of a chat": json_decoder.BULK_LIMITS.values,
    "messages of a chat": chats_parser.MAX_MESSAGES,
    "bytes of the messages of a chat that accepts further ones": records.MAX_CHAT_BYTES,
    "values of a message, and of a chat without its messages": storable.MAX_VALUES,
    "values of a member of a list of a message that events write": storable.MAX_MEMBER_VALUES,
    "characters of a non-ASCII text in a message": storable.MAX_TEXT_CHARACTERS,
    "chats of an import": transfer.MAX_IMPORTED_CHATS,
    "bytes of an import": chats_routes.MAX_IMPORT_BYTES,
    "bytes of an import over the control socket": stored_chats.MAX_IMPORT_BYTES,
    "bytes of a whole answer": provider_client.MAX_ANSWER_BYTES,
    "lists and objects of a whole answer": provider_client.ANSWER_LIMITS.containers,
    "values of a whole answer": provider_client.ANSWER_LIMITS.values,
    f"lists and objects of an event over {limits.LARGE_EVENT_BYTES} bytes": limits.MAX_EVENT_CONTAINERS,
    f"commas of an event over {limits.LARGE_EVENT_BYTES} bytes": limits.MAX_EVENT_COMMAS,
}


def test_every_limit_of_bodies_and_answers_is_in_the_page() -> None:
    assert {label: int(number) for label, number in rows("limits")} == LIMITS


def test_the_tables_of_provider_rules_are_those_of_the_code() -> None:
    assert with_provider_rules(PAGE) == PAGE, "it is out of date: run python -m tests.write_provider_rules"
