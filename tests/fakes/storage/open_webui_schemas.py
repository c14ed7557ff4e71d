"""Tables and columns of Open WebUI 0.6 and 0.12 that an import reads.

The columns are those that its own migrations make. Most keys and all indexes are left out, so that tests can
store what a damaged database has.
"""

OLD = "0.6"
NEW = "0.12"

BOTH = """
CREATE TABLE "folder" (
    id TEXT, parent_id TEXT, user_id TEXT, name TEXT, items JSON, meta JSON, is_expanded BOOLEAN,
    data JSON, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "tag" (
    id VARCHAR, name VARCHAR, user_id VARCHAR, meta JSON
);
CREATE TABLE "function" (
    id VARCHAR, user_id VARCHAR, name TEXT, type TEXT, content TEXT, meta TEXT, valves TEXT,
    is_active BOOLEAN, is_global BOOLEAN, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "prompt" (
    command VARCHAR, user_id VARCHAR, title TEXT, content TEXT
);
"""
OLD_TABLES = """
CREATE TABLE "user" (
    id VARCHAR PRIMARY KEY, name VARCHAR, email VARCHAR, role VARCHAR, profile_image_url TEXT,
    last_active_at BIGINT, api_key VARCHAR, settings TEXT, info TEXT, oauth_sub TEXT, created_at
    BIGINT, updated_at BIGINT
);
CREATE TABLE "auth" (
    id VARCHAR PRIMARY KEY, email VARCHAR, password TEXT, active BOOLEAN
);
CREATE TABLE "group" (
    id TEXT PRIMARY KEY, user_id TEXT, name TEXT, description TEXT, data JSON, meta JSON,
    permissions JSON, user_ids JSON, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "chat" (
    id VARCHAR PRIMARY KEY, user_id VARCHAR, title TEXT, share_id TEXT, archived BOOLEAN, chat JSON,
    pinned BOOLEAN, meta JSON, folder_id TEXT, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "file" (
    id VARCHAR PRIMARY KEY, user_id VARCHAR, filename TEXT, meta JSON, hash TEXT, data JSON, path
    TEXT, access_control JSON, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "knowledge" (
    id TEXT PRIMARY KEY, user_id TEXT, name TEXT, description TEXT, data JSON, meta JSON,
    access_control JSON, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "tool" (
    id VARCHAR PRIMARY KEY, user_id VARCHAR, name TEXT, content TEXT, specs TEXT, meta TEXT, valves
    TEXT, access_control JSON, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "model" (
    id TEXT PRIMARY KEY, user_id TEXT, base_model_id TEXT, name TEXT, params TEXT, meta TEXT,
    access_control JSON, is_active BOOLEAN, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "config" (
    id INTEGER PRIMARY KEY, data JSON, version INTEGER
);
"""
NEW_TABLES = """
CREATE TABLE "user" (
    id VARCHAR PRIMARY KEY, name VARCHAR, email VARCHAR, role VARCHAR, profile_image_url TEXT,
    last_active_at BIGINT, username VARCHAR, bio TEXT, date_of_birth DATE, timezone VARCHAR, oauth
    JSON, info JSON, settings JSON, scim JSON, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "auth" (
    id VARCHAR PRIMARY KEY, email VARCHAR, password TEXT, active BOOLEAN, mfa JSON
);
CREATE TABLE "api_key" (
    id TEXT PRIMARY KEY, user_id TEXT, key TEXT, data JSON, expires_at BIGINT, last_used_at BIGINT,
    created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "group" (
    id TEXT PRIMARY KEY, user_id TEXT, name TEXT, description TEXT, data JSON, meta JSON,
    permissions JSON, parent_group_id TEXT, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "group_member" (
    id TEXT, group_id TEXT, user_id TEXT, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "access_grant" (
    id TEXT, resource_type TEXT, resource_id TEXT, principal_type TEXT, principal_id TEXT,
    permission TEXT, created_at BIGINT
);
CREATE TABLE "chat" (
    id VARCHAR PRIMARY KEY, user_id VARCHAR, title TEXT, share_id TEXT, archived BOOLEAN, chat JSON,
    pinned BOOLEAN, meta JSON, folder_id TEXT, last_read_at BIGINT, current_message_id TEXT,
    created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "chat_message" (
    id TEXT PRIMARY KEY, chat_id TEXT, user_id TEXT, role TEXT, parent_id TEXT, content JSON, output
    JSON, model_id TEXT, files JSON, sources JSON, embeds JSON, done BOOLEAN, status_history JSON,
    error JSON, usage JSON, context_summary TEXT, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "shared_chat" (
    id TEXT PRIMARY KEY, chat_id TEXT, user_id TEXT, title TEXT, chat JSON, created_at BIGINT,
    updated_at BIGINT
);
CREATE TABLE "file" (
    id VARCHAR PRIMARY KEY, user_id VARCHAR, filename TEXT, meta JSON, hash TEXT, data JSON, path
    TEXT, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "knowledge" (
    id TEXT PRIMARY KEY, user_id TEXT, name TEXT, description TEXT, data JSON, meta JSON, created_at
    BIGINT, updated_at BIGINT
);
CREATE TABLE "knowledge_file" (
    id TEXT, user_id TEXT, knowledge_id TEXT, file_id TEXT, directory_id TEXT, created_at BIGINT,
    updated_at BIGINT
);
CREATE TABLE "knowledge_directory" (
    id TEXT PRIMARY KEY, knowledge_id TEXT, parent_id TEXT, name TEXT, user_id TEXT, created_at
    BIGINT, updated_at BIGINT
);
CREATE TABLE "tool" (
    id VARCHAR PRIMARY KEY, user_id VARCHAR, name TEXT, content TEXT, specs TEXT, meta TEXT, valves
    TEXT, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "model" (
    id TEXT PRIMARY KEY, user_id TEXT, base_model_id TEXT, name TEXT, params TEXT, meta TEXT,
    is_active BOOLEAN, created_at BIGINT, updated_at BIGINT
);
CREATE TABLE "config" (
    key TEXT PRIMARY KEY, value JSON, updated_at BIGINT
);
"""
SCHEMAS = {OLD: BOTH + OLD_TABLES, NEW: BOTH + NEW_TABLES}
