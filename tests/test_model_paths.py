"""Whoever asks a source for an answer is decided: a new caller fails here until it is written down.

What holds for each path from outside is in `tests.fakes.http.samples_models`, and tested in
`tests.blackbox.test_model_paths`.
"""

import ast
from pathlib import Path

TOP = Path(__file__).parents[1] / "gatewayd"

ASKING = frozenset(
    {"complete", "stream", "complete_message", "stream_message", "count_message"}
    | {"embed", "forward", "exchange", "rerank", "complete_at_once", "stream_at_once", "embed_at_once"}
    | {"complete_message_at_once", "stream_message_at_once"}
)
"""Methods of sources, and of models for documents; beside them `ask` of the failover between sources."""

# The pipeline, and what has the record, the filters and the identity applied before it asks.
DECIDED = {
    "pipeline/pipeline.py": {"ask", "complete", "complete_message", "stream", "stream_message"},
    # Leaves requests with records that alter them, filters, limits or tools to the pipeline.
    "pipeline/fast_path.py": {
        *("complete_at_once", "stream_at_once", "complete_message_at_once", "stream_message_at_once"),
    },
    "pipeline/fast_embeddings.py": {"embed_at_once"},
    # Batches whose lines have no record that alters them and no filter: `batches/passed_choice.py` asks.
    "upstream/sources/batches.py": {"exchange", "forward"},
    # What counts each call, for the four after it.
    "pipeline/metered.py": {"ask"},
    "pipeline/passthrough.py": {"forward"},
    "pipeline/embeddings.py": {"embed"},
    "pipeline/media/rerank.py": {"rerank"},
    # It asks `InputFilters.alters_requests` first.
    "pipeline/token_counts.py": {"count_message"},
    "pipeline/media/service.py": {"exchange"},
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
    # Replies to repeated requests, and streams that go on without their client.
    "http/idempotency.py": {"complete"},
    "http/idempotent_uploads.py": {"stream"},
    "http/public/responses/routes.py": {"stream"},
    "http/public/completions/chat.py": {"stream"},
    "http/public/completions/messages.py": {"stream"},
    # The gateway's own reranker, which is the source itself.
    "knowledge/reranker_source.py": {"rerank"},
}


def asked_in(path: Path) -> set[str]:
    """Return the methods of sources that a module calls; `ask` also where it is handed on."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    methods = {call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr in ASKING}
    asks = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "ask")
    return methods | {node.attr for node in asks if "failover" in ast.unparse(node.value)}


def test_every_caller_of_a_source_is_decided() -> None:
    known = {name: calls for part in (DECIDED, THROUGH, DOCUMENTS, OTHERS) for name, calls in part.items()}
    found = {path.relative_to(TOP).as_posix(): asked_in(path) for path in TOP.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == known
