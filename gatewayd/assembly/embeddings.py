"""The embedding model and the reranker that the settings name."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gatewayd.ingest.interfaces import Embedder
from gatewayd.knowledge.fusion import WORD_WEIGHT
from gatewayd.knowledge.interfaces import Reranker
from gatewayd.metering.service_calls import ServiceCalls
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.settings import Settings
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.services.client import ServiceOptions
from gatewayd.upstream.services.embedders import EmbedderOptions, OllamaEmbedder, OpenAiEmbedder
from gatewayd.upstream.services.reranker import ExternalReranker
from gatewayd.vectors.local import LocalEmbedder, LocalKind, LocalOptions
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.reranker import LocalReranker

BUILTIN: Final = "builtin"
DEFAULT_MODEL: Final = Settings.model_fields["rag_embedding_model"].default

AnyEmbedder = LocalEmbedder | OpenAiEmbedder | OllamaEmbedder
AnyReranker = LocalReranker | ExternalReranker


class ConfiguredEmbedders:
    """The configured model, and the models of spaces filled under an earlier configuration."""

    def __init__(
        self, settings: Settings, configured: AnyEmbedder, reranker: AnyReranker | None, tasks: TaskRegistry
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        self._open: list[AnyEmbedder] = [configured]
        self._reranker = reranker
        self._configured = configured

    @property
    def configured(self) -> Embedder:
        """The configured model."""
        return self._configured

    @property
    def is_chosen(self) -> bool:
        """Whether the settings name a model other than the default."""
        engine, model = self._settings.rag_embedding_engine, self._settings.rag_embedding_model
        return bool(engine) or model != DEFAULT_MODEL

    @property
    def reranker(self) -> Reranker | None:
        """The reranker; None without one."""
        return self._reranker

    def open_space(self, name: str) -> Embedder | None:
        """Return the model of a space by the name of the space; None if the name does not identify one."""
        kind, _, rest = name.partition(":")
        model, _, revision = rest.partition(":")
        known = catalogue.BUILTINS.get(model)
        if kind != BUILTIN or known is None or known.revision != revision:
            return None
        # Its own prefixes, whatever is configured for the new model.
        options = replace(
            _local(self._settings, LocalKind.BUILTIN, model), query_prefix=None, content_prefix=None
        )
        embedder = LocalEmbedder(options, self._tasks)
        self._open.append(embedder)
        return embedder

    async def warm(self) -> None:
        """Load the configured model before the first query."""
        if isinstance(self._configured, LocalEmbedder):
            await self._configured.warm()

    async def close(self) -> None:
        """Close every model."""
        closing: Sequence[AnyEmbedder | AnyReranker] = self._open
        for model in (*closing, *([self._reranker] if self._reranker else [])):
            await model.close()


def make_embedding(settings: Settings, tasks: TaskRegistry, calls: ServiceCalls) -> ConfiguredEmbedders:
    """Return the models. Each is loaded, or its service called, at first use.

    Raises not_configured when the settings name a model that is none.
    """
    return ConfiguredEmbedders(
        settings, make_embedder(settings, tasks, calls), make_reranker(settings, tasks, calls), tasks
    )


def word_weight(settings: Settings) -> float:
    """Return the weight of full text in a hybrid search: the configured one, or the default of the model."""
    if settings.rag_hybrid_bm25_weight is not None:
        return settings.rag_hybrid_bm25_weight
    builtin = None if settings.rag_embedding_engine else catalogue.BUILTINS.get(settings.rag_embedding_model)
    own = None if builtin is None else builtin.word_weight
    return WORD_WEIGHT if own is None else own


def make_embedder(settings: Settings, tasks: TaskRegistry, calls: ServiceCalls) -> AnyEmbedder:
    """Return the configured embedding model."""
    engine, model = settings.rag_embedding_engine, settings.rag_embedding_model
    if engine == "openai":
        return OpenAiEmbedder(
            _remote(
                settings, settings.rag_openai_api_base_url, settings.rag_openai_api_key.get_secret_value()
            ),
            calls,
        )
    if engine == "ollama":
        return OllamaEmbedder(
            _remote(settings, settings.rag_ollama_base_url, settings.rag_ollama_api_key.get_secret_value()),
            calls,
        )
    options = _local(settings, LocalKind(engine or BUILTIN), model)
    return LocalEmbedder(options, tasks)


def make_reranker(settings: Settings, tasks: TaskRegistry, calls: ServiceCalls) -> AnyReranker | None:
    """Return the configured reranker, None for none."""
    model = settings.rag_reranking_model
    if settings.rag_reranking_engine == "external":
        key = settings.rag_external_reranker_api_key.get_secret_value()
        timeout = settings.rag_external_reranker_timeout
        service = ServiceOptions(settings.rag_external_reranker_url, key or None, timeout)
        return ExternalReranker(service, model, calls)
    if settings.rag_reranking_engine == "local":
        kind = LocalKind.DIRECTORY if model.startswith("/") else LocalKind.FASTEMBED
        sandbox = SandboxMode(settings.ingest_sandbox)
        options = LocalOptions(
            kind, model, settings.data_dir, sandbox=sandbox, seconds=settings.rag_embedding_timeout
        )
        return LocalReranker(options, tasks)
    return None


def _remote(settings: Settings, url: str, key: str) -> EmbedderOptions:
    return EmbedderOptions(
        service=ServiceOptions(url, key or None, settings.rag_embedding_timeout),
        model=settings.rag_embedding_model,
        batch_size=settings.rag_embedding_batch_size,
        query_prefix=settings.rag_embedding_query_prefix,
        content_prefix=settings.rag_embedding_content_prefix,
    )


def _local(settings: Settings, kind: LocalKind, model: str) -> LocalOptions:
    return LocalOptions(
        kind,
        model,
        settings.data_dir,
        threads=settings.embedding_threads or len(os.sched_getaffinity(0)),
        sandbox=SandboxMode(settings.ingest_sandbox),
        query_prefix=settings.rag_embedding_query_prefix or None,
        content_prefix=settings.rag_embedding_content_prefix or None,
        seconds=settings.rag_embedding_timeout,
    )
