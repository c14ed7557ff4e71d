"""A resource of Azure: its paths, its key, the names of its deployments, and its refusals in its words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tests.fakes.providers.strict.responses import StrictResponses
from tests.fakes.providers.upstream import Recorded, Reply, json_reply, openai_chunk, sse

API_VERSION: Final = "2025-04-01-preview"
"""The only version that paths of deployments take."""

KEY_REFUSAL: Final = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key"
    " for an active subscription and use a correct regional API endpoint for your resource."
)
NO_DEPLOYMENT: Final = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5"
    " minutes, please wait a moment and try again."
)

FILTER_RESULTS: Final = [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}]


class StrictAzure(StrictResponses):
    """The resource. `models` are the names of its deployments."""

    def __init__(self, models: Sequence[str] = ("prod",)) -> None:
        super().__init__(models)

    def _default(self, request: Recorded) -> Reply:
        if request.headers.get("api-key") != self.key or "Authorization" in request.headers:
            return json_reply({"error": {"code": "401", "message": KEY_REFUSAL}}, 401)
        path = request.path.removeprefix("/openai")
        if path.startswith("/v1/"):
            return self._plain(request, path.removeprefix("/v1"))
        if request.query.get("api-version") != API_VERSION:
            return json_reply({"error": {"code": "BadRequest", "message": "API version not supported"}}, 400)
        if not path.startswith("/deployments/"):
            return self._plain(request, path) if path in ("/models", "/responses") else _not_found()
        _, _, name, inner = path.split("/", 3)
        if name not in self.models:
            return json_reply({"error": {"code": "DeploymentNotFound", "message": NO_DEPLOYMENT}}, 404)
        return self._plain(request, f"/{inner}")

    def _plain(self, request: Recorded, path: str) -> Reply:
        if path == "/completions":
            return json_reply({"object": "text_completion", "choices": []})
        headers = {"Authorization": f"Bearer {self.key}"}
        reply = super()._default(replace(request, path=f"/v1{path}", headers=headers))
        if path != "/chat/completions" or not request.json.get("stream"):
            return reply
        # The results of the filter of the prompt come first, in a chunk without a choice.
        first = {**openai_chunk(), "choices": [], "model": "", "prompt_filter_results": FILTER_RESULTS}
        return replace(reply, steps=[sse(first), *reply.steps])


def _not_found() -> Reply:
    return json_reply({"error": {"code": "404", "message": "Resource not found"}}, 404)
