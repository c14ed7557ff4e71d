"""Whoever asks a source for an answer is decided: a new caller fails here until it is written down.

What holds for each path from outside is in `tests.fakes.samples_models`, and tested in
`tests.blackbox.test_model_paths`.
"""

import ast
from pathlib import Path

TOP = Path(__file__).parents[1] / "gatewayd"

ASKING = frozenset(
    {"ask", "complete", "stream", "complete_message", "stream_message", "embed", "forward", "rerank"}
)
"""Methods of sources, of the failover between them, and of models for documents."""

# The pipeline, and what has the record, the filters and the identity applied before it asks.
DECIDED = {
    "chat/pipeline.py": {"ask", "complete", "complete_message", "stream", "stream_message"},
    "chat/forwarding.py": {"ask", "forward"},
    "chat/embeddings.py": {"ask", "embed"},
    # The runtimes' native protocol: http/public/runtime.py asks `InputFilters.take_part` first.
    "catalog/runtimes.py": {"ask", "forward"},
    "http/public/runtime.py": {"forward"},
    # Administrators: nothing but names of models, and a generation of nothing.
    "http/public/runtime_admin.py": {"forward"},
}

# Asks one of the above.
THROUGH = {
    "chat/toolloop.py": {"complete", "stream"},
    "chat/toolbox.py": {"ask"},
    "chat/taskmodels.py": {"ask"},
}

# Models for documents: no chat model, no record and no filter is for them.
DOCUMENTS = {
    "host/completions.py": {"embed"},
    "plugins/names/app.py": {"embed"},
    "ingest/embedding.py": {"embed"},
    "knowledge/retrieval.py": {"embed", "rerank"},
    "upstream/embedders.py": {"embed"},
    "vectors/loading.py": {"rerank"},
}

# Sources themselves, and what only has a method of the same name.
OTHERS = {
    "upstream/builtin.py": {"complete", "forward", "stream"},
    "upstream/openai.py": {"forward"},
    "upstream/ollama.py": {"forward"},
    "chat/stream.py": {"stream"},
    "chat/filtered_streams.py": {"stream"},
    "events/service.py": {"ask"},
    "http/public/file_uploads.py": {"stream"},
    "plugins/items.py": {"ask"},
    "plugins/loaded.py": {"ask"},
    "upstream/toolservers.py": {"ask"},
}


def asked_in(path: Path) -> set[str]:
    """Return the methods among ASKING that a module calls on something that is not itself."""
    return {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING
    }


def test_every_caller_of_a_source_is_decided() -> None:
    known = {name: calls for part in (DECIDED, THROUGH, DOCUMENTS, OTHERS) for name, calls in part.items()}
    found = {path.relative_to(TOP).as_posix(): asked_in(path) for path in TOP.rglob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == known
