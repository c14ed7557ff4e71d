"""The settings of documents: uploads and extraction, embedding, and the search in passages."""

from typing import Annotated, Literal

from pydantic import ByteSize, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import DOCUMENTS, EMBEDDING, RETRIEVAL, restart, setting

MIB = 2**20


class RetrievalFields(BaseSettings):
    """What `Settings` has for documents."""

    rag_file_max_size: types.Mebibytes = setting(
        restart(DOCUMENTS), ByteSize(100 * MIB), "Largest file that can be uploaded.", ge=1024, le=2**40
    )
    rag_file_max_count: types.Whole = setting(
        restart(DOCUMENTS),
        0,
        "Most files that an account other than an administrator's may have; 0 for any number.",
        ge=0,
    )
    rag_allowed_file_extensions: types.Extensions = setting(
        restart(DOCUMENTS), (), "Extensions that files to process may have; any when empty."
    )
    content_extraction_engine: Annotated[
        Literal["", "external"], types.ExpectedValue('"external", or "" for the built-in readers')
    ] = setting(restart(DOCUMENTS), "", "What turns documents into text.")
    external_document_loader_url: types.UrlOrEmpty = setting(
        restart(DOCUMENTS), "", "Address of the external extractor: documents are sent to /process below it."
    )
    external_document_loader_api_key: types.ProviderKey = setting(
        restart(DOCUMENTS), SecretStr(""), "Bearer token for the external extractor."
    )
    chunk_size: types.Whole = setting(
        restart(DOCUMENTS), 1000, "Characters of a passage, at most.", ge=100, le=20_000
    )
    chunk_overlap: types.Whole = setting(
        restart(DOCUMENTS), 100, "Characters that neighbouring passages share, at most.", ge=0, le=10_000
    )
    ingest_workers: types.Whole = setting(
        restart(DOCUMENTS),
        0,
        "Documents that are extracted at a time, each in a process of its own; 0 chooses by the machine.",
        ge=0,
        le=256,
    )
    ingest_memory_limit: types.Size = setting(
        restart(DOCUMENTS),
        ByteSize(2048 * MIB),
        "Address space of a process that extracts documents.",
        ge=256 * MIB,
    )
    ingest_timeout: types.Seconds = setting(
        restart(DOCUMENTS), 300.0, "Longest time for the extraction of one document.", gt=0
    )
    ingest_text_limit: types.Size = setting(
        restart(DOCUMENTS),
        ByteSize(32 * MIB),
        "Most text that one document may have.",
        ge=1024,
        le=512 * MIB,
    )
    ingest_attempts: types.Whole = setting(
        restart(DOCUMENTS), 5, "Attempts at a document that another attempt may help.", ge=1, le=100
    )

    ingest_sandbox: Annotated[
        Literal["auto", "require", "off"], types.ExpectedValue('"auto", "require", or "off"')
    ] = setting(
        restart(DOCUMENTS),
        "auto",
        "Confinement of the processes that extract documents or run embedding and reranking models, by "
        "Landlock and seccomp: as far as the kernel can, wholly or the daemon does not start, or none.",
    )

    rag_embedding_engine: Annotated[
        Literal["", "fastembed", "directory", "openai", "ollama"],
        types.ExpectedValue('"fastembed", "directory", "openai", "ollama", or "" for a model from a package'),
    ] = setting(restart(EMBEDDING), "", "Where vectors come from.")
    rag_embedding_model: types.Line = setting(
        restart(EMBEDDING),
        "minilm",
        "Model that makes vectors: minilm or e5-small, a name that the engine knows, or a directory.",
        min_length=1,
        max_length=200,
    )
    rag_openai_api_base_url: types.UrlOrEmpty = setting(
        restart(EMBEDDING), "", "Address of the OpenAI-compatible embeddings of the engine openai."
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
        restart(EMBEDDING), "", "Text to put before a question; e5-small has its own.", max_length=200
    )
    rag_embedding_content_prefix: types.Text = setting(
        restart(EMBEDDING), "", "Text to put before a passage; e5-small has its own.", max_length=200
    )
    rag_embedding_batch_size: types.Whole = setting(
        restart(EMBEDDING), 32, "Texts in one request to the engine openai or ollama.", ge=1, le=2048
    )
    rag_embedding_timeout: types.Seconds = setting(
        restart(EMBEDDING),
        60.0,
        "Longest wait for the vectors of one request; on this machine it is the limit of a question and of "
        "its reranking, and 16 passages of a document may take 10 times as long; a process that does not "
        "answer in time is killed and replaced.",
        gt=0,
    )
    embedding_threads: types.Whole = setting(
        restart(EMBEDDING),
        0,
        "Threads that make vectors of documents; 0 chooses by the machine.",
        ge=0,
        le=256,
    )
    vector_cache_size: types.Size = setting(
        restart(EMBEDDING), ByteSize(512 * MIB), "Memory for the vectors that are searched.", ge=MIB
    )

    rag_top_k: types.Whole = setting(
        restart(RETRIEVAL), 5, "Passages that a search returns, unless it asks for a number.", ge=1, le=1000
    )
    enable_rag_hybrid_search: types.Switch = setting(
        restart(RETRIEVAL), True, "Whether passages are searched by their words as well as by meaning."
    )
    rag_hybrid_bm25_weight: types.OwnShare = setting(
        restart(RETRIEVAL),
        None,
        "How much words count in a hybrid search, from 0 to 1, and meaning the rest; when empty 0.4 with the "
        "model e5-small and 0.5 with any other.",
        ge=0,
        le=1,
    )
    rag_fusion: Annotated[Literal["minmax", "rrf"], types.ExpectedValue('"minmax" or "rrf"')] = setting(
        restart(RETRIEVAL), "minmax", "How the two lists of a hybrid search become one: by score or by rank."
    )
    rag_relevance_threshold: types.Number = setting(
        restart(RETRIEVAL),
        0.0,
        "Least similarity of a passage to the question, from 0 to 1; 0 for any.",
        ge=0,
        le=1,
    )
    rag_full_context: types.Switch = setting(
        restart(RETRIEVAL), False, "Whether referenced documents are given to the model whole."
    )
    full_context_limit: types.Whole = setting(
        restart(RETRIEVAL),
        200_000,
        "Characters of whole documents that one request may hold; the rest is cut, with a warning.",
        ge=1000,
    )
    rag_system_context: types.Switch = setting(
        restart(RETRIEVAL),
        False,
        "Whether passages are appended to the system message, not put before the question.",
    )
    rag_template: types.Text = setting(
        restart(RETRIEVAL),
        "",
        "Text around the passages, with {{CONTEXT}} and {{QUERY}} in it; built in when empty.",
        max_length=20_000,
    )
    rag_reranking_engine: Annotated[
        Literal["", "local", "external"], types.ExpectedValue('"local", "external", or "" for none')
    ] = setting(restart(RETRIEVAL), "", "What orders the found passages anew.")
    rag_reranking_model: types.Line = setting(
        restart(RETRIEVAL),
        "",
        "Model that orders the found passages: one that fastembed knows, a directory, or a name to send.",
        max_length=200,
    )
    rag_external_reranker_url: types.UrlOrEmpty = setting(
        restart(RETRIEVAL), "", "Address of the reranker of the engine external."
    )
    rag_external_reranker_api_key: types.ProviderKey = setting(
        restart(RETRIEVAL), SecretStr(""), "Key for rag_external_reranker_url."
    )
    rag_external_reranker_timeout: types.Seconds = setting(
        restart(RETRIEVAL), 10.0, "Longest wait for the reranker.", gt=0
    )
    rag_top_k_reranker: types.Whole = setting(
        restart(RETRIEVAL), 5, "Passages that are left after the reranker.", ge=1, le=1000
    )
