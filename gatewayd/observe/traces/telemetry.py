"""Traces and metrics of requests and calls of models, sent to a collector by OTLP over HTTP.

The SDK queues spans and sends them in threads of its own; a collector that is away or slow costs spans, never
a request. Its other options come from the environment (OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER,
OTEL_RESOURCE_ATTRIBUTES and so on). No span has content, a query, or the values of a path.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes, ServedRequest
from gatewayd.metering.records import CallOutcome, MeteredCall
from gatewayd.observe.metrics.calls import LabelLimit
from gatewayd.observe.traces import conventions as names
from gatewayd.observe.traces.options import TelemetryOptions

SCOPE: Final = "gatewayd"
TRACES_PATH: Final = "/v1/traces"
METRICS_PATH: Final = "/v1/metrics"
TRACEPARENT: Final = "traceparent"
NO_ERRORS: Final = frozenset({CallOutcome.ANSWERED, CallOutcome.CANCELLED})


class HeadedRequest(Protocol):
    """A request with headers, whose names are read in any case."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        ...


class RequestSpans:
    """A `http.observation.RequestWatcher` that makes a span of each request.

    A `traceparent` of the client (W3C Trace Context, 3.2) makes the span a part of the client's trace; a
    malformed one is ignored.
    """

    def __init__(self, tracer: trace.Tracer | None, meter: "TelemetryMeter | None") -> None:
        self._tracer = tracer
        self._meter = meter
        self._context = TraceContextTextMapPropagator()
        self.is_on = True

    @property
    def watches_begin(self) -> bool:
        """Whether requests have spans."""
        return self._tracer is not None

    def begun(self, notes: RequestNotes, request: HeadedRequest) -> None:
        """Start the span of a request."""
        if self._tracer is None:
            return
        given = request.headers.get(TRACEPARENT)
        parent = None
        if given is not None:
            state = request.headers.get("tracestate", "")
            parent = self._context.extract({TRACEPARENT: given, "tracestate": state})
        notes.parent = self._tracer.start_span("request", parent, SpanKind.SERVER)

    def served(self, served: ServedRequest) -> None:
        """End the span of a request."""
        if self._meter is not None:
            self._meter.count_request(served)
        span = served.notes.parent
        if not isinstance(span, Span):
            return
        span.update_name(f"{served.method} {served.route}")
        span.set_attributes(
            {
                names.HTTP_METHOD: served.method,
                names.HTTP_ROUTE: served.route,
                names.HTTP_STATUS: served.status,
                names.CLIENT_ADDRESS: served.client,
                names.REQUEST_ID: served.request_id,
            }
        )
        if served.status >= 500:
            span.set_attribute(names.ERROR_TYPE, str(served.status))
            span.set_status(Status(StatusCode.ERROR))
        span.end()


class CallSpans:
    """A `metering.interfaces.CallObserver` that makes a span of each call of a model, below its request.

    The span goes to the provider as `traceparent`.
    """

    def __init__(self, tracer: trace.Tracer | None, meter: "TelemetryMeter | None") -> None:
        self._tracer = tracer
        self._meter = meter
        self._open: dict[MeteredCall, Span] = {}

    def begun(self, call: MeteredCall) -> None:
        """Start the span of a call."""
        if self._tracer is None:
            return
        notes = CURRENT_NOTES.get()
        above = None if notes is None else notes.parent
        parent = trace.set_span_in_context(above) if isinstance(above, Span) else None
        span = self._tracer.start_span(f"{operation_of(call)} {call.model}", parent, SpanKind.CLIENT)
        self._open[call] = span
        if notes is not None:
            notes.traceparent = header_of(span)

    def first(self, call: MeteredCall) -> None:
        """Do nothing: the end of the call tells when its first part came."""

    def finished(self, call: MeteredCall) -> None:
        """End the span of a call."""
        if self._meter is not None:
            self._meter.count_call(call)
        span = self._open.pop(call, None)
        if span is None:
            return
        span.set_attributes(attributes_of(call) | usage_of(call))
        if call.request_id:
            span.set_attribute(names.REQUEST_ID, call.request_id)
        if call.is_stream and call.first_at:
            span.set_attribute(names.TIME_TO_FIRST_CHUNK, call.first_seconds)
        if call.outcome not in NO_ERRORS:
            span.set_status(Status(StatusCode.ERROR))
        span.end()


class TelemetryMeter:
    """The metrics of the conventions; models over a limit are `other`."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(SCOPE)
        self._models = LabelLimit()
        self._duration = meter.create_histogram(
            names.DURATION, "s", explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS
        )
        self._first = meter.create_histogram(
            names.FIRST_CHUNK, "s", explicit_bucket_boundaries_advisory=names.FIRST_CHUNK_BOUNDS
        )
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE, "{token}", explicit_bucket_boundaries_advisory=names.TOKEN_BOUNDS
        )
        self._requests = meter.create_histogram(
            names.HTTP_DURATION, "s", explicit_bucket_boundaries_advisory=names.HTTP_BOUNDS
        )

    def count_request(self, served: ServedRequest) -> None:
        """Count a request."""
        labels: dict[str, str | int] = {
            names.HTTP_METHOD: served.method,
            names.HTTP_ROUTE: served.route,
            names.HTTP_STATUS: served.status,
        }
        self._requests.record(served.seconds, labels)

    def count_call(self, call: MeteredCall) -> None:
        """Count a call; tokens that no provider told are not reported."""
        labels = attributes_of(call) | {names.REQUEST_MODEL: self._models.of(call.model)}
        del labels[names.REQUEST_STREAM]
        self._duration.record(call.seconds, labels)
        if call.is_stream and call.first_at:
            self._first.record(call.first_seconds, labels)
        labels.pop(names.ERROR_TYPE, None)
        if call.usage is not None and not call.is_estimated and call.usage.total:
            self._tokens.record(call.usage.prompt, {**labels, names.TOKEN_TYPE: "input"})
            self._tokens.record(call.usage.completion, {**labels, names.TOKEN_TYPE: "output"})


class OpenTelemetry:
    """Both watchers over their exporters; nothing is registered globally."""

    def __init__(self, options: TelemetryOptions) -> None:
        resource = Resource.create({"service.name": options.service_name, "service.version": options.version})
        self._traces: TracerProvider | None = None
        self._metrics: MeterProvider | None = None
        base = options.endpoint.rstrip("/")
        if options.has_traces:
            self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
            exporter = OTLPSpanExporter(endpoint=base + TRACES_PATH if base else None)
            self._traces.add_span_processor(BatchSpanProcessor(exporter))
        if options.has_metrics:
            reader = PeriodicExportingMetricReader(
                OTLPMetricExporter(endpoint=base + METRICS_PATH if base else None)
            )
            self._metrics = MeterProvider([reader], resource, shutdown_on_exit=False)
        tracer = None if self._traces is None else self._traces.get_tracer(SCOPE, options.version)
        meter = None if self._metrics is None else TelemetryMeter(self._metrics)
        self.requests = RequestSpans(tracer, meter)
        self.calls = CallSpans(tracer, meter)

    def close(self) -> None:
        """Send what waits, and end the threads; it blocks."""
        self.requests.is_on = False
        for provider in (self._traces, self._metrics):
            if provider is not None:
                provider.shutdown()


def operation_of(call: MeteredCall) -> str:
    """Return the name of the operation of a call."""
    return names.OPERATIONS.get(call.endpoint, call.endpoint)


def attributes_of(call: MeteredCall) -> dict[str, Any]:
    """Return the attributes of an ended call that a span and its metrics have."""
    found: dict[str, Any] = {
        names.OPERATION_NAME: operation_of(call),
        names.PROVIDER_NAME: call.source,
        names.REQUEST_MODEL: call.model,
        names.REQUEST_STREAM: call.is_stream,
    }
    if call.outcome not in NO_ERRORS:
        found[names.ERROR_TYPE] = call.error_kind or str(call.outcome)
    return found


def usage_of(call: MeteredCall) -> dict[str, int]:
    """Return the tokens that a provider told of a call."""
    usage = call.usage
    if usage is None or call.is_estimated or not usage.total:
        return {}
    found = {names.INPUT_TOKENS: usage.prompt, names.OUTPUT_TOKENS: usage.completion}
    parts = {
        names.CACHE_READ_TOKENS: usage.cached,
        names.CACHE_WRITTEN_TOKENS: usage.cache_written,
        names.REASONING_TOKENS: usage.reasoning,
    }
    return found | {name: count for name, count in parts.items() if count}


def header_of(span: Span) -> str:
    """Return the `traceparent` of a span (W3C Trace Context, 3.2)."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
