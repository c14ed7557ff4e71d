"""Counts of calls of models; a `metering.interfaces.CallObserver`."""

from typing import Final

from gatewayd.measurement.cells import OTHER, CounterCell, HistogramCell, counters, histograms
from gatewayd.metering.interfaces import ignore_call
from gatewayd.metering.records import CallOutcome, MeteredCall
from gatewayd.observe.metrics.families import FIRST_TOKEN_BOUNDS, HTTP_BOUNDS

MAX_MODELS: Final = 200
"""Maximum number of models, and of providers, with label values of their own; all others are `other`."""

MAX_LABEL_CHARACTERS: Final = 128
TOKEN_TYPES: Final = ("prompt", "completion", "cached", "cache_written", "reasoning")


CUT_KIND: Final = "cut"
"""Kind of the error of an answer that broke off."""


class LabelLimit:
    """Label values of a kind: the first `limit` different ones stay, all others become `other`."""

    def __init__(self, limit: int = MAX_MODELS) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def of(self, value: str) -> str:
        """Return the label value for a name; a long name is shortened."""
        value = value[:MAX_LABEL_CHARACTERS]
        if value in self._known:
            return value
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(value)
        return value


class CallTally:
    """The cells of one provider and model."""

    __slots__ = ("duration", "first", "tokens")

    def __init__(
        self, duration: HistogramCell, first: HistogramCell, tokens: tuple[CounterCell, ...]
    ) -> None:
        self.duration = duration
        self.first = first
        self.tokens = tokens


class CallMetrics:
    """Calls of models by provider and model.

    A call that ended before a provider was asked has the provider `""`.
    """

    def __init__(self, max_models: int = MAX_MODELS) -> None:
        self.in_flight = 0
        self.streams = 0
        self.calls = counters()
        self.tokens = counters()
        self.durations = histograms(HTTP_BOUNDS)
        self.first_tokens = histograms(FIRST_TOKEN_BOUNDS)
        self.errors = counters()
        self.retries = counters()
        self._models = LabelLimit(max_models)
        self._providers = LabelLimit(max_models)
        self._tallies: dict[tuple[str, ...], CallTally] = {}
        self._outcomes: dict[tuple[str, str, str, CallOutcome | None], tuple[CounterCell, CallTally]] = {}

    def begun(self, call: MeteredCall) -> None:
        """Count a call in flight."""
        self.in_flight += 1
        self.streams += call.is_stream

    # The end of the call tells when its first part came.
    first = ignore_call

    def finished(self, call: MeteredCall) -> None:
        """Count an ended call."""
        self.in_flight -= 1
        self.streams -= call.is_stream
        outcome = call.outcome
        found = self._outcomes.get((call.source, call.model, call.endpoint, outcome))
        counted, tally = found or self._outcome(call)
        counted.value += 1
        tally.duration.observe(call.ended_at - call.began)
        if call.first_at and call.is_stream:
            tally.first.observe(call.first_at - call.began)
        usage = call.usage
        if usage is not None:
            sent, read, stored, received, thought = usage
            prompt, completion, cached, written, reasoning = tally.tokens
            prompt.value += sent
            completion.value += received
            if read or stored or thought:
                cached.value += read
                written.value += stored
                reasoning.value += thought
        if outcome is not CallOutcome.ANSWERED or call.attempts + call.retries > 1:
            self._count_troubles(call)

    def _count_troubles(self, call: MeteredCall) -> None:
        provider = self._providers.of(call.source)
        again = max(0, call.attempts - 1) + call.retries
        if again:
            self.retries.at(provider).value += again
        kind = call.error_kind or (CUT_KIND if call.outcome is CallOutcome.CUT else "")
        if kind:
            self.errors.at(provider, kind).value += 1

    def _tally(self, *labels: str) -> CallTally:
        """Return the tally of a provider and model; models over the limit share one."""
        tally = self._tallies.get(labels)
        if tally is None:
            tally = self._tallies[labels] = CallTally(
                self.durations.at(*labels),
                self.first_tokens.at(*labels),
                tuple(self.tokens.at(*labels, each) for each in TOKEN_TYPES),
            )
        return tally

    def _outcome(self, call: MeteredCall) -> tuple[CounterCell, CallTally]:
        """Return the counter and the tally of a call; a model over the limit is found anew each time."""
        provider, model = self._providers.of(call.source), self._models.of(call.model)
        found = (
            self.calls.at(provider, model, call.endpoint, call.outcome or ""),
            self._tally(provider, model),
        )
        if (provider, model) == (call.source, call.model):
            self._outcomes[provider, model, call.endpoint, call.outcome] = found
        return found
