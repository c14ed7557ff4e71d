"""OpenTelemetry, against a collector that decodes what it gets."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gatewayd.assembly.metrics.services import CLOSE_SECONDS, close_telemetry
from gatewayd.http.observation import RequestObservation
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.measurement.request_notes import with_trace
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage
from gatewayd.observe.metrics.requests import RequestMetrics
from gatewayd.observe.traces.options import TelemetryOptions
from gatewayd.observe.traces.telemetry import OpenTelemetry, attributes_of, usage_of
from tests.fakes.http.public_app import Client, serving
from tests.fakes.providers.models import make_actor

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Receives OTLP over HTTP and answers with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.traces: list[Any] = []
        self.metrics: list[Any] = []

    async def take_traces(self, request: web.Request) -> web.Response:
        self.traces.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(status=self.status)

    async def take_metrics(self, request: web.Request) -> web.Response:
        self.metrics.append(ExportMetricsServiceRequest.FromString(await request.read()))
        return web.Response(status=self.status)

    def spans(self) -> list[Any]:
        return [
            span
            for sent in self.traces
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def points(self) -> dict[str, list[Any]]:
        return {
            metric.name: list(metric.histogram.data_points)
            for sent in self.metrics
            for resource in sent.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
async def collector() -> AsyncIterator[tuple[Collector, str]]:
    made = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", made.take_traces)
    app.router.add_post("/v1/metrics", made.take_metrics)
    async with TestServer(app) as server:
        yield made, str(server.make_url(""))


def plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def observed(telemetry: OpenTelemetry, answer: Callable[[], None] = lambda: None) -> Any:
    """Serve a row that makes one call of a model, and answers with the header that the provider gets."""
    meter = CallMeter([telemetry.calls])

    async def ask(request: web.Request) -> web.StreamResponse:
        call = meter.begin(
            make_actor(), "gpt-5", "chat", {"messages": "secret"}, request_id="r-1", is_stream=True
        )
        call.source = "openai"
        sent = with_trace({}).get("traceparent", "")
        answer()
        meter.first(call)
        meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=10, cached=4, completion=3))
        return web.Response(text=sent)

    rows = [Route("GET", "/ask/{id}", ask, RouteAccess.PUBLIC, "Ask")]
    return serving(rows, observation=RequestObservation(RequestMetrics(), (telemetry.requests,)))


def options(endpoint: str, **switches: bool) -> TelemetryOptions:
    return TelemetryOptions("gateway of a test", "1.2", endpoint, **switches)


async def ask(client: Client, **headers: str) -> str:
    reply = await client.get("/ask/secret?key=secret", headers=headers)
    assert reply.status == 200
    return await reply.text()


async def test_a_request_and_its_call_are_spans_of_the_trace_of_the_client(
    collector: tuple[Collector, str],
) -> None:
    found, endpoint = collector
    telemetry = OpenTelemetry(options(endpoint))
    async with observed(telemetry) as client:
        sent = await ask(client, traceparent=f"00-{TRACE}-{SPAN}-01", **{"X-Request-Id": "r-1"})
    await asyncio.to_thread(telemetry.close)
    call, request = found.spans()
    assert request.trace_id.hex() == call.trace_id.hex() == TRACE
    assert (request.parent_span_id.hex(), call.parent_span_id) == (SPAN, request.span_id)
    assert sent == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert (request.name, call.name) == ("GET /ask/{id}", "chat gpt-5")
    assert (request.kind, call.kind) == (request.SPAN_KIND_SERVER, call.SPAN_KIND_CLIENT)
    assert plain(request.attributes) == {
        "http.request.method": "GET",
        "http.route": "/ask/{id}",
        "http.response.status_code": 200,
        "client.address": "127.0.0.1",
        "gatewayd.request_id": "r-1",
    }
    facts = plain(call.attributes)
    assert facts.pop("gen_ai.response.time_to_first_chunk") > 0
    assert facts == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gatewayd.request_id": "r-1",
    }
    assert plain(found.traces[0].resource_spans[0].resource.attributes)["service.name"] == "gateway of a test"
    assert b"secret" not in b"".join(sent.SerializeToString() for sent in (*found.traces, *found.metrics))
    points = found.points()
    assert set(points) == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "http.server.request.duration",
    }
    tokens = {
        plain(point.attributes)["gen_ai.token.type"]: point.sum
        for point in points["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": 10, "output": 3}


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00",
        "x" * 8000,
        f"00-{'0' * 32}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        "00-é-é-01",
    ],
)
async def test_a_malformed_trace_of_a_client_begins_a_new_one(
    collector: tuple[Collector, str], given: str
) -> None:
    found, endpoint = collector
    telemetry = OpenTelemetry(options(endpoint, has_metrics=False))
    async with observed(telemetry) as client:
        assert len(await ask(client, traceparent=given)) == 55
    await asyncio.to_thread(telemetry.close)
    assert not found.spans()[1].parent_span_id
    assert not found.metrics


async def test_without_traces_no_header_goes_to_a_provider(collector: tuple[Collector, str]) -> None:
    found, endpoint = collector
    telemetry = OpenTelemetry(options(endpoint, has_traces=False))
    async with observed(telemetry) as client:
        assert await ask(client, traceparent=f"00-{TRACE}-{SPAN}-01") == ""
    await asyncio.to_thread(telemetry.close)
    assert not found.traces
    assert found.metrics


@pytest.mark.parametrize("status", [400, None])
async def test_a_collector_that_fails_touches_no_request(
    collector: tuple[Collector, str],
    status: int | None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    found, endpoint = collector
    found.status = status or 200
    telemetry = OpenTelemetry(options(endpoint if status else "http://127.0.0.1:9", has_metrics=False))
    async with observed(telemetry) as client:
        for _ in range(20):
            began = time.perf_counter()
            await ask(client)
            assert time.perf_counter() - began < 2
    began = time.perf_counter()
    await close_telemetry(telemetry.close)
    assert time.perf_counter() - began < CLOSE_SECONDS + 2
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("outcome", "kind", "error"),
    [
        (CallOutcome.FAILED, "timeout", "timeout"),
        (CallOutcome.CUT, "", "cut"),
        (CallOutcome.ANSWERED, "", None),
        (CallOutcome.CANCELLED, "", None),
    ],
)
def test_an_error_has_its_type_and_tokens_that_nobody_told_are_left_out(
    outcome: CallOutcome, kind: str, error: str | None
) -> None:
    call = MeteredCall("u", (), "", "m", "rerank")
    call.outcome, call.error_kind = outcome, kind
    call.usage, call.is_estimated = TokenUsage(5), True
    assert attributes_of(call).get("error.type") == error
    assert attributes_of(call)["gen_ai.operation.name"] == "rerank"
    assert usage_of(call) == {}
    call.is_estimated = False
    assert usage_of(call) == {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 0}
