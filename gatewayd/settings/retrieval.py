"""Settings of documents: upload, extraction, embedding and retrieval."""

from typing import Annotated, Literal

from pydantic import ByteSize, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import DOCUMENTS, EMBEDDING, RETRIEVAL, restart, setting

MIB = 2**20


class RetrievalFields(BaseSettings):
    """The settings of documents."""

    rag_file_max_size: types.Mebibytes = setting(
        restart(DOCUMENTS), ByteSize(100 * MIB), "Maximum size of an uploaded file.", ge=1024, le=2**40
    )
    rag_file_max_count: types.Whole = setting(
        restart(DOCUMENTS),
        0,
        "Maximum number of files of an account that is no administrator; 0 for any number.",
        ge=0,
    )
    rag_allowed_file_extensions: types.Extensions = setting(
        restart(DOCUMENTS), (), "File name extensions that are processed; all when empty."
    )
    content_extraction_engine: Annotated[
        Literal["", "external"], types.ExpectedValue('"external", or "" for the built-in readers')
    ] = setting(restart(DOCUMENTS), "", "Program that extracts the text of documents.")
    external_document_loader_url: types.UrlOrEmpty = setting(
        restart(DOCUMENTS), "", "Address of the external extractor; documents go to /process below it."
    )
    external_document_loader_api_key: types.ProviderKey = setting(
        restart(DOCUMENTS), SecretStr(""), "Bearer token for the external extractor."
    )
    chunk_size: types.Whole = setting(
        restart(DOCUMENTS), 1000, "Maximum number of characters of a chunk.", ge=100, le=20_000
    )
    chunk_overlap: types.Whole = setting(
        restart(DOCUMENTS),
        100,
        "Maximum number of characters that neighbouring chunks share.",
        ge=0,
        le=10_000,
    )
    ingest_workers: types.Whole = setting(
        restart(DOCUMENTS),
        0,
        "Number of documents extracted at the same time, one process each; 0 derives it from the processors.",
        ge=0,
        le=256,
    )
    ingest_memory_limit: types.Size = setting(
        restart(DOCUMENTS),
        ByteSize(2048 * MIB),
        "Maximum address space of a process that extracts documents.",
        ge=256 * MIB,
    )
    ingest_timeout: types.Seconds = setting(
        restart(DOCUMENTS), 300.0, "Maximum time for the extraction of one document.", gt=0
    )
    ingest_text_limit: types.Size = setting(
        restart(DOCUMENTS),
        ByteSize(32 * MIB),
        "Maximum size of the text of one document.",
        ge=1024,
        le=512 * MIB,
    )
    ingest_attempts: types.Whole = setting(
        restart(DOCUMENTS),
        5,
        "Maximum number of attempts at a document after failures that may pass.",
        ge=1,
        le=100,
    )

    ingest_sandbox: Annotated[
        Literal["auto", "require", "off"], types.ExpectedValue('"auto", "require", or "off"')
    ] = setting(
        restart(DOCUMENTS),
        "auto",
        "Confinement by Landlock and seccomp of processes that extract documents or run embedding and"
        " reranking"
        " models: auto uses what the kernel has, require needs both to start, off uses neither.",
    )

    rag_embedding_engine: Annotated[
        Literal["", "fastembed", "directory", "openai", "ollama"],
        types.ExpectedValue('"fastembed", "directory", "openai", "ollama", or "" for a model from a package'),
    ] = setting(restart(EMBEDDING), "", "Program that computes vectors.")
    rag_embedding_model: types.Line = setting(
        restart(EMBEDDING),
        "minilm",
        "Embedding model: minilm or e5-small, a name that the engine knows, or a directory.",
        min_length=1,
        max_length=200,
    )
    rag_openai_api_base_url: types.UrlOrEmpty = setting(
        restart(EMBEDDING), "", "Address of the OpenAI-compatible embeddings API of the engine openai."
    )
    rag_openai_api_key: types.ProviderKey = setting(
        restart(EMBEDDING), SecretStr(""), "Key for rag_openai_api_base_url."
    )
    rag_ollama_base_url: types.UrlOrEmpty = setting(
        restart(EMBEDDING), "", "Address of the runtime of the engine ollama."
    )
    rag_ollama_api_key: types.ProviderKey = setting(
        restart(EMBEDDING), SecretStr(""), "Key for rag_ollama_base_url."
    )
    rag_embedding_query_prefix: types.Text = setting(
        restart(EMBEDDING), "", "Text put before a query for embedding; e5-small has its own.", max_length=200
    )
    rag_embedding_content_prefix: types.Text = setting(
        restart(EMBEDDING), "", "Text put before a chunk for embedding; e5-small has its own.", max_length=200
    )
    rag_embedding_batch_size: types.Whole = setting(
        restart(EMBEDDING),
        32,
        "Maximum number of texts in one request to the engine openai or ollama.",
        ge=1,
        le=2048,
    )
    rag_embedding_timeout: types.Seconds = setting(
        restart(EMBEDDING),
        60.0,
        "Maximum time for the vectors of one request; a model on this machine has it for a query and"
        " again for"
        " its reranking, and 10 times as long for 16 chunks of a document, and is restarted when it is late.",
        gt=0,
    )
    embedding_threads: types.Whole = setting(
        restart(EMBEDDING),
        0,
        "Number of threads that compute vectors of documents; 0 derives it from the processors.",
        ge=0,
        le=256,
    )
    vector_cache_size: types.Size = setting(
        restart(EMBEDDING), ByteSize(512 * MIB), "Maximum memory for the vectors that searches use.", ge=MIB
    )

    rag_top_k: types.Whole = setting(
        restart(RETRIEVAL),
        5,
        "Number of passages that a search returns if it does not ask for a number.",
        ge=1,
        le=1000,
    )
    enable_rag_hybrid_search: types.Switch = setting(
        restart(RETRIEVAL), True, "Whether searches match words as well as meaning."
    )
    rag_hybrid_bm25_weight: types.OwnShare = setting(
        restart(RETRIEVAL),
        None,
        "Weight of words in a hybrid search, from 0 to 1, against meaning; when empty 0.4 with the model"
        " e5-small and 0.5 with any other.",
        ge=0,
        le=1,
    )
    rag_fusion: Annotated[Literal["minmax", "rrf"], types.ExpectedValue('"minmax" or "rrf"')] = setting(
        restart(RETRIEVAL),
        "minmax",
        "Method that merges the two lists of a hybrid search: minmax by score, rrf by rank.",
    )
    rag_relevance_threshold: types.Number = setting(
        restart(RETRIEVAL),
        0.0,
        "Minimum similarity of a passage to the query, from 0 to 1; 0 for any.",
        ge=0,
        le=1,
    )
    rag_full_context: types.Switch = setting(
        restart(RETRIEVAL), False, "Whether the model receives referenced documents whole."
    )
    full_context_limit: types.Whole = setting(
        restart(RETRIEVAL),
        200_000,
        "Maximum number of characters of whole documents in one request; the rest is cut with a warning.",
        ge=1000,
    )
    rag_system_context: types.Switch = setting(
        restart(RETRIEVAL),
        False,
        "Whether passages are appended to the system message instead of put before the query.",
    )
    rag_template: types.Text = setting(
        restart(RETRIEVAL),
        "",
        "Prompt template for passages, with {{CONTEXT}} and {{QUERY}} in it; the built-in one when empty.",
        max_length=20_000,
    )
    rag_reranking_engine: Annotated[
        Literal["", "local", "external"], types.ExpectedValue('"local", "external", or "" for none')
    ] = setting(restart(RETRIEVAL), "", "Program that reranks the passages found.")
    rag_reranking_model: types.Line = setting(
        restart(RETRIEVAL),
        "",
        "Reranking model: one that fastembed knows, a directory, or the name to send to the engine external.",
        max_length=200,
    )
    rag_external_reranker_url: types.UrlOrEmpty = setting(
        restart(RETRIEVAL), "", "Address of the reranker of the engine external."
    )
    rag_external_reranker_api_key: types.ProviderKey = setting(
        restart(RETRIEVAL), SecretStr(""), "Key for rag_external_reranker_url."
    )
    rag_external_reranker_timeout: types.Seconds = setting(
        restart(RETRIEVAL), 10.0, "Maximum wait for the reranker.", gt=0
    )
    rag_top_k_reranker: types.Whole = setting(
        restart(RETRIEVAL), 5, "Maximum number of passages that reranking keeps.", ge=1, le=1000
    )
