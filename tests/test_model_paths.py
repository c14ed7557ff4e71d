"""Whoever asks a source for an answer is decided: a new caller fails here until it is written down.

What holds for each path from outside is in `tests.fakes.http.samples_models`, and tested in
`tests.blackbox.test_model_paths`.
"""

import ast
from pathlib import Path

TOP = Path(__file__).parents[1] / "gatewayd"

ASKING = frozenset(
    {"complete", "stream", "complete_message", "stream_message", "count_message"}
    | {"embed", "forward", "exchange", "rerank"}
)
"""Methods of sources, and of models for documents; beside them `ask` of the failover between sources."""

# The pipeline, and what has the record, the filters and the identity applied before it asks.
DECIDED = {
    "pipeline/pipeline.py": {"ask", "complete", "complete_message", "stream", "stream_message"},
    "pipeline/passthrough.py": {"ask", "forward"},
    "pipeline/embeddings.py": {"ask", "embed"},
    "pipeline/media/rerank.py": {"ask", "rerank"},
    # It asks `InputFilters.alters_requests` first.
    "pipeline/token_counts.py": {"count_message"},
    "pipeline/media/service.py": {"ask", "exchange"},
    # The runtimes' native protocol: http/public/runtime.py asks `InputFilters.alters_requests` first.
    "catalog/runtimes.py": {"ask", "forward"},
    "http/public/model_runtimes/routes.py": {"forward"},
    # Administrators: the list of models of a provider that is tested.
    "upstream/sources/tester.py": {"forward"},
    # Administrators: nothing but names of models, and a generation of nothing.
    "http/public/model_runtimes/admin.py": {"forward"},
    # Administrators: refused where a record or filters have a part.
    "http/public/model_runtimes/unknown_paths.py": {"forward"},
}

# Asks one of the above.
THROUGH = {
    "pipeline/tools/loop.py": {"complete", "stream"},
}

# Models for documents: no chat model, no record and no filter is for them.
DOCUMENTS = {
    "plugin_host/completions.py": {"embed"},
    "plugins/open_webui/modules/app.py": {"embed"},
    "ingest/embedder.py": {"embed"},
    "knowledge/retrieval.py": {"embed", "rerank"},
    "upstream/services/embedders.py": {"embed"},
    "vectors/models/fastembed_models.py": {"rerank"},
}

# Sources themselves, and what only has a method of the same name.
OTHERS = {
    # The end of a sign-in by a provider.
    "http/public/accounts/oauth.py": {"complete"},
    "builtin_model/source.py": {"complete", "forward", "stream"},
    # It hands over to the Responses protocol of the same provider.
    "upstream/sources/openai.py": {"complete", "exchange", "forward", "stream"},
    "upstream/sources/ollama.py": {"exchange", "forward"},
    "pipeline/stream.py": {"stream"},
    "pipeline/filters/streams.py": {"stream"},
    "http/public/batches/files.py": {"stream"},
    "http/public/files/upload.py": {"stream"},
    # Replies to repeated requests, and streams that go on without their client.
    "http/idempotency.py": {"complete"},
    "http/public/completions/chat.py": {"stream"},
    "http/public/completions/messages.py": {"stream"},
    # The gateway's own reranker, which is the source itself.
    "knowledge/reranker_source.py": {"rerank"},
}


def asked_in(path: Path) -> set[str]:
    """Return the methods of sources that a module calls."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    methods = [call for call in calls if isinstance(call, ast.Attribute)]
    failovers = [call for call in methods if call.attr == "ask" and "failover" in ast.unparse(call.value)]
    return {call.attr for call in (*failovers, *methods) if call in failovers or call.attr in ASKING}


def test_every_caller_of_a_source_is_decided() -> None:
    known = {name: calls for part in (DECIDED, THROUGH, DOCUMENTS, OTHERS) for name, calls in part.items()}
    found = {path.relative_to(TOP).as_posix(): asked_in(path) for path in TOP.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == known
