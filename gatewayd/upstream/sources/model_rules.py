"""Chooses the rules of each model of one provider, and changes requests to them."""

import logging
import re
from collections import OrderedDict
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import orjson
from yarl import URL

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.adaptation import adapt
from gatewayd.dialects.providers.changes import change_rules
from gatewayd.dialects.providers.family import (
    ENGINES,
    TEXT_EMBEDDERS,
    Family,
    family_of,
    maker_of_host,
    takes_cache,
)
from gatewayd.dialects.providers.history import repair_in_slices
from gatewayd.dialects.providers.live import add_live_rules
from gatewayd.dialects.providers.message_request import adapt_message_request, limit_cache
from gatewayd.dialects.providers.message_rules import NO_MESSAGE_RULES
from gatewayd.dialects.providers.message_table import find_history_rules, with_details
from gatewayd.dialects.providers.rules import NO_RULES, Rules
from gatewayd.dialects.providers.table import find_message_rules, find_rules
from gatewayd.dialects.providers.tables_anthropic import CHAT_TO_MESSAGES
from gatewayd.dialects.providers.tables_makers import CHAT_TO_RUNTIME
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind

log = logging.getLogger(__name__)

MAX_REMEMBERED_MODELS: Final = 10_000
"""Maximum number of models whose rules are remembered; beyond it all are chosen anew."""

OF_KINDS: Final = {SourceKind.ANTHROPIC: CHAT_TO_MESSAGES, SourceKind.OLLAMA: CHAT_TO_RUNTIME}
"""What the protocols of sources that convert chat requests have no counterpart for."""

NATIVE_FIELDS: Final = frozenset({"top_k", "safety_settings"})
"""Fields that Gemini takes in its own protocol, but not in that of chat completions."""

MAX_LOGGED_CHARACTERS: Final = 1_000
"""Maximum number of characters of a warning in the log; its caller gets all of it."""

MAX_LOGGED_FORMS: Final = 2_000
"""Maximum number of models and forms of warnings that are remembered; the oldest is forgotten."""

MAX_LOGGED_OF_FORM: Final = 32
"""Maximum number of warnings of one form that are logged for a model: their callers choose the values."""

_VALUES: Final = re.compile(r"(?<=^left out ).+?(?=:|$)|'[^']*'|\"[^\"]*\"|\d+")
"""What differs between warnings of one form."""


class ModelRules:
    """The rules of the models of one provider; those of a model are worked out at its first request.

    Later ones go before earlier ones: the table of the maker, the list of models, the settings, the record.
    """

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._host = URL(config.base_url).host or ""
        self._converting = OF_KINDS.get(config.kind)
        self._chosen: dict[str, tuple[Model, Rules]] = {}
        self._logged: OrderedDict[tuple[str, str], set[int]] = OrderedDict()

    def of(self, model: Model) -> Rules:
        """Return the rules of a model; raise invalid_request if its record has a bad one."""
        known = self._chosen.get(model.id)
        if known is not None and known[0] is model:
            return known[1]
        rules = self._choose(model)
        if len(self._chosen) >= MAX_REMEMBERED_MODELS:
            self._chosen.clear()
        self._chosen[model.id] = (model, rules)
        return rules

    def are_none(self, model: Model) -> bool:
        """Return whether requests to a model stay as they are, and go in the protocol of chats."""
        return not model.rules and self._converting is None and self.of(model) is NO_RULES

    def adapt(self, body: Body, model: Model, context: CallContext, *, is_responses: bool = False) -> Body:
        """Return the chat request for a model; what was left out or changed is added to the warnings.

        With `is_responses` the source reaches the model in the Responses protocol. A source of another
        protocol, which converts the request, gets it without the fields that the other protocol lacks.
        """
        rules = self._converting or self.of(model)
        if rules is NO_RULES and not context.is_converted:
            return body
        adapted, warnings = adapt(body, rules, is_converted=context.is_converted, is_responses=is_responses)
        for sentence in warnings:
            self.warn(sentence, model, context)
        return adapted

    def adapt_message(self, request: Body, model: Model, context: CallContext) -> None:
        """Change a request of the Anthropic protocol, which was made from a chat request, in place."""
        rules = self.of(model)
        warnings: list[str] = []
        if rules is not NO_RULES:
            adapt_message_request(request, rules, warnings)
        limit_cache(request, warnings)
        for sentence in warnings:
            self.warn(sentence, model, context)

    def takes_tokens(self, model: Model) -> bool:
        """Return False if the embeddings of a model's maker take texts only, and no token numbers."""
        return self._family(model).maker not in TEXT_EMBEDDERS

    def takes_cache(self, model: Model) -> bool:
        """Return whether a model takes `cache_control` in chat requests."""
        return takes_cache(self._family(model))

    def limit_cache(self, request: Body, model: Model, context: CallContext) -> None:
        """Leave as many blocks with `cache_control` as a model takes, in place."""
        warnings: list[str] = []
        limit_cache(request, warnings)
        for sentence in warnings:
            self.warn(sentence, model, context)

    @property
    def maker(self) -> str:
        """The maker of the settings or of the host name, "" if neither tells one."""
        return self._config.maker or maker_of_host(self._host)

    def repairs(self, model: Model) -> bool:
        """Return False if the messages of a model's requests need no repair."""
        return self.of(model).messages is not NO_MESSAGE_RULES

    async def repair(
        self, body: Body, model: Model, context: CallContext, *, is_responses: bool = False
    ) -> Body:
        """Return the request with its messages as a model takes them; itself if they need no repair.

        With `is_responses` it goes to the model in the Responses protocol, which has a place for encrypted
        reasoning. Raises invalid_request for a last message that the model cannot take.
        """
        rules, messages = self.of(model).messages, body.get("messages")
        if rules is NO_MESSAGE_RULES or not isinstance(messages, list):
            return body
        if is_responses:
            rules = with_details(rules)
        repaired = await repair_in_slices(messages, rules, has_tools=bool(body.get("tools")))
        if repaired.messages is messages:
            return body
        for sentence in repaired.warnings:
            self.warn(sentence, model, context)
        if context.watch is not None:
            context.watch.call_ids = repaired.ids
        return {**body, "messages": repaired.messages}

    def warn(self, sentence: str, model: Model, context: CallContext) -> None:
        """Add a sentence to the warnings of a request, and to the log unless it stands there already."""
        context.warnings.append(sentence)
        sentence = sentence[:MAX_LOGGED_CHARACTERS]
        if self._is_new(sentence, model):
            log.warning(
                "request changed: %s", sentence, extra={"source": self._config.name, "model": model.id}
            )

    def _is_new(self, sentence: str, model: Model) -> bool:
        """Return whether a warning is to be logged; one caller can use up the room of one form only."""
        key = (model.id, _VALUES.sub("*", sentence))
        known = self._logged.setdefault(key, set())
        self._logged.move_to_end(key)
        if len(self._logged) > MAX_LOGGED_FORMS:
            self._logged.popitem(last=False)
        number = hash(sentence)
        if number in known or len(known) >= MAX_LOGGED_OF_FORM:
            return False
        known.add(number)
        return True

    def _family(self, model: Model) -> Family:
        config, maker = self._config, self.maker
        if not maker and config.kind is SourceKind.OPENAI:
            listed = as_mapping(model.detail.get("openai"))
            maker = ENGINES.get(as_text(listed.get("owned_by")), "")
        return family_of(config.kind.value, self._host, model.upstream_id, model.family, maker)

    def _choose(self, model: Model) -> Rules:
        config, listed = self._config, model.detail.get("openai")
        family = self._family(model)
        is_anthropic = config.kind is SourceKind.ANTHROPIC
        rules = add_live_rules(find_message_rules(family) if is_anthropic else find_rules(family), listed)
        if config.kind is SourceKind.GEMINI and rules.known:
            rules = replace(rules, known=rules.known | NATIVE_FIELDS)
        history = find_history_rules(family)
        if history is not NO_MESSAGE_RULES:
            rules = replace(rules, messages=history)
        for pattern, changes in config.rules:
            if fnmatchcase(family.name, pattern) or fnmatchcase(model.upstream_id, pattern):
                rules = change_rules(rules, orjson.loads(changes))
        return change_rules(rules, model.rules, "meta.provider_rules") if model.rules else rules
