-- Migrations: 0001_initial 0002_provisioning 0003_documents 0004_words 0005_chats 0006_roles 0007_response_ids 0008_segmented_words 0009_blank_pages 0010_sessions 0011_identities 0012_folders 0013_responses 0014_access_tokens 0015_streams 0016_batches 0018_budgets 0019_audit 0020_usage 0021_cluster_changes 0022_nodes 0023_privacy 0024_blob_keys 0025_scim_tokens 0026_batch_progress
CREATE TABLE "access_grants" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "resource_type" VARCHAR(32) NOT NULL,
    "resource_id" VARCHAR(256) NOT NULL,
    "principal_type" VARCHAR(16) NOT NULL,
    "principal_id" VARCHAR(64) NOT NULL,
    "permission" VARCHAR(16) NOT NULL,
    CONSTRAINT "uid_access_gran_resourc_8f3b2c" UNIQUE ("resource_type", "resource_id", "principal_type", "principal_id", "permission")
);
CREATE TABLE "groups" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "name" VARCHAR(255) NOT NULL,
    "name_key" VARCHAR(765) NOT NULL UNIQUE,
    "description" TEXT NOT NULL,
    "user_id" VARCHAR(64),
    "permissions" TEXT NOT NULL,
    "data" TEXT NOT NULL,
    "meta" TEXT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL
, "scim" TEXT, "modified_us" BIGINT NOT NULL DEFAULT 0);
CREATE TABLE "models" (
    "id" VARCHAR(256) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(64) NOT NULL,
    "name" VARCHAR(255) NOT NULL,
    "base_model_id" VARCHAR(256),
    "params" TEXT NOT NULL,
    "meta" TEXT NOT NULL,
    "is_active" INT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL
);
CREATE TABLE "revoked_tokens" (
    "jti" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(64) NOT NULL,
    "expires_at" BIGINT NOT NULL
);
CREATE TABLE "users" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "email" VARCHAR(320) NOT NULL UNIQUE,
    "username" VARCHAR(255)  UNIQUE,
    "name" VARCHAR(255) NOT NULL,
    "name_key" VARCHAR(765) NOT NULL,
    "role" VARCHAR(16) NOT NULL,
    "active" INT NOT NULL,
    "password_hash" VARCHAR(512),
    "profile_image_url" TEXT NOT NULL,
    "token_version" BIGINT NOT NULL,
    "profile" TEXT NOT NULL,
    "settings" TEXT,
    "info" TEXT,
    "oauth" TEXT,
    "scim" TEXT,
    "last_active_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL
, "user_name" VARCHAR(320), "display_name" VARCHAR(255), "formatted_name" VARCHAR(255), "given_name" VARCHAR(255), "family_name" VARCHAR(255), "emails" TEXT, "user_name_key" VARCHAR(960) NOT NULL DEFAULT '', "display_name_key" VARCHAR(765) NOT NULL DEFAULT '', "formatted_name_key" VARCHAR(765) NOT NULL DEFAULT '', "given_name_key" VARCHAR(765) NOT NULL DEFAULT '', "family_name_key" VARCHAR(765) NOT NULL DEFAULT '', "modified_us" BIGINT NOT NULL DEFAULT 0, "roles" TEXT);
CREATE TABLE "api_keys" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "name" VARCHAR(255) NOT NULL,
    "name_key" VARCHAR(765) NOT NULL,
    "digest" VARCHAR(64) NOT NULL UNIQUE,
    "prefix" VARCHAR(32) NOT NULL,
    "expires_at" BIGINT,
    "last_used_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_api_keys_user_id_d05d82" UNIQUE ("user_id", "name_key")
);
CREATE TABLE "stored_values" (
    "name" VARCHAR(255) NOT NULL  PRIMARY KEY,
    "value" TEXT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "updated_by" VARCHAR(255) NOT NULL
);
CREATE TABLE "user_emails" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "value_key" VARCHAR(960) NOT NULL,
    "type_key" VARCHAR(765) NOT NULL,
    "is_primary" INT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "user_external_ids" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "provider" VARCHAR(128) NOT NULL,
    "external_id" VARCHAR(512) NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_user_extern_provide_eb40c8" UNIQUE ("provider", "external_id"),
    CONSTRAINT "uid_user_extern_user_id_ab4db3" UNIQUE ("user_id", "provider")
);
CREATE TABLE "user_subjects" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "provider" VARCHAR(128) NOT NULL,
    "subject" VARCHAR(512) NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_user_subjec_provide_760530" UNIQUE ("provider", "subject"),
    CONSTRAINT "uid_user_subjec_user_id_61e68e" UNIQUE ("user_id", "provider")
);
CREATE TABLE "group_external_ids" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "provider" VARCHAR(128) NOT NULL,
    "external_id" VARCHAR(512) NOT NULL,
    "group_id" VARCHAR(64) NOT NULL REFERENCES "groups" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_group_exter_provide_92e020" UNIQUE ("provider", "external_id"),
    CONSTRAINT "uid_group_exter_group_i_9d8964" UNIQUE ("group_id", "provider")
);
CREATE TABLE "group_members" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "source" VARCHAR(32) NOT NULL,
    "created_at" BIGINT NOT NULL,
    "display" VARCHAR(255),
    "group_id" VARCHAR(64) NOT NULL REFERENCES "groups" ("id") ON DELETE CASCADE,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_group_membe_group_i_c11628" UNIQUE ("group_id", "user_id", "source")
);
CREATE TABLE "files" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(64) NOT NULL,
    "name" VARCHAR(255) NOT NULL,
    "name_key" VARCHAR(765) NOT NULL,
    "size" BIGINT NOT NULL,
    "digest" VARCHAR(64) NOT NULL,
    "checksum" VARCHAR(255) NOT NULL,
    "content_type" VARCHAR(255),
    "status" VARCHAR(16) NOT NULL,
    "error" TEXT,
    "text_hash" VARCHAR(64),
    "characters" BIGINT NOT NULL,
    "chunks" BIGINT NOT NULL,
    "pages" BIGINT,
    "data" TEXT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL
, "blank_pages" BIGINT NOT NULL DEFAULT 0, "blob" VARCHAR(128) NOT NULL DEFAULT '');
CREATE TABLE "file_texts" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "staged" INT NOT NULL,
    "text" TEXT NOT NULL,
    "file_id" VARCHAR(64) NOT NULL REFERENCES "files" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_file_texts_file_id_fcc988" UNIQUE ("file_id", "staged")
);
CREATE TABLE "passages" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "staged" INT NOT NULL,
    "number" BIGINT NOT NULL,
    "start" BIGINT NOT NULL,
    "page" BIGINT,
    "heading" TEXT,
    "text" TEXT NOT NULL,
    "file_id" VARCHAR(64) NOT NULL REFERENCES "files" ("id") ON DELETE CASCADE
, "segmented" TEXT);
CREATE TABLE "embedding_spaces" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "name" VARCHAR(255) NOT NULL UNIQUE,
    "dimension" BIGINT NOT NULL,
    "is_active" INT NOT NULL
);
CREATE TABLE "vector_batches" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "staged" INT NOT NULL,
    "ids" BLOB NOT NULL,
    "vectors" BLOB NOT NULL,
    "file_id" VARCHAR(64) NOT NULL REFERENCES "files" ("id") ON DELETE CASCADE,
    "space_id" BIGINT NOT NULL REFERENCES "embedding_spaces" ("id") ON DELETE CASCADE
);
CREATE TABLE "ingest_jobs" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "attempts" BIGINT NOT NULL,
    "not_before" BIGINT NOT NULL,
    "lease_owner" VARCHAR(64) NOT NULL,
    "lease_until" BIGINT NOT NULL,
    "error" TEXT,
    "created_at" BIGINT NOT NULL,
    "file_id" VARCHAR(64) NOT NULL UNIQUE REFERENCES "files" ("id") ON DELETE CASCADE
, "fence" BIGINT NOT NULL DEFAULT 0);
CREATE TABLE "collections" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "number" BIGINT NOT NULL UNIQUE,
    "user_id" VARCHAR(64) NOT NULL,
    "name" VARCHAR(255) NOT NULL,
    "name_key" VARCHAR(765) NOT NULL,
    "description" TEXT NOT NULL,
    "description_key" TEXT NOT NULL,
    "meta" TEXT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL
);
CREATE TABLE "collection_files" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL,
    "origin" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "place" VARCHAR(64) NOT NULL,
    "directory_id" VARCHAR(64),
    "created_at" BIGINT NOT NULL,
    "collection_id" VARCHAR(64) NOT NULL REFERENCES "collections" ("id") ON DELETE CASCADE,
    "file_id" VARCHAR(64) NOT NULL REFERENCES "files" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_collection__collect_e78931" UNIQUE ("collection_id", "file_id")
);
CREATE TABLE "collection_directories" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "parent_id" VARCHAR(64),
    "name" VARCHAR(255) NOT NULL,
    "user_id" VARCHAR(64) NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "collection_id" VARCHAR(64) NOT NULL REFERENCES "collections" ("id") ON DELETE CASCADE
);
CREATE TABLE "chats" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "title" TEXT NOT NULL,
    "title_key" TEXT NOT NULL,
    "head" TEXT NOT NULL,
    "current_id" VARCHAR(255),
    "archived" INT NOT NULL,
    "pinned" INT NOT NULL,
    "folder_id" VARCHAR(64),
    "meta" TEXT NOT NULL,
    "last_read_at" BIGINT,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "chat_tags" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "tag" VARCHAR(255) NOT NULL,
    "name" VARCHAR(255) NOT NULL,
    "chat_id" VARCHAR(64) NOT NULL REFERENCES "chats" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_chat_tags_chat_id_5f556d" UNIQUE ("chat_id", "tag")
);
CREATE TABLE "chat_messages" (
    "number" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "id" VARCHAR(255) NOT NULL,
    "parent_id" VARCHAR(255),
    "role" VARCHAR(64) NOT NULL,
    "content" TEXT NOT NULL,
    "content_key" TEXT NOT NULL,
    "parts" TEXT,
    "done" INT,
    "state" VARCHAR(16) NOT NULL,
    "attributes" TEXT NOT NULL,
    "timestamp" BIGINT NOT NULL,
    "chat_id" VARCHAR(64) NOT NULL REFERENCES "chats" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_chat_messag_chat_id_c43eaa" UNIQUE ("chat_id", "id")
);
CREATE TABLE "chat_message_items" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "kind" VARCHAR(32) NOT NULL,
    "value" TEXT NOT NULL,
    "message_id" BIGINT NOT NULL REFERENCES "chat_messages" ("number") ON DELETE CASCADE
);
CREATE TABLE "shared_chats" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(64) NOT NULL,
    "document" TEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "chat_id" VARCHAR(64) NOT NULL UNIQUE REFERENCES "chats" ("id") ON DELETE CASCADE
);
CREATE TABLE "plugins" (
    "number" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "family" VARCHAR(16) NOT NULL,
    "id" VARCHAR(255) NOT NULL,
    "kind" VARCHAR(16) NOT NULL,
    "user_id" VARCHAR(64) NOT NULL,
    "name" TEXT NOT NULL,
    "content" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "manifest" TEXT NOT NULL,
    "meta" TEXT NOT NULL,
    "specs" TEXT NOT NULL,
    "valves" TEXT NOT NULL,
    "is_active" INT NOT NULL,
    "is_global" INT NOT NULL,
    "origin" VARCHAR(16) NOT NULL,
    "path" TEXT,
    "missing" TEXT NOT NULL,
    "problem" TEXT,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    CONSTRAINT "uid_plugins_family_ded120" UNIQUE ("family", "id")
);
CREATE TABLE "user_valves" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "family" VARCHAR(16) NOT NULL,
    "plugin_id" VARCHAR(255) NOT NULL,
    "valves" TEXT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_user_valves_user_id_c76db5" UNIQUE ("user_id", "family", "plugin_id")
);
CREATE TABLE "tool_servers" (
    "id" VARCHAR(255) NOT NULL  PRIMARY KEY,
    "name" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "type" VARCHAR(16) NOT NULL,
    "description" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "headers" TEXT NOT NULL,
    "spec" TEXT,
    "functions" TEXT NOT NULL,
    "timeout" REAL,
    "is_active" INT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL
);
CREATE TABLE "response_ids" (
    "digest" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(64) NOT NULL,
    "created_at" BIGINT NOT NULL
);
CREATE TABLE "sessions" (
    "jti" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "token_version" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "last_seen_at" BIGINT NOT NULL,
    "confirmed_at" BIGINT NOT NULL,
    "method" VARCHAR(16) NOT NULL,
    "provider" VARCHAR(128) NOT NULL,
    "provider_session" VARCHAR(512) NOT NULL,
    "user_agent" VARCHAR(255) NOT NULL,
    "address" VARCHAR(64) NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "one_time_links" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "digest" VARCHAR(64) NOT NULL UNIQUE,
    "kind" VARCHAR(16) NOT NULL,
    "email" VARCHAR(320) NOT NULL,
    "user_id" VARCHAR(64) NOT NULL,
    "role" VARCHAR(16) NOT NULL,
    "group_ids" TEXT NOT NULL,
    "created_by" VARCHAR(255) NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL
);
CREATE TABLE "user_identities" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "provider" VARCHAR(128) NOT NULL,
    "issuer" VARCHAR(256) NOT NULL,
    "subject" VARCHAR(384) NOT NULL,
    "provisioning_id" VARCHAR(384) NOT NULL,
    "email" VARCHAR(320) NOT NULL,
    "id_token" TEXT NOT NULL,
    "refresh_token" TEXT NOT NULL,
    "linked_at" BIGINT NOT NULL,
    "used_at" BIGINT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE, "access_token" TEXT NOT NULL DEFAULT '', "expires_at" BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT "uid_user_identi_issuer_e00b68" UNIQUE ("issuer", "subject"),
    CONSTRAINT "uid_user_identi_user_id_b17c07" UNIQUE ("user_id", "provider")
);
CREATE TABLE "used_values" (
    "digest" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "expires_at" BIGINT NOT NULL
);
CREATE TABLE "chat_folders" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "parent_id" VARCHAR(64),
    "name" VARCHAR(255) NOT NULL,
    "name_key" VARCHAR(765) NOT NULL,
    "is_expanded" INT NOT NULL,
    "meta" TEXT NOT NULL,
    "data" TEXT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "stored_responses" (
    "id" VARCHAR(128) NOT NULL  PRIMARY KEY,
    "previous_id" VARCHAR(128),
    "model" VARCHAR(256) NOT NULL,
    "source" VARCHAR(128) NOT NULL,
    "response" TEXT NOT NULL,
    "input" TEXT NOT NULL,
    "events" TEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "streams" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(255) NOT NULL,
    "protocol" VARCHAR(16) NOT NULL,
    "state" VARCHAR(16) NOT NULL,
    "created_at" BIGINT NOT NULL,
    "ended_at" BIGINT,
    "last_frame" BIGINT NOT NULL,
    "size" BIGINT NOT NULL,
    "headers" TEXT NOT NULL
, "node_id" VARCHAR(64) NOT NULL DEFAULT '');
CREATE TABLE "stream_frames" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "stream_id" VARCHAR(64) NOT NULL,
    "first_frame" BIGINT NOT NULL,
    "last_frame" BIGINT NOT NULL,
    "frames" BLOB NOT NULL,
    CONSTRAINT "uid_stream_fram_stream__5be605" UNIQUE ("stream_id", "first_frame")
);
CREATE TABLE "idempotent_requests" (
    "digest" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "user_id" VARCHAR(255) NOT NULL,
    "fingerprint" VARCHAR(64) NOT NULL,
    "reply" TEXT,
    "created_at" BIGINT NOT NULL
);
CREATE TABLE "batch_files" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "name" VARCHAR(255) NOT NULL,
    "purpose" VARCHAR(32) NOT NULL,
    "size" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "batches" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "dialect" VARCHAR(16) NOT NULL,
    "endpoint" VARCHAR(64) NOT NULL,
    "status" VARCHAR(16) NOT NULL,
    "input_file_id" VARCHAR(64) NOT NULL,
    "output_file_id" VARCHAR(64),
    "error_file_id" VARCHAR(64),
    "key_id" VARCHAR(64),
    "total" BIGINT NOT NULL,
    "completed" BIGINT NOT NULL,
    "failed" BIGINT NOT NULL,
    "metadata" TEXT NOT NULL,
    "errors" TEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "started_at" BIGINT,
    "cancelled_at" BIGINT,
    "ended_at" BIGINT,
    "user_id" VARCHAR(64) NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
);
CREATE TABLE "limits" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "subject" VARCHAR(16) NOT NULL,
    "subject_id" VARCHAR(64) NOT NULL,
    "subject_name" VARCHAR(255) NOT NULL,
    "model" VARCHAR(255) NOT NULL,
    "requests_per_minute" BIGINT,
    "tokens_per_minute" BIGINT,
    "parallel" BIGINT,
    "budgets" TEXT NOT NULL,
    "warn_percent" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL, "storage_bytes" BIGINT,
    CONSTRAINT "uid_limits_subject_38e39f" UNIQUE ("subject", "subject_id", "model")
);
CREATE TABLE "limit_counters" (
    "id" VARCHAR(255) NOT NULL  PRIMARY KEY,
    "used" BIGINT NOT NULL,
    "reserved" BIGINT NOT NULL,
    "warned" BIGINT NOT NULL,
    "starts_at" BIGINT NOT NULL,
    "limit_id" VARCHAR(64) NOT NULL REFERENCES "limits" ("id") ON DELETE CASCADE
);
CREATE TABLE "limit_reservations" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "call_id" VARCHAR(64) NOT NULL,
    "node" VARCHAR(64) NOT NULL,
    "amount" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "counter_id" VARCHAR(255) NOT NULL REFERENCES "limit_counters" ("id") ON DELETE CASCADE
);
CREATE TABLE "audit_log" (
    "sequence" BIGINT NOT NULL  PRIMARY KEY,
    "at" BIGINT NOT NULL,
    "actor_kind" VARCHAR(16) NOT NULL,
    "actor" VARCHAR(300) NOT NULL,
    "actor_id" VARCHAR(300) NOT NULL,
    "key" VARCHAR(300) NOT NULL,
    "address" VARCHAR(300) NOT NULL,
    "action" VARCHAR(300) NOT NULL,
    "target" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "before" TEXT NOT NULL,
    "after" TEXT NOT NULL,
    "request_id" VARCHAR(300) NOT NULL,
    "result" VARCHAR(16) NOT NULL,
    "detail" TEXT NOT NULL,
    "previous" VARCHAR(64) NOT NULL,
    "hash" VARCHAR(64) NOT NULL
);
CREATE TABLE "audit_base" (
    "id" BIGINT NOT NULL  PRIMARY KEY,
    "sequence" BIGINT NOT NULL,
    "hash" VARCHAR(64) NOT NULL
);
CREATE TABLE "usage" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "day" VARCHAR(10) NOT NULL,
    "user_id" VARCHAR(255) NOT NULL,
    "user_name" VARCHAR(320) NOT NULL,
    "key_id" VARCHAR(64) NOT NULL,
    "key_name" VARCHAR(255) NOT NULL,
    "model" VARCHAR(255) NOT NULL,
    "provider" VARCHAR(255) NOT NULL,
    "endpoint" VARCHAR(32) NOT NULL,
    "requests" BIGINT NOT NULL,
    "failures" BIGINT NOT NULL,
    "prompt" BIGINT NOT NULL,
    "cached" BIGINT NOT NULL,
    "cache_written" BIGINT NOT NULL,
    "completion" BIGINT NOT NULL,
    "reasoning" BIGINT NOT NULL,
    "milliseconds" BIGINT NOT NULL,
    "first_milliseconds" BIGINT NOT NULL,
    "timed" BIGINT NOT NULL,
    "cost" BIGINT NOT NULL,
    "unpriced" BIGINT NOT NULL,
    "estimated" BIGINT NOT NULL
);
CREATE TABLE "nodes" (
    "id" VARCHAR(64) NOT NULL  PRIMARY KEY,
    "name" VARCHAR(255) NOT NULL,
    "version" VARCHAR(64) NOT NULL,
    "migration" VARCHAR(255) NOT NULL,
    "address" VARCHAR(1024) NOT NULL,
    "configuration" VARCHAR(64) NOT NULL,
    "secrets" VARCHAR(64) NOT NULL,
    "plugins" VARCHAR(64) NOT NULL,
    "is_draining" INT NOT NULL,
    "started_at" BIGINT NOT NULL,
    "until" BIGINT NOT NULL
);
CREATE TABLE "leases" (
    "name" VARCHAR(255) NOT NULL  PRIMARY KEY,
    "node_id" VARCHAR(64) NOT NULL,
    "fence" BIGINT NOT NULL,
    "until" BIGINT NOT NULL
);
CREATE TABLE "answer_runs" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "task_id" VARCHAR(64) NOT NULL,
    "user_id" VARCHAR(255) NOT NULL,
    "chat_id" VARCHAR(255) NOT NULL,
    "message_id" VARCHAR(255) NOT NULL,
    "node_id" VARCHAR(64) NOT NULL,
    "is_stopped" INT NOT NULL,
    "started_at" BIGINT NOT NULL,
    CONSTRAINT "uid_answer_runs_user_id_246207" UNIQUE ("user_id", "chat_id", "message_id")
);
CREATE TABLE "scim_tokens" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "digest" VARCHAR(64) NOT NULL UNIQUE,
    "created_at" BIGINT NOT NULL,
    "retired_at" BIGINT
);
CREATE TABLE "passed_batches" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "state" TEXT NOT NULL,
    "batch_id" VARCHAR(64) NOT NULL REFERENCES "batches" ("id") ON DELETE CASCADE,
    CONSTRAINT "uid_passed_batc_batch_i_f03c1e" UNIQUE ("batch_id")
);
CREATE TABLE "batch_answers" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    "size" BIGINT NOT NULL,
    "records" BLOB NOT NULL,
    "batch_id" VARCHAR(64) NOT NULL REFERENCES "batches" ("id") ON DELETE CASCADE
);
CREATE INDEX "idx_revoked_tok_expires_b3eec6" ON "revoked_tokens" ("expires_at");
CREATE INDEX "idx_users_created_43d91f" ON "users" ("created_at");
CREATE INDEX "idx_user_emails_value_k_e59877" ON "user_emails" ("value_key");
CREATE INDEX "idx_user_emails_user_id_06a345" ON "user_emails" ("user_id");
CREATE INDEX "idx_group_membe_user_id_d5256e" ON "group_members" ("user_id", "group_id");
CREATE UNIQUE INDEX "uid_users_user_na_b747c2" ON "users" ("user_name_key");
CREATE INDEX "idx_users_id_d95514" ON "users" ("id", "display_name_key");
CREATE INDEX "idx_users_display_eb26be" ON "users" ("display_name_key", "id");
CREATE INDEX "idx_files_digest_3dc6ee" ON "files" ("digest");
CREATE INDEX "idx_files_status_04501b" ON "files" ("status");
CREATE INDEX "idx_files_text_ha_a3debf" ON "files" ("text_hash");
CREATE INDEX "idx_files_created_e0978a" ON "files" ("created_at");
CREATE INDEX "idx_files_user_id_a51de5" ON "files" ("user_id", "created_at", "id");
CREATE INDEX "idx_passages_file_id_8739c3" ON "passages" ("file_id", "staged", "number");
CREATE INDEX "idx_vector_batc_file_id_865a94" ON "vector_batches" ("file_id", "space_id");
CREATE INDEX "idx_vector_batc_space_i_4b0923" ON "vector_batches" ("space_id", "file_id");
CREATE INDEX "idx_ingest_jobs_not_bef_7335a9" ON "ingest_jobs" ("not_before");
CREATE INDEX "idx_collections_user_id_299b91" ON "collections" ("user_id");
CREATE INDEX "idx_collections_name_ke_76d043" ON "collections" ("name_key");
CREATE INDEX "idx_collections_updated_a6bf21" ON "collections" ("updated_at");
CREATE INDEX "idx_collection__file_id_4bc09b" ON "collection_files" ("file_id");
CREATE INDEX "idx_collection__collect_b30262" ON "collection_files" ("collection_id", "place");
CREATE INDEX "idx_collection__collect_c0a76a" ON "collection_files" ("collection_id", "id");
CREATE INDEX "idx_collection__collect_00359a" ON "collection_directories" ("collection_id", "parent_id");
CREATE INDEX "idx_chats_updated_dee0b1" ON "chats" ("updated_at");
CREATE INDEX "idx_chats_user_id_e6f4e4" ON "chats" ("user_id", "updated_at", "id");
CREATE INDEX "idx_chat_messag_state_e66fa7" ON "chat_messages" ("state");
CREATE INDEX "idx_chat_messag_chat_id_3d7cdb" ON "chat_messages" ("chat_id", "number");
CREATE INDEX "idx_chat_messag_chat_id_ba8727" ON "chat_messages" ("chat_id", "parent_id");
CREATE INDEX "idx_chat_messag_message_bbcbfa" ON "chat_message_items" ("message_id", "kind", "id");
CREATE INDEX "idx_user_valves_family_1e3ffd" ON "user_valves" ("family", "plugin_id");
CREATE INDEX "idx_response_id_created_6a53a4" ON "response_ids" ("created_at");
CREATE INDEX "idx_response_id_user_id_64b8f6" ON "response_ids" ("user_id", "created_at");
CREATE INDEX "idx_sessions_expires_6bcc94" ON "sessions" ("expires_at");
CREATE INDEX "idx_sessions_user_id_80072d" ON "sessions" ("user_id");
CREATE INDEX "idx_sessions_provide_da87a8" ON "sessions" ("provider", "provider_session");
CREATE INDEX "idx_one_time_li_expires_871635" ON "one_time_links" ("expires_at");
CREATE INDEX "idx_used_values_expires_6be1cd" ON "used_values" ("expires_at");
CREATE INDEX "idx_chat_folder_user_id_afdaa9" ON "chat_folders" ("user_id", "name_key");
CREATE INDEX idx_chat_messages_favorite ON chat_messages (chat_id, timestamp) WHERE instr(attributes, '"favorite":true') > 0;
CREATE INDEX "idx_stored_resp_expires_6ea41d" ON "stored_responses" ("expires_at");
CREATE INDEX "idx_stored_resp_user_id_830b49" ON "stored_responses" ("user_id", "created_at", "id");
CREATE INDEX "idx_streams_state_2f2df7" ON "streams" ("state");
CREATE INDEX "idx_idempotent__created_a52d7f" ON "idempotent_requests" ("created_at");
CREATE INDEX "idx_idempotent__user_id_8b4210" ON "idempotent_requests" ("user_id", "created_at");
CREATE INDEX "idx_batch_files_expires_7538a3" ON "batch_files" ("expires_at");
CREATE INDEX "idx_batch_files_user_id_bfd411" ON "batch_files" ("user_id", "created_at", "id");
CREATE INDEX "idx_batches_status_5f62b5" ON "batches" ("status");
CREATE INDEX "idx_batches_user_id_15a76a" ON "batches" ("user_id", "created_at", "id");
CREATE INDEX "idx_limit_count_starts__79da3b" ON "limit_counters" ("starts_at");
CREATE INDEX "idx_limit_reser_call_id_051d77" ON "limit_reservations" ("call_id");
CREATE INDEX "idx_audit_log_at_63718d" ON "audit_log" ("at");
CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log WHEN OLD.sequence > COALESCE((SELECT MAX(sequence) FROM audit_base), 0) BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_base_grows BEFORE UPDATE ON audit_base WHEN NEW.sequence <= OLD.sequence OR NOT EXISTS (SELECT 1 FROM audit_log WHERE sequence = NEW.sequence AND hash = NEW.hash) BEGIN SELECT RAISE(ABORT, 'the base of the audit log names no row'); END;
CREATE TRIGGER audit_base_kept BEFORE DELETE ON audit_base BEGIN SELECT RAISE(ABORT, 'the base of the audit log is kept'); END;
CREATE INDEX "idx_usage_day_5405e6" ON "usage" ("day");
CREATE INDEX "idx_usage_user_id_dec9fd" ON "usage" ("user_id", "day");
CREATE INDEX "idx_nodes_name_c52c40" ON "nodes" ("name");
CREATE INDEX "idx_answer_runs_task_id_699a87" ON "answer_runs" ("task_id");
CREATE INDEX "idx_answer_runs_node_id_c8bb90" ON "answer_runs" ("node_id");
CREATE INDEX "idx_files_updated_32bcf3" ON "files" ("updated_at", "id");
CREATE INDEX "idx_files_user_id_11ec3a" ON "files" ("user_id", "size");
CREATE INDEX "idx_batch_answe_batch_i_223ee6" ON "batch_answers" ("batch_id", "id");
