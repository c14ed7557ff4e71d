"""Tests for gatewayd.http.connections.request_uses."""

from dataclasses import fields
from typing import cast

from gatewayd.http.connections.request_uses import BOUND_NAMES, ConcurrencyBounds, RequestUse
from gatewayd.http.public.completions.embeddings import EmbeddingRoutes
from gatewayd.http.public.model_runtimes.routes import RuntimeRoutes
from gatewayd.pipeline.embeddings import MAX_PARALLEL, EmbeddingService


def test_every_use_is_counted_under_bounds_that_exist() -> None:
    assert tuple(each.name for each in fields(ConcurrencyBounds)) == BOUND_NAMES
    assert {name for use in RequestUse for name in use.counted} == set(BOUND_NAMES)
    assert ConcurrencyBounds(1, 2, 0, 4).named() == {"connections": 1, "uploads": 2, "streams": 4}
    assert [use.place for use in RequestUse] == list(range(len(RequestUse)))
    assert RequestUse.PROBE.counted == ()
    assert len({use.label for use in RequestUse}) == len(RequestUse)


def test_requests_to_providers_are_counted_with_their_connections() -> None:
    rows = [
        *EmbeddingRoutes(cast(EmbeddingService, None), body_limit=1).routes(),
        *RuntimeRoutes.routes(RuntimeRoutes.__new__(RuntimeRoutes)),
    ]
    files = {row.path.partition("/{")[0]: row.use.files for row in rows if row.path != "/ollama"}
    parallel = {path for path, count in files.items() if count == 1 + MAX_PARALLEL}
    assert "/ollama/api/embed" in parallel
    assert all(path.endswith(("/embeddings", "/embed", "/openai/deployments")) for path in parallel)
    assert min(files.values()) == 2
