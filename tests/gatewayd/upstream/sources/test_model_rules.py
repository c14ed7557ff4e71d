"""Tests for gatewayd.upstream.sources.model_rules, and of a source over a strict provider."""

import logging

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.upstream.sources import model_rules
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.model_rules import ModelRules

MODEL = Model("m", "m", "openai", "acme", "m")


def test_a_warning_is_told_always_and_logged_once(monkeypatch, caplog) -> None:
    monkeypatch.setattr(
        model_rules, "adapt", lambda body, rules, is_converted: ({"changed": True}, ["left out x"])
    )
    rules = ModelRules(ProviderConfig("acme", SourceKind.OPENAI, "http://acme.test"))
    contexts = [CallContext("r1", "u1"), CallContext("r2", "u1")]
    with caplog.at_level(logging.WARNING):
        for context in contexts:
            assert rules.adapt({"x": 1}, MODEL, context) == {"changed": True}
    assert [context.warnings for context in contexts] == [["left out x"], ["left out x"]]
    assert [record.message for record in caplog.records] == ["request changed: left out x"]
