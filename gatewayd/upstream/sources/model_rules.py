"""Chooses the rules of each model of one provider, and changes requests to them."""

import logging
from typing import Final

from yarl import URL

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.adaptation import adapt
from gatewayd.dialects.providers.family import family_of
from gatewayd.dialects.providers.rules import Rules
from gatewayd.dialects.providers.table import find_rules
from gatewayd.upstream.sources.config import ProviderConfig

log = logging.getLogger(__name__)

MAX_REMEMBERED_MODELS: Final = 10_000
"""Maximum number of models whose rules are remembered; beyond it all are chosen anew."""

MAX_LOGGED_WARNINGS: Final = 2_000
"""Maximum number of warnings that are remembered to be logged only once."""


class ModelRules:
    """The rules of the models of one provider; those of a model are worked out at its first request."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._host = URL(config.base_url).host or ""
        self._chosen: dict[str, tuple[Model, Rules]] = {}
        self._logged: set[tuple[str, str]] = set()

    def of(self, model: Model) -> Rules:
        """Return the rules of a model."""
        known = self._chosen.get(model.id)
        if known is not None and known[0] is model:
            return known[1]
        rules = self._choose(model)
        if len(self._chosen) >= MAX_REMEMBERED_MODELS:
            self._chosen.clear()
        self._chosen[model.id] = (model, rules)
        return rules

    def adapt(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return the request for a model; what was left out or changed is added to the warnings."""
        adapted, warnings = adapt(body, self.of(model), is_converted=context.is_converted)
        for sentence in warnings:
            self.warn(sentence, model, context)
        return adapted

    def warn(self, sentence: str, model: Model, context: CallContext) -> None:
        """Add a sentence to the warnings of a request, and to the log unless it stands there already."""
        context.warnings.append(sentence)
        key = (model.id, sentence)
        if key not in self._logged and len(self._logged) < MAX_LOGGED_WARNINGS:
            self._logged.add(key)
            log.warning(
                "request changed: %s", sentence, extra={"source": self._config.name, "model": model.id}
            )

    def _choose(self, model: Model) -> Rules:
        config = self._config
        return find_rules(
            family_of(config.kind.value, self._host, model.upstream_id, model.family, config.maker)
        )
