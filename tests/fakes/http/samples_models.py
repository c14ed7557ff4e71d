"""The paths that reach a model, and what is decided for each; a path that is not here reaches none."""

from dataclasses import dataclass
from enum import StrEnum

from gatewayd.http.routes import BASES
from tests.fakes.http.samples import MESSAGES, PLACES, Row


class Decision(StrEnum):
    """What becomes of something on a path."""

    APPLIES = "applies"
    # The request is refused in a sentence where it would have to.
    REFUSES = "refuses"
    # The path has nothing that it could apply to.
    NONE = "none"


@dataclass(frozen=True)
class ModelPath:
    """One path; rights hold on all of them, and identity is told to the provider wherever it is asked.

    `prompt` and `documents` are those of the model's record, `filters` the inlets. Of a path for
    administrators rights are those of the row.
    """

    prompt: Decision
    documents: Decision
    filters: Decision
    is_administration: bool = False


CHAT = ModelPath(Decision.APPLIES, Decision.APPLIES, Decision.APPLIES)
TEXTS = ModelPath(Decision.REFUSES, Decision.REFUSES, Decision.APPLIES)
TASK = ModelPath(Decision.APPLIES, Decision.NONE, Decision.APPLIES)
SHOWN = ModelPath(Decision.NONE, Decision.NONE, Decision.NONE)
KEPT = ModelPath(Decision.NONE, Decision.NONE, Decision.NONE, is_administration=True)

BELOW_BASES = {
    "/chat/completions": CHAT,
    "/completions": TEXTS,
    "/responses": CHAT,
    "/responses/input_tokens": CHAT,
    "/responses/compact": CHAT,
    "/embeddings": TEXTS,
    "/images/generations": TEXTS,
    "/images/edits": TEXTS,
    "/audio/speech": TEXTS,
    "/audio/transcriptions": TEXTS,
    "/audio/translations": TEXTS,
    "/moderations": TEXTS,
    "/rerank": TEXTS,
}
RUNTIME = {
    "/api/chat": CHAT,
    "/api/generate": CHAT,
    "/api/embed": TEXTS,
    "/api/embeddings": TEXTS,
    "/api/show": SHOWN,
}
ADMINISTRATION = (
    ("POST", "/api/pull"),
    ("POST", "/api/push"),
    ("DELETE", "/api/push"),
    ("POST", "/api/create"),
    ("POST", "/api/copy"),
    ("DELETE", "/api/delete"),
    ("POST", "/api/unload"),
)

MODEL_PATHS: dict[Row, ModelPath] = {
    **{("POST", base + path): decided for base in BASES for path, decided in BELOW_BASES.items()},
    ("POST", "/openai/deployments/{id}/chat/completions"): CHAT,
    ("POST", "/openai/deployments/{id}/embeddings"): TEXTS,
    ("POST", "/v2/rerank"): TEXTS,
    **{("POST", path): CHAT for path in MESSAGES},
    **{("POST", f"/ollama{path}{place}"): decided for path, decided in RUNTIME.items() for place in PLACES},
    **{(method, f"/ollama{path}{place}"): KEPT for method, path in ADMINISTRATION for place in PLACES},
    **{(method, "/ollama/api/{path}"): KEPT for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
    **{("POST", f"/api/v1/tasks/{task}/completions"): TASK for task in ("title", "tags", "follow_up")},
}

CONTROL_PATHS = {("POST", "/v1/chat"): CHAT}
"""Those of the control socket."""
