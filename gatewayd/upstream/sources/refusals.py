"""Remembers which harmless fields the models of a provider refused; later requests go without them."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from gatewayd.dialects.providers.field_changes import RefusedField, change_field
from gatewayd.dialects.providers.refused_fields import quotes_caller, read_refusal

log = logging.getLogger(__name__)

LEARNT_SECONDS: Final = 3600.0
"""How long a refusal is remembered."""

MAX_LEARNT_MODELS: Final = 1_000
"""Maximum number of models of a provider with remembered refusals; the oldest is forgotten."""

MAX_LEARNT_FIELDS: Final = 32
"""Maximum number of remembered refusals of a model; the oldest is forgotten."""

MAX_RETRIES: Final = 4
"""Maximum number of times that a request is sent again, each time without another field."""

REFUSED_STATUSES: Final = frozenset({400, 422})
"""Statuses of a refusal that may name a field."""

ADAPTED_PATHS: Final = ("/chat/completions", "/responses", "/messages", "/api/chat")
"""Ends of the paths whose requests are changed; before them may be a deployment, after them a query."""


CONVERTED_FIELDS: Final = frozenset({"include", "summary"})
"""Fields that the gateway itself writes into Responses requests that it makes; `responses` reads refusals."""

_FieldKey = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class ChangedRequest:
    """A request without refused fields, with a sentence for each change.

    `fields` are those to remember.
    """

    body: Mapping[str, Any]
    sentences: tuple[str, ...] = ()
    fields: tuple[RefusedField, ...] = ()


class RefusalMemory:
    """The refusals of one provider, by the model that `body["model"]` names."""

    def __init__(self, provider: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider = provider
        self._clock = clock
        self._learnt: OrderedDict[str, OrderedDict[_FieldKey, tuple[RefusedField, float]]] = OrderedDict()

    @property
    def has_learnt(self) -> bool:
        """Whether any refusal is remembered."""
        return bool(self._learnt)

    def apply(self, path: str, body: Mapping[str, Any], kept: Container[str] = ()) -> ChangedRequest:
        """Return the request without what its model refused lately; the same body if there is nothing.

        Fields named in `kept` stay.
        """
        if not self._learnt or not _is_adapted(path):
            return ChangedRequest(body)
        model = _model_of(path, body)
        known = self._learnt.get(model)
        if known is None:
            return ChangedRequest(body)
        now = self._clock()
        for key in [key for key, (_, until) in known.items() if until <= now]:
            del known[key]
        if not known:
            del self._learnt[model]
        return self._change(body, [field for field, _ in known.values() if field.name not in kept])

    def answer(
        self, path: str, body: Mapping[str, Any], status: int, refusal: bytes, kept: Container[str] = ()
    ) -> ChangedRequest | None:
        """Return the request to send once more after a refusal, with the fields in `kept`; None for none."""
        if status not in REFUSED_STATUSES or not _is_adapted(path):
            return None
        answer, text = _json_in(refusal), refusal[:65_536].decode("utf-8", "replace")
        fields = [field for field in read_refusal(answer, text, body) if field.name not in kept]
        changed = self._change(body, fields)
        if not changed.sentences:
            return None
        names = [field.name for field in changed.fields]
        return replace(changed, fields=()) if quotes_caller(answer, text, body, names) else changed

    def remember(self, path: str, changed: ChangedRequest) -> None:
        """Remember the fields of a request that was accepted without them.

        A refusal is not remembered before: its sentence may quote the request of its caller, and name a field
        that the provider takes. One that does quote it has no fields, as other callers must not lose theirs.
        """
        if not changed.fields:
            return
        model, until = _model_of(path, changed.body), self._clock() + LEARNT_SECONDS
        known = self._learnt.setdefault(model, OrderedDict())
        self._learnt.move_to_end(model)
        for field in changed.fields:
            known[(field.name, field.value, field.beside)] = (field, until)
        while len(known) > MAX_LEARNT_FIELDS:
            known.popitem(last=False)
        while len(self._learnt) > MAX_LEARNT_MODELS:
            self._learnt.popitem(last=False)
        for sentence in changed.sentences:
            log.warning(
                "request sent again: %s", sentence, extra={"source": self._provider, "model": f"{model:.256}"}
            )

    def _change(self, body: Mapping[str, Any], fields: list[RefusedField]) -> ChangedRequest:
        changed = dict(body)
        done = tuple(field for field in fields if change_field(changed, field))
        return ChangedRequest(changed, tuple(map(self._tell, done)), done) if done else ChangedRequest(body)

    def _tell(self, field: RefusedField) -> str:
        reason = f"provider {self._provider!r} refused it"
        if field.limit:
            return f"changed {field.name} to {field.limit}: {reason}"
        if field.rename:
            return f"renamed {field.name} to {field.rename}: {reason}"
        if field.replacement:
            return f"changed {field.name} to {field.replacement!r}: {reason}"
        return f"left out {field.name}: {reason}"


def _is_adapted(path: str) -> bool:
    return path.partition("?")[0].endswith(ADAPTED_PATHS)


def _model_of(path: str, body: Mapping[str, Any]) -> str:
    """Return the name of the model, or the path if that names it, as with deployments."""
    model = body.get("model")
    return model if isinstance(model, str) and model else path


def _json_in(refusal: bytes) -> object:
    try:
        return orjson.loads(refusal)
    except orjson.JSONDecodeError:
        return None
