"""A short description of the rules in force for each provider, for `gatewayd --check`; pure."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase
from typing import Final

import orjson

from gatewayd.catalog.records import Model
from gatewayd.dialects.providers.family import canonical_name, known_family
from gatewayd.dialects.providers.message_rules import NO_MESSAGE_RULES, MessageRules
from gatewayd.dialects.providers.rules import NO_RULES, Rules
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_rules import ModelRules

MAX_LINES: Final = 100
"""Maximum number of models and patterns of one provider that are described."""

_NOT_COUNTED: Final = frozenset({"title", "messages", "touched"})


def summarize(config: ProviderConfig) -> Iterator[str]:
    """Yield a line for a provider, and one for each model and pattern that the settings name.

    Without any there is one for its other models, of which only requests tell the family. Raises
    invalid_request for a bad change.
    """
    rules = ModelRules(config)
    yield f"provider {config.name}: kind {config.kind.value}, maker {rules.maker or 'unknown'}"
    families = dict(config.families)
    named = dict.fromkeys((*config.models, *families, *(pattern for pattern, _ in config.rules), "*"))
    for number, name in enumerate(named):
        if number >= MAX_LINES:
            yield f"  and {len(named) - MAX_LINES} more"
            return
        upstream_id = name.removeprefix(config.prefix)
        family = families.get(name) or known_family(upstream_id)
        model = Model(name, name, "", config.name, upstream_id, family=family)
        count = _count(rules.of(model))
        shown = f"family {family or canonical_name(upstream_id)}, " if name != "*" else ""
        added = sorted(set(_added(config, upstream_id, family)))
        told = f", {len(added)} of the settings: {', '.join(added)}" if added else ""
        yield f"  {name}: {shown}{count} {'rule' if count == 1 else 'rules'}{told}"


def _added(config: ProviderConfig, upstream_id: str, family: str) -> Iterator[str]:
    """Yield the names of the changes that the settings make for a model, or for the same pattern."""
    known: Sequence[str] = (upstream_id, canonical_name(family or upstream_id))
    for pattern, changes in config.rules:
        if any(fnmatchcase(name, pattern) for name in known):
            yield from orjson.loads(changes)


def _count(rules: Rules) -> int:
    """Return how many rules differ from those of an unknown model."""
    own = (each.name for each in fields(Rules) if each.name not in _NOT_COUNTED)
    count = sum(bool(getattr(rules, name) != getattr(NO_RULES, name)) for name in own)
    for each in fields(MessageRules):
        count += bool(getattr(rules.messages, each.name) != getattr(NO_MESSAGE_RULES, each.name))
    return count
