"""Source for Azure: the OpenAI protocol with the names of deployments as models."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode

from gatewayd.catalog.records import Model
from gatewayd.errors import GatewayError
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_list import select_models
from gatewayd.upstream.sources.openai import OpenAiSource
from gatewayd.upstream.sources.provider_client import lacks_listing

SUFFIXES: Final = ("/openai/v1", "/openai")
"""Ends of a base URL that the source writes itself."""

DEPLOYMENT_PATHS: Final = frozenset(
    {"/audio/speech", "/audio/transcriptions", "/audio/translations", "/chat/completions", "/completions"}
    | {"/embeddings", "/images/edits", "/images/generations"}
)
"""Endpoints that have the deployment in their path; all others have it in the body."""


class AzureSource(OpenAiSource):
    """A resource of Azure; its base URL may end in `/openai` or `/openai/v1`.

    With an API version requests go to the paths of the deployments, without one to `/openai/v1`.
    """

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        self._query = "?" + urlencode({"api-version": config.api_version}) if config.api_version else ""
        for suffix in SUFFIXES:
            config = config.without_suffix(suffix)
        root = "/openai" if config.api_version else "/openai/v1"
        maker = config.maker or "azure"
        super().__init__(replace(config, base_url=config.base_url + root, maker=maker), client)

    async def list_models(self) -> Sequence[Model]:
        """Return the deployments of the settings, after a request that shows whether the key is taken.

        The list of Azure names models that could be deployed, not the deployments.
        """
        try:
            await self._exchange.get(self._path("/models", ""))
        except GatewayError as error:
            if not lacks_listing(error):
                raise
        found = [{"id": name} for name in self._config.models]
        return await select_models(self._config, found, "azure", self._detail)

    def _path(self, path: str, model: str) -> str:
        """Return the path of an endpoint, of a deployment or with the model in the body."""
        if self._query and model and path in DEPLOYMENT_PATHS:
            return f"/deployments/{quote(model, safe='')}{path}{self._query}"
        return path + self._query
