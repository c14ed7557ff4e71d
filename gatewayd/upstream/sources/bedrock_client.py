"""Client of Bedrock over botocore, in threads: calls, event streams, and their failures as `GatewayError`.

botocore reads and writes synchronously, so each call and each step of a stream runs in a thread of a bounded
pool. A call that is abandoned has its connection shut down, so that its thread ends.
"""

import asyncio
import importlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import orjson
from yarl import URL

from gatewayd import json_decoder
from gatewayd.catalog.interfaces import CallContext
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.sources.provider_client import ANSWER_LIMITS, MAX_ANSWER_BYTES

MAX_CALLS: Final = 64
"""Maximum number of calls at once, each of which has a thread; further ones wait."""

MIN_SECRET_CHARACTERS: Final = 8
"""Minimum length of a part of the key, and of a header, that is removed from errors; others are words."""

DEFAULT_REGION: Final = "us-east-1"

EVENT_STATUSES: Final = {
    "throttlingException": 429,
    "validationException": 400,
    "serviceUnavailableException": 503,
}
"""Statuses of the failures in a stream by their names; others are failures of the provider."""

UNREACHABLE: Final = frozenset(
    {"EndpointConnectionError", "ConnectTimeoutError", "ConnectionClosedError", "ProxyConnectionError"}
    | {"SSLError", "ConnectionError"}
)
LATE: Final = frozenset({"ReadTimeoutError"})
REFUSED: Final = frozenset({"ParamValidationError"})
"""Errors of botocore by their names: of the connection, of a late answer, of parameters that it refuses."""


class BedrockClient:
    """Calls the operations of Bedrock; the library is loaded, and its clients are made, at the first call."""

    def __init__(self, config: ProviderConfig) -> None:
        self.failures = ProviderFailures(config.name, config.key, secrets=_secrets(config))
        self._config = config
        self._limit = min(MAX_CALLS, config.connections)
        self._pool = ThreadPoolExecutor(max_workers=self._limit, thread_name_prefix="bedrock")
        self._slots = asyncio.Semaphore(self._limit)
        self._making = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._extra = threading.local()
        self._is_installed = False

    async def call(
        self, service: str, operation: str, parameters: Mapping[str, Any], context: CallContext | None = None
    ) -> dict[str, Any]:
        """Return the answer of an operation; `service` is bedrock or bedrock-runtime."""
        answer: dict[str, Any] = await self._run(lambda: self._call(service, operation, parameters, context))
        return answer

    async def invoke(
        self, model_id: str, body: Mapping[str, Any], context: CallContext
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Send a request in the form of a model; return its answer and the headers, names in lower case."""
        parameters = {
            "modelId": model_id,
            "body": orjson.dumps(body),
            "contentType": "application/json",
            "accept": "application/json",
        }
        raw, headers = await self._run(lambda: self._read_invoked(parameters, context))
        try:
            answer = await json_decoder.decode(raw, ANSWER_LIMITS)
        except GatewayError as error:
            raise self.failures.broken("its answer is not JSON of the expected size") from error
        if not isinstance(answer, dict):
            raise self.failures.broken("its answer is not a JSON object")
        return answer, headers

    async def _run(self, work: Callable[[], Any]) -> Any:
        await self.take_slot()
        job = None
        try:
            job = self.submit(work)
        finally:
            if job is None:
                self.give_slot()
        # An abandoned call keeps its thread until it ends, and so its slot.
        job.add_done_callback(lambda _: self.give_slot())
        try:
            async with TimeLimit(self._config.timeouts.total):
                return await asyncio.shield(job)
        except TimeoutError as error:
            raise self.late() from error

    async def take_slot(self) -> None:
        """Wait for a thread, as long as for a connection; raises upstream_unreachable."""
        try:
            async with TimeLimit(self._config.timeouts.connect):
                await self._slots.acquire()
        except TimeoutError as error:
            sentence = f"all of its {self._limit} connections are in use"
            raise self.failures.error(ErrorKind.UPSTREAM_UNREACHABLE, sentence) from error

    def give_slot(self) -> None:
        """Let the next call begin."""
        self._slots.release()

    def submit(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run work in a thread; the future has its result, or its failure as `GatewayError`."""
        if not self._is_installed:
            if not is_installed(PackageExtra.BEDROCK):
                raise missing_extra_error("cannot use a provider of kind bedrock", PackageExtra.BEDROCK)
            self._is_installed = True
        job = asyncio.get_running_loop().run_in_executor(self._pool, self._translated, work)
        job.add_done_callback(_note_failure)
        return job

    def open(self, parameters: Mapping[str, Any], context: CallContext) -> Any:
        """Begin a stream, in a thread, and return the event stream of the library."""
        return self._call("bedrock-runtime", "converse_stream", parameters, context)["stream"]

    def late(self) -> GatewayError:
        """Return the error for an answer that takes too long."""
        return self.failures.error(ErrorKind.TIMEOUT, "it did not answer in time")

    def close(self) -> None:
        """Let the threads end; a step that waits for the provider is not awaited."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for client in self._clients.values():
            client.close()

    def _call(
        self, service: str, operation: str, parameters: Mapping[str, Any], context: CallContext | None
    ) -> dict[str, Any]:
        identity = self._config.identity
        named = identity.for_model(context) if identity is not None and context is not None else {}
        self._extra.headers = {**named, **dict(self._config.headers)}
        answer: dict[str, Any] = getattr(self._client(service), operation)(**parameters)
        return answer

    def _read_invoked(
        self, parameters: Mapping[str, Any], context: CallContext
    ) -> tuple[bytes, dict[str, str]]:
        answer = self._call("bedrock-runtime", "invoke_model", parameters, context)
        stream = answer["body"]
        try:
            raw: bytes = stream.read(MAX_ANSWER_BYTES + 1)
        finally:
            stream.close()
        if len(raw) > MAX_ANSWER_BYTES:
            raise self.failures.broken(f"its answer is over {MAX_ANSWER_BYTES} bytes")
        told = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return raw, {name.lower(): value for name, value in told.items()}

    def _client(self, service: str) -> Any:
        with self._making:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def _make(self, service: str) -> Any:
        session = importlib.import_module("botocore.session").Session()
        botocore = importlib.import_module("botocore")
        timeouts, key = self._config.timeouts, self._config.key
        options: dict[str, Any] = {
            "connect_timeout": timeouts.connect,
            "read_timeout": max(timeouts.first_byte, timeouts.idle),
            "retries": {"total_max_attempts": 1},
            "max_pool_connections": self._limit,
        }
        is_bearer = key is not None and ":" not in key
        if is_bearer:
            options["signature_version"] = botocore.UNSIGNED
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        credentials = dict(zip(names, key.split(":", 2), strict=False)) if key and not is_bearer else {}
        client = session.create_client(
            service,
            region_name=region_of(self._config.base_url),
            endpoint_url=endpoint_of(service, self._config.base_url),
            config=importlib.import_module("botocore.config").Config(**options),
            **credentials,
        )
        client.meta.events.register("before-call", self._add_headers)
        return client

    def _add_headers(self, params: dict[str, Any], **_: object) -> None:
        """Add the headers of the settings, those that name the user, and a key that is no signature."""
        params["headers"].update(self._extra.headers)
        key = self._config.key
        if key is not None and ":" not in key:
            params["headers"]["Authorization"] = f"Bearer {key}"

    def _translated(self, work: Callable[[], Any]) -> Any:
        errors = importlib.import_module("botocore.exceptions")
        broken = importlib.import_module("botocore.eventstream").ParserError
        transport = importlib.import_module("urllib3.exceptions").HTTPError
        try:
            return work()
        except errors.EventStreamError as error:
            raise self._of_stream(error) from error
        except errors.ClientError as error:
            raise self._of_answer(error) from error
        except (errors.BotoCoreError, broken, transport, OSError) as error:
            raise self._of_library(error) from error

    def _of_answer(self, error: Any) -> GatewayError:
        told, meta = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
        body = orjson.dumps({"message": str(told.get("Message", "")), "code": str(told.get("Code", ""))})
        headers = {name.title(): value for name, value in meta.get("HTTPHeaders", {}).items()}
        return self.failures.from_answer(int(meta.get("HTTPStatusCode", 500)), headers, body)

    def _of_stream(self, error: Any) -> GatewayError:
        told = error.response.get("Error", {})
        status = EVENT_STATUSES.get(str(told.get("Code", "")), 500)
        return self.failures.from_event({"message": str(told.get("Message", "")), "status": status})

    def _of_library(self, error: Exception) -> GatewayError:
        name, sentence = type(error).__name__, self.failures.clean(str(error))
        if name in UNREACHABLE:
            return self.failures.error(ErrorKind.UPSTREAM_UNREACHABLE, sentence)
        if name in LATE:
            return self.late()
        if name in REFUSED:
            return self.failures.error(ErrorKind.INVALID_REQUEST, sentence)
        return self.failures.broken(sentence)


def region_of(base_url: str) -> str:
    """Return the region that the host name has, as in `bedrock-runtime.eu-west-1.amazonaws.com`."""
    labels = (URL(base_url).host or "").split(".")
    is_own = len(labels) > 3 and labels[0].startswith("bedrock") and "amazonaws" in labels
    return labels[1] if is_own else DEFAULT_REGION


def endpoint_of(service: str, base_url: str) -> str:
    """Return the address of a service: of the maker's own host names the one beside that of the models."""
    url = URL(base_url)
    host = url.host or ""
    if service == "bedrock" and host.startswith("bedrock-runtime.") and "amazonaws" in host:
        return str(url.with_host(host.replace("bedrock-runtime", "bedrock", 1)))
    return base_url


def shut_down(stream: Any) -> None:
    """End the reads of an event stream, so that a thread that waits for one ends; from any thread.

    To close it would not wake the thread. What has ended already stays as it is.
    """
    raw = getattr(stream, "_raw_stream", None)
    with suppress(OSError, RuntimeError, ValueError):
        if raw is not None:
            raw.shutdown()


def _secrets(config: ProviderConfig) -> tuple[str, ...]:
    parts = config.key.split(":")[1:] if config.key else []
    found = (*parts, *(value for _, value in config.headers))
    return tuple(text for text in found if len(text) >= MIN_SECRET_CHARACTERS)


def _note_failure(job: "asyncio.Future[Any]") -> None:
    """Mark the error of a job as seen when nobody waits any more."""
    if not job.cancelled():
        job.exception()
