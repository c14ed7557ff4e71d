"""Factory of sources: opens the source for a configured provider."""

from gatewayd.catalog.interfaces import ModelSource
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.anthropic import AnthropicSource
from gatewayd.upstream.sources.azure import AzureSource
from gatewayd.upstream.sources.bedrock import BedrockSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.gemini import GeminiSource
from gatewayd.upstream.sources.ollama import OllamaSource
from gatewayd.upstream.sources.openai import OpenAiSource


def open_source(config: ProviderConfig, client: UpstreamClient | None = None) -> ModelSource:
    """Return the source for `config`, to be closed by the caller; needs a running loop.

    `client` replaces the HTTP client, which the source then closes too.
    """
    match config.kind:
        case SourceKind.OPENAI:
            return OpenAiSource(config, client)
        case SourceKind.ANTHROPIC:
            return AnthropicSource(config, client)
        case SourceKind.OLLAMA:
            return OllamaSource(config, client)
        case SourceKind.AZURE:
            return AzureSource(config, client)
        case SourceKind.GEMINI:
            return GeminiSource(config, client)
        case SourceKind.BEDROCK:
            return BedrockSource(config, client)
