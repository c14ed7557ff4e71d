-- Migrations: 0001_initial 0002_provisioning 0003_documents 0004_words 0005_chats 0006_roles 0007_response_ids 0008_segmented_words 0009_blank_pages 0010_sessions 0011_identities 0012_folders 0013_responses 0014_access_tokens 0015_streams 0016_batches 0018_budgets 0019_audit 0020_usage 0021_cluster_changes 0022_nodes 0023_privacy 0024_blob_keys 0025_scim_tokens 0026_batch_progress
CREATE FUNCTION audit_base_grow() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.sequence <= OLD.sequence
        OR NOT EXISTS (SELECT 1 FROM audit_log WHERE sequence = NEW.sequence AND hash = NEW.hash) THEN
        RAISE EXCEPTION 'the base of the audit log names no row';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION audit_log_keep() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF OLD.sequence > COALESCE((SELECT MAX(sequence) FROM audit_base), 0) THEN
        RAISE EXCEPTION 'the audit log is append-only';
    END IF;
    RETURN OLD;
END $$;
CREATE FUNCTION audit_log_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE FUNCTION cluster_log() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    kinds text[];
    subjects text[];
    last bigint;
BEGIN
    -- The first row of a transaction logs all of them.
    IF NOT EXISTS (SELECT 1 FROM cluster_pending
        WHERE transaction = NEW.transaction AND kind = NEW.kind AND subject = NEW.subject) THEN
        RETURN NULL;
    END IF;
    WITH noted AS (
        DELETE FROM cluster_pending WHERE transaction = NEW.transaction RETURNING kind, subject
    ), folded AS (
        SELECT kind FROM noted GROUP BY kind HAVING count(*) > 100 OR bool_or(subject = '')
    ), logged AS (
        SELECT kind, '' AS subject FROM folded
        UNION ALL SELECT kind, subject FROM noted WHERE kind NOT IN (SELECT kind FROM folded)
    )
    SELECT array_agg(kind ORDER BY kind, subject), array_agg(subject ORDER BY kind, subject)
        INTO kinds, subjects FROM logged;
    UPDATE cluster_version SET v = v + cardinality(kinds) WHERE id = 1 RETURNING v INTO STRICT last;
    INSERT INTO cluster_changes (version, kind, subject, at)
        SELECT last - cardinality(kinds) + n, kind, subject, clock_timestamp()
        FROM unnest(kinds, subjects) WITH ORDINALITY AS logged(kind, subject, n);
    PERFORM pg_notify('gatewayd_changes', last::text);
    RETURN NULL;
END $$;
CREATE FUNCTION cluster_note_all() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO cluster_pending (transaction, kind, subject) VALUES (pg_current_xact_id(), TG_ARGV[0], '')
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE FUNCTION cluster_note_row() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
    former text;
    present text;
BEGIN
    EXECUTE format('SELECT %s, %s',
        (SELECT string_agg(format('$1.%I::text', name), '||''/''||' ORDER BY n)
            FROM unnest(TG_ARGV[1:]) WITH ORDINALITY AS names(name, n)),
        (SELECT string_agg(format('$2.%I::text', name), '||''/''||' ORDER BY n)
            FROM unnest(TG_ARGV[1:]) WITH ORDINALITY AS names(name, n)))
        INTO former, present USING OLD, NEW;
    INSERT INTO cluster_pending (transaction, kind, subject)
        SELECT pg_current_xact_id(), TG_ARGV[0], subject FROM unnest(ARRAY[former, present]) AS noted(subject)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $_$;
CREATE FUNCTION cluster_note_rows() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
BEGIN
    EXECUTE format(
        'WITH subjects AS (SELECT DISTINCT %s AS subject FROM changed)'
        ' INSERT INTO cluster_pending (transaction, kind, subject)'
        ' SELECT DISTINCT pg_current_xact_id(), $1,'
        ' CASE WHEN (SELECT count(*) FROM subjects) > 100 THEN '''' ELSE subject END FROM subjects'
        ' ON CONFLICT DO NOTHING',
        (SELECT string_agg(format('%I::text', name), '||''/''||' ORDER BY n)
            FROM unnest(TG_ARGV[1:]) WITH ORDINALITY AS names(name, n)))
        USING TG_ARGV[0];
    RETURN NULL;
END $_$;
CREATE TABLE access_grants (
    id bigint NOT NULL,
    resource_type character varying(32) NOT NULL COLLATE pg_catalog."C",
    resource_id character varying(256) NOT NULL COLLATE pg_catalog."C",
    principal_type character varying(16) NOT NULL COLLATE pg_catalog."C",
    principal_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    permission character varying(16) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE access_grants IS 'One row of an access list.';
CREATE SEQUENCE access_grants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE access_grants_id_seq OWNED BY access_grants.id;
CREATE TABLE answer_runs (
    id bigint NOT NULL,
    task_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    chat_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    message_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    node_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    is_stopped boolean NOT NULL,
    started_at bigint NOT NULL
);
COMMENT ON TABLE answer_runs IS 'One message that a node is answering, whose id is the fence of the run.';
CREATE SEQUENCE answer_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE answer_runs_id_seq OWNED BY answer_runs.id;
CREATE TABLE api_keys (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    name_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    prefix character varying(32) NOT NULL COLLATE pg_catalog."C",
    expires_at bigint,
    last_used_at bigint,
    created_at bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE api_keys IS 'One API key, without its value.';
CREATE TABLE audit_base (
    id bigint NOT NULL,
    sequence bigint NOT NULL,
    hash character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE audit_base IS 'The place of the last row that retention removed: one row at most.';
CREATE TABLE audit_log (
    sequence bigint NOT NULL,
    at bigint NOT NULL,
    actor_kind character varying(16) NOT NULL COLLATE pg_catalog."C",
    actor character varying(300) NOT NULL COLLATE pg_catalog."C",
    actor_id character varying(300) NOT NULL COLLATE pg_catalog."C",
    key character varying(300) NOT NULL COLLATE pg_catalog."C",
    address character varying(300) NOT NULL COLLATE pg_catalog."C",
    action character varying(300) NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL,
    subject text NOT NULL,
    before text NOT NULL,
    after text NOT NULL,
    request_id character varying(300) NOT NULL COLLATE pg_catalog."C",
    result character varying(16) NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL,
    previous character varying(64) NOT NULL COLLATE pg_catalog."C",
    hash character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE audit_log IS 'One row of the audit log. Triggers refuse every change, and deletion of rows after the base.';
CREATE TABLE batch_answers (
    id bigint NOT NULL,
    size bigint NOT NULL,
    records bytea NOT NULL,
    batch_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE batch_answers IS 'Answers to finished lines of an unfinished batch, in the order in which they were stored.';
CREATE SEQUENCE batch_answers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE batch_answers_id_seq OWNED BY batch_answers.id;
CREATE TABLE batch_files (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    purpose character varying(32) NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE batch_files IS 'One file of requests or results, whose bytes are a blob.';
CREATE TABLE batches (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    dialect character varying(16) NOT NULL COLLATE pg_catalog."C",
    endpoint character varying(64) NOT NULL COLLATE pg_catalog."C",
    status character varying(16) NOT NULL COLLATE pg_catalog."C",
    input_file_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    output_file_id character varying(64) COLLATE pg_catalog."C",
    error_file_id character varying(64) COLLATE pg_catalog."C",
    key_id character varying(64) COLLATE pg_catalog."C",
    total bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    metadata jsonb NOT NULL,
    errors jsonb NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    started_at bigint,
    cancelled_at bigint,
    ended_at bigint,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE batches IS 'One batch: a file of requests to an endpoint, and what became of them.';
CREATE TABLE chat_folders (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    parent_id character varying(64) COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    name_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    is_expanded boolean NOT NULL,
    meta jsonb NOT NULL,
    data jsonb NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE chat_folders IS 'One folder of chats, whose name_key finds it by name.';
CREATE TABLE chat_message_items (
    id bigint NOT NULL,
    kind character varying(32) NOT NULL COLLATE pg_catalog."C",
    value jsonb NOT NULL,
    message_id bigint NOT NULL
);
COMMENT ON TABLE chat_message_items IS 'One value of a list of a message, in the order of adding.';
CREATE SEQUENCE chat_message_items_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE chat_message_items_id_seq OWNED BY chat_message_items.id;
CREATE TABLE chat_messages (
    number bigint NOT NULL,
    id character varying(255) NOT NULL COLLATE pg_catalog."C",
    parent_id character varying(255) COLLATE pg_catalog."C",
    role character varying(64) NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL,
    content_key text NOT NULL,
    parts jsonb,
    done boolean,
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    attributes jsonb NOT NULL,
    "timestamp" bigint NOT NULL,
    chat_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE chat_messages IS 'One message, numbered in the order of making, whose content_key is its text folded to one case.';
CREATE SEQUENCE chat_messages_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE chat_messages_number_seq OWNED BY chat_messages.number;
CREATE TABLE chat_tags (
    id bigint NOT NULL,
    tag character varying(255) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    chat_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE chat_tags IS 'One tag of one chat, with the name that it was given by.';
CREATE SEQUENCE chat_tags_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE chat_tags_id_seq OWNED BY chat_tags.id;
CREATE TABLE chats (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    title_key text NOT NULL,
    head jsonb NOT NULL,
    current_id character varying(255) COLLATE pg_catalog."C",
    archived boolean NOT NULL,
    pinned boolean NOT NULL,
    folder_id character varying(64) COLLATE pg_catalog."C",
    meta jsonb NOT NULL,
    last_read_at bigint,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE chats IS 'One chat without its messages, whose title_key is the title folded to one case.';
CREATE TABLE cluster_changes (
    version bigint NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE UNLOGGED TABLE cluster_pending (
    transaction xid8 NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL
);
CREATE TABLE cluster_version (
    id integer NOT NULL,
    v bigint NOT NULL,
    CONSTRAINT cluster_version_id_check CHECK ((id = 1))
);
CREATE TABLE collection_directories (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    parent_id character varying(64) COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL,
    collection_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE collection_directories IS 'One directory of a collection.';
CREATE TABLE collection_files (
    id bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    origin text NOT NULL,
    path text NOT NULL,
    place character varying(64) NOT NULL COLLATE pg_catalog."C",
    directory_id character varying(64) COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    collection_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    file_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE collection_files IS 'One file in one collection, and its place there, digested to be looked up by.';
CREATE SEQUENCE collection_files_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE collection_files_id_seq OWNED BY collection_files.id;
CREATE TABLE collections (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    name_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    description_key text NOT NULL,
    meta jsonb NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL
);
COMMENT ON TABLE collections IS 'One collection, whose number names its lexical index.';
CREATE TABLE embedding_spaces (
    id bigint NOT NULL,
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    dimension bigint NOT NULL,
    is_active boolean NOT NULL
);
COMMENT ON TABLE embedding_spaces IS 'One embedding model, whose vectors compare with each other.';
CREATE SEQUENCE embedding_spaces_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE embedding_spaces_id_seq OWNED BY embedding_spaces.id;
CREATE TABLE file_texts (
    id bigint NOT NULL,
    staged boolean NOT NULL,
    text text NOT NULL,
    file_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE file_texts IS 'The extracted text of a file, and beside it the staged one that will take its place.';
CREATE SEQUENCE file_texts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE file_texts_id_seq OWNED BY file_texts.id;
CREATE TABLE files (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    name_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    checksum character varying(255) NOT NULL COLLATE pg_catalog."C",
    content_type character varying(255) COLLATE pg_catalog."C",
    status character varying(16) NOT NULL COLLATE pg_catalog."C",
    error text,
    text_hash character varying(64) COLLATE pg_catalog."C",
    characters bigint NOT NULL,
    chunks bigint NOT NULL,
    pages bigint,
    data jsonb NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL,
    blank_pages bigint DEFAULT 0 NOT NULL,
    blob character varying(128) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE files IS 'One document, without its bytes, text and passages.';
CREATE TABLE group_external_ids (
    id bigint NOT NULL,
    provider character varying(128) NOT NULL COLLATE pg_catalog."C",
    external_id character varying(512) NOT NULL COLLATE pg_catalog."C",
    group_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE group_external_ids IS 'What a provider calls a group.';
CREATE SEQUENCE group_external_ids_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE group_external_ids_id_seq OWNED BY group_external_ids.id;
CREATE TABLE group_members (
    id bigint NOT NULL,
    source character varying(32) NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    display character varying(255) COLLATE pg_catalog."C",
    group_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE group_members IS 'One user in one group, once for each source that put it there, which may have named the user.';
CREATE SEQUENCE group_members_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE group_members_id_seq OWNED BY group_members.id;
CREATE TABLE groups (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    name_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    user_id character varying(64) COLLATE pg_catalog."C",
    permissions jsonb NOT NULL,
    data jsonb NOT NULL,
    meta jsonb NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL,
    scim jsonb,
    modified_us bigint DEFAULT 0 NOT NULL
);
COMMENT ON TABLE groups IS 'One group, whose name_key is the name folded to one case.';
CREATE TABLE idempotent_requests (
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    fingerprint character varying(64) NOT NULL COLLATE pg_catalog."C",
    reply text,
    created_at bigint NOT NULL
);
COMMENT ON TABLE idempotent_requests IS 'One request with an idempotency key, digested with its user, and its encrypted reply.';
CREATE TABLE ingest_jobs (
    id bigint NOT NULL,
    attempts bigint NOT NULL,
    not_before bigint NOT NULL,
    lease_owner character varying(64) NOT NULL COLLATE pg_catalog."C",
    lease_until bigint NOT NULL,
    error text,
    created_at bigint NOT NULL,
    file_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    fence bigint DEFAULT 0 NOT NULL
);
COMMENT ON TABLE ingest_jobs IS 'One file that waits for its passages, or is being worked on under a lease.';
CREATE SEQUENCE ingest_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE ingest_jobs_id_seq OWNED BY ingest_jobs.id;
CREATE TABLE leases (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    node_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    until bigint NOT NULL
);
COMMENT ON TABLE leases IS 'One duty that a single node does, with a fence that rises with each holder.';
CREATE TABLE limit_counters (
    id character varying(255) NOT NULL COLLATE pg_catalog."C",
    used bigint NOT NULL,
    reserved bigint NOT NULL,
    warned bigint NOT NULL,
    starts_at bigint NOT NULL,
    limit_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE limit_counters IS 'The amount that a budget has used in one period, and the part of it that calls in flight hold.';
CREATE TABLE limit_reservations (
    id bigint NOT NULL,
    call_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    node character varying(64) NOT NULL COLLATE pg_catalog."C",
    amount bigint NOT NULL,
    created_at bigint NOT NULL,
    counter_id character varying(255) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE limit_reservations IS 'What one call in flight holds of one counter, and the process that makes the call.';
CREATE SEQUENCE limit_reservations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE limit_reservations_id_seq OWNED BY limit_reservations.id;
CREATE TABLE limits (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    subject character varying(16) NOT NULL COLLATE pg_catalog."C",
    subject_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    subject_name character varying(255) NOT NULL COLLATE pg_catalog."C",
    model character varying(255) NOT NULL COLLATE pg_catalog."C",
    requests_per_minute bigint,
    tokens_per_minute bigint,
    parallel bigint,
    budgets jsonb NOT NULL,
    warn_percent bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    storage_bytes bigint
);
COMMENT ON TABLE limits IS 'One limit of a key, user, group or of all, for one model or for all models (\"\").';
CREATE TABLE models (
    id character varying(256) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    base_model_id character varying(256) COLLATE pg_catalog."C",
    params jsonb NOT NULL,
    meta jsonb NOT NULL,
    is_active boolean NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL
);
COMMENT ON TABLE models IS 'What an administrator keeps about a model.';
CREATE TABLE nodes (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    version character varying(64) NOT NULL COLLATE pg_catalog."C",
    migration character varying(255) NOT NULL COLLATE pg_catalog."C",
    address character varying(1024) NOT NULL COLLATE pg_catalog."C",
    configuration character varying(64) NOT NULL COLLATE pg_catalog."C",
    secrets character varying(64) NOT NULL COLLATE pg_catalog."C",
    plugins character varying(64) NOT NULL COLLATE pg_catalog."C",
    is_draining boolean NOT NULL,
    started_at bigint NOT NULL,
    until bigint NOT NULL
);
COMMENT ON TABLE nodes IS 'One process of the gateway, which owns what it works on until the end of its lease.';
CREATE TABLE one_time_links (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    kind character varying(16) NOT NULL COLLATE pg_catalog."C",
    email character varying(320) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    role character varying(16) NOT NULL COLLATE pg_catalog."C",
    group_ids jsonb NOT NULL,
    created_by character varying(255) NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
COMMENT ON TABLE one_time_links IS 'One invitation or sign-in link, without its token. It is deleted when it is used.';
CREATE TABLE passages (
    id bigint NOT NULL,
    staged boolean NOT NULL,
    number bigint NOT NULL,
    start bigint NOT NULL,
    page bigint,
    heading text,
    text text NOT NULL,
    file_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    segmented text,
    words tsvector GENERATED ALWAYS AS (to_tsvector('english'::regconfig, COALESCE(segmented, text))) STORED
);
COMMENT ON TABLE passages IS 'One chunk of a text, not to be found while it is staged.';
CREATE SEQUENCE passages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE passages_id_seq OWNED BY passages.id;
CREATE TABLE passed_batches (
    id bigint NOT NULL,
    state jsonb NOT NULL,
    batch_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE passed_batches IS 'The state of a batch that a provider runs. It is stored before the provider is asked to begin.';
CREATE SEQUENCE passed_batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE passed_batches_id_seq OWNED BY passed_batches.id;
CREATE TABLE plugins (
    number bigint NOT NULL,
    family character varying(16) NOT NULL COLLATE pg_catalog."C",
    id character varying(255) NOT NULL COLLATE pg_catalog."C",
    kind character varying(16) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    content text NOT NULL,
    description text NOT NULL,
    manifest jsonb NOT NULL,
    meta jsonb NOT NULL,
    specs jsonb NOT NULL,
    valves jsonb NOT NULL,
    is_active boolean NOT NULL,
    is_global boolean NOT NULL,
    origin character varying(16) NOT NULL COLLATE pg_catalog."C",
    path text,
    missing jsonb NOT NULL,
    problem jsonb,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL
);
COMMENT ON TABLE plugins IS 'One plugin. Its valves are an object, or a text when they are sealed.';
CREATE SEQUENCE plugins_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE plugins_number_seq OWNED BY plugins.number;
CREATE TABLE response_ids (
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);
COMMENT ON TABLE response_ids IS 'One id of a provider, digested, and the user who received it first.';
CREATE TABLE revoked_tokens (
    jti character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
COMMENT ON TABLE revoked_tokens IS 'One session token that was ended before its time.';
CREATE TABLE scim_tokens (
    id bigint NOT NULL,
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    retired_at bigint
);
COMMENT ON TABLE scim_tokens IS 'One token of SCIM clients, as its digest. The highest id is the newest. Retired ones stay refused.';
CREATE SEQUENCE scim_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE scim_tokens_id_seq OWNED BY scim_tokens.id;
CREATE TABLE sessions (
    jti character varying(64) NOT NULL COLLATE pg_catalog."C",
    token_version bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    last_seen_at bigint NOT NULL,
    confirmed_at bigint NOT NULL,
    method character varying(16) NOT NULL COLLATE pg_catalog."C",
    provider character varying(128) NOT NULL COLLATE pg_catalog."C",
    provider_session character varying(512) NOT NULL COLLATE pg_catalog."C",
    user_agent character varying(255) NOT NULL COLLATE pg_catalog."C",
    address character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE sessions IS 'One sign-in, by the id of its token.';
CREATE TABLE shared_chats (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    document jsonb NOT NULL,
    created_at bigint NOT NULL,
    chat_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE shared_chats IS 'One chat as it was when it was shared.';
CREATE TABLE stored_responses (
    id character varying(128) NOT NULL COLLATE pg_catalog."C",
    previous_id character varying(128) COLLATE pg_catalog."C",
    model character varying(256) NOT NULL COLLATE pg_catalog."C",
    source character varying(128) NOT NULL COLLATE pg_catalog."C",
    response jsonb NOT NULL,
    input jsonb NOT NULL,
    events jsonb NOT NULL,
    size bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE stored_responses IS 'One response with the input of its request, which continues the one that previous_id names.';
CREATE TABLE stored_values (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    value jsonb NOT NULL,
    updated_at bigint NOT NULL,
    updated_by character varying(255) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE stored_values IS 'One stored JSON value by name.';
CREATE TABLE stream_frames (
    id bigint NOT NULL,
    stream_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    first_frame bigint NOT NULL,
    last_frame bigint NOT NULL,
    frames bytea NOT NULL
);
COMMENT ON TABLE stream_frames IS 'Consecutive frames of one stream, joined, with the numbers of the first and the last.';
CREATE SEQUENCE stream_frames_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE stream_frames_id_seq OWNED BY stream_frames.id;
CREATE TABLE streams (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    protocol character varying(16) NOT NULL COLLATE pg_catalog."C",
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    ended_at bigint,
    last_frame bigint NOT NULL,
    size bigint NOT NULL,
    headers jsonb NOT NULL,
    node_id character varying(64) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE streams IS 'One answer that goes on without its client. An operator as its user has no account.';
CREATE TABLE tool_servers (
    id character varying(255) NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    url text NOT NULL,
    type character varying(16) NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    path text NOT NULL,
    key text NOT NULL,
    headers jsonb NOT NULL,
    spec jsonb,
    functions jsonb NOT NULL,
    timeout double precision,
    is_active boolean NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL
);
COMMENT ON TABLE tool_servers IS 'One server whose operations are tools.';
CREATE TABLE usage (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    day character varying(10) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    user_name character varying(320) NOT NULL COLLATE pg_catalog."C",
    key_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    key_name character varying(255) NOT NULL COLLATE pg_catalog."C",
    model character varying(255) NOT NULL COLLATE pg_catalog."C",
    provider character varying(255) NOT NULL COLLATE pg_catalog."C",
    endpoint character varying(32) NOT NULL COLLATE pg_catalog."C",
    requests bigint NOT NULL,
    failures bigint NOT NULL,
    prompt bigint NOT NULL,
    cached bigint NOT NULL,
    cache_written bigint NOT NULL,
    completion bigint NOT NULL,
    reasoning bigint NOT NULL,
    milliseconds bigint NOT NULL,
    first_milliseconds bigint NOT NULL,
    timed bigint NOT NULL,
    cost bigint NOT NULL,
    unpriced bigint NOT NULL,
    estimated bigint NOT NULL
);
COMMENT ON TABLE usage IS 'Sums of the calls of a day (UTC) by a user with a key, of a model at a provider.';
CREATE TABLE used_values (
    digest character varying(64) NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
COMMENT ON TABLE used_values IS 'One value that may be used once, digested: the state of a sign-in, the id of a logout token.';
CREATE TABLE user_emails (
    id bigint NOT NULL,
    value_key character varying(960) NOT NULL COLLATE pg_catalog."C",
    type_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    is_primary boolean NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE user_emails IS 'One shown address of a user, to look it up by.';
CREATE SEQUENCE user_emails_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE user_emails_id_seq OWNED BY user_emails.id;
CREATE TABLE user_external_ids (
    id bigint NOT NULL,
    provider character varying(128) NOT NULL COLLATE pg_catalog."C",
    external_id character varying(512) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE user_external_ids IS 'What a provider calls a user.';
CREATE SEQUENCE user_external_ids_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE user_external_ids_id_seq OWNED BY user_external_ids.id;
CREATE TABLE user_identities (
    id bigint NOT NULL,
    provider character varying(128) NOT NULL COLLATE pg_catalog."C",
    issuer character varying(256) NOT NULL COLLATE pg_catalog."C",
    subject character varying(384) NOT NULL COLLATE pg_catalog."C",
    provisioning_id character varying(384) NOT NULL COLLATE pg_catalog."C",
    email character varying(320) NOT NULL COLLATE pg_catalog."C",
    id_token text NOT NULL,
    refresh_token text NOT NULL,
    linked_at bigint NOT NULL,
    used_at bigint NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    access_token text DEFAULT ''::text NOT NULL,
    expires_at bigint DEFAULT 0 NOT NULL
);
COMMENT ON TABLE user_identities IS 'One link of a user to a person at a provider, with encrypted tokens.';
CREATE SEQUENCE user_identities_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE user_identities_id_seq OWNED BY user_identities.id;
CREATE TABLE user_subjects (
    id bigint NOT NULL,
    provider character varying(128) NOT NULL COLLATE pg_catalog."C",
    subject character varying(512) NOT NULL COLLATE pg_catalog."C",
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE user_subjects IS 'The OAuth subject that a user is to a provider.';
CREATE SEQUENCE user_subjects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE user_subjects_id_seq OWNED BY user_subjects.id;
CREATE TABLE user_valves (
    id bigint NOT NULL,
    family character varying(16) NOT NULL COLLATE pg_catalog."C",
    plugin_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    valves jsonb NOT NULL,
    user_id character varying(64) NOT NULL COLLATE pg_catalog."C"
);
COMMENT ON TABLE user_valves IS 'What one user set in one plugin: an object, or a text when it is sealed.';
CREATE SEQUENCE user_valves_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE user_valves_id_seq OWNED BY user_valves.id;
CREATE TABLE users (
    id character varying(64) NOT NULL COLLATE pg_catalog."C",
    email character varying(320) NOT NULL COLLATE pg_catalog."C",
    username character varying(255) COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    name_key character varying(765) NOT NULL COLLATE pg_catalog."C",
    role character varying(16) NOT NULL COLLATE pg_catalog."C",
    active boolean NOT NULL,
    password_hash character varying(512) COLLATE pg_catalog."C",
    profile_image_url text NOT NULL,
    token_version bigint NOT NULL,
    profile jsonb NOT NULL,
    settings jsonb,
    info jsonb,
    oauth jsonb,
    scim jsonb,
    last_active_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    created_at bigint NOT NULL,
    user_name character varying(320) COLLATE pg_catalog."C",
    display_name character varying(255) COLLATE pg_catalog."C",
    formatted_name character varying(255) COLLATE pg_catalog."C",
    given_name character varying(255) COLLATE pg_catalog."C",
    family_name character varying(255) COLLATE pg_catalog."C",
    emails jsonb,
    user_name_key character varying(960) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C",
    display_name_key character varying(765) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C",
    formatted_name_key character varying(765) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C",
    given_name_key character varying(765) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C",
    family_name_key character varying(765) DEFAULT ''::character varying NOT NULL COLLATE pg_catalog."C",
    modified_us bigint DEFAULT 0 NOT NULL,
    roles jsonb
);
COMMENT ON TABLE users IS 'One account.';
CREATE TABLE vector_batches (
    id bigint NOT NULL,
    staged boolean NOT NULL,
    ids bytea NOT NULL,
    vectors bytea NOT NULL,
    file_id character varying(64) NOT NULL COLLATE pg_catalog."C",
    space_id bigint NOT NULL
);
ALTER TABLE ONLY vector_batches ALTER COLUMN vectors SET STORAGE EXTERNAL;
COMMENT ON TABLE vector_batches IS 'The vectors of some passages of one file, with the ids of the passages.';
CREATE SEQUENCE vector_batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE vector_batches_id_seq OWNED BY vector_batches.id;
ALTER TABLE ONLY access_grants ALTER COLUMN id SET DEFAULT nextval('access_grants_id_seq'::regclass);
ALTER TABLE ONLY answer_runs ALTER COLUMN id SET DEFAULT nextval('answer_runs_id_seq'::regclass);
ALTER TABLE ONLY batch_answers ALTER COLUMN id SET DEFAULT nextval('batch_answers_id_seq'::regclass);
ALTER TABLE ONLY chat_message_items ALTER COLUMN id SET DEFAULT nextval('chat_message_items_id_seq'::regclass);
ALTER TABLE ONLY chat_messages ALTER COLUMN number SET DEFAULT nextval('chat_messages_number_seq'::regclass);
ALTER TABLE ONLY chat_tags ALTER COLUMN id SET DEFAULT nextval('chat_tags_id_seq'::regclass);
ALTER TABLE ONLY collection_files ALTER COLUMN id SET DEFAULT nextval('collection_files_id_seq'::regclass);
ALTER TABLE ONLY embedding_spaces ALTER COLUMN id SET DEFAULT nextval('embedding_spaces_id_seq'::regclass);
ALTER TABLE ONLY file_texts ALTER COLUMN id SET DEFAULT nextval('file_texts_id_seq'::regclass);
ALTER TABLE ONLY group_external_ids ALTER COLUMN id SET DEFAULT nextval('group_external_ids_id_seq'::regclass);
ALTER TABLE ONLY group_members ALTER COLUMN id SET DEFAULT nextval('group_members_id_seq'::regclass);
ALTER TABLE ONLY ingest_jobs ALTER COLUMN id SET DEFAULT nextval('ingest_jobs_id_seq'::regclass);
ALTER TABLE ONLY limit_reservations ALTER COLUMN id SET DEFAULT nextval('limit_reservations_id_seq'::regclass);
ALTER TABLE ONLY passages ALTER COLUMN id SET DEFAULT nextval('passages_id_seq'::regclass);
ALTER TABLE ONLY passed_batches ALTER COLUMN id SET DEFAULT nextval('passed_batches_id_seq'::regclass);
ALTER TABLE ONLY plugins ALTER COLUMN number SET DEFAULT nextval('plugins_number_seq'::regclass);
ALTER TABLE ONLY scim_tokens ALTER COLUMN id SET DEFAULT nextval('scim_tokens_id_seq'::regclass);
ALTER TABLE ONLY stream_frames ALTER COLUMN id SET DEFAULT nextval('stream_frames_id_seq'::regclass);
ALTER TABLE ONLY user_emails ALTER COLUMN id SET DEFAULT nextval('user_emails_id_seq'::regclass);
ALTER TABLE ONLY user_external_ids ALTER COLUMN id SET DEFAULT nextval('user_external_ids_id_seq'::regclass);
ALTER TABLE ONLY user_identities ALTER COLUMN id SET DEFAULT nextval('user_identities_id_seq'::regclass);
ALTER TABLE ONLY user_subjects ALTER COLUMN id SET DEFAULT nextval('user_subjects_id_seq'::regclass);
ALTER TABLE ONLY user_valves ALTER COLUMN id SET DEFAULT nextval('user_valves_id_seq'::regclass);
ALTER TABLE ONLY vector_batches ALTER COLUMN id SET DEFAULT nextval('vector_batches_id_seq'::regclass);
INSERT INTO cluster_version VALUES (1, 0);
ALTER TABLE ONLY access_grants
    ADD CONSTRAINT access_grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY answer_runs
    ADD CONSTRAINT answer_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit_base
    ADD CONSTRAINT audit_base_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY batch_answers
    ADD CONSTRAINT batch_answers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY batch_files
    ADD CONSTRAINT batch_files_pkey PRIMARY KEY (id);
ALTER TABLE ONLY batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY chat_folders
    ADD CONSTRAINT chat_folders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY chat_message_items
    ADD CONSTRAINT chat_message_items_pkey PRIMARY KEY (id);
ALTER TABLE ONLY chat_messages
    ADD CONSTRAINT chat_messages_pkey PRIMARY KEY (number);
ALTER TABLE ONLY chat_tags
    ADD CONSTRAINT chat_tags_pkey PRIMARY KEY (id);
ALTER TABLE ONLY chats
    ADD CONSTRAINT chats_pkey PRIMARY KEY (id);
ALTER TABLE ONLY cluster_changes
    ADD CONSTRAINT cluster_changes_pkey PRIMARY KEY (version);
ALTER TABLE ONLY cluster_pending
    ADD CONSTRAINT cluster_pending_pkey PRIMARY KEY (transaction, kind, subject);
ALTER TABLE ONLY cluster_version
    ADD CONSTRAINT cluster_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY collection_directories
    ADD CONSTRAINT collection_directories_pkey PRIMARY KEY (id);
ALTER TABLE ONLY collection_files
    ADD CONSTRAINT collection_files_pkey PRIMARY KEY (id);
ALTER TABLE ONLY collections
    ADD CONSTRAINT collections_number_key UNIQUE (number);
ALTER TABLE ONLY collections
    ADD CONSTRAINT collections_pkey PRIMARY KEY (id);
ALTER TABLE ONLY embedding_spaces
    ADD CONSTRAINT embedding_spaces_name_key UNIQUE (name);
ALTER TABLE ONLY embedding_spaces
    ADD CONSTRAINT embedding_spaces_pkey PRIMARY KEY (id);
ALTER TABLE ONLY file_texts
    ADD CONSTRAINT file_texts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY files
    ADD CONSTRAINT files_pkey PRIMARY KEY (id);
ALTER TABLE ONLY group_external_ids
    ADD CONSTRAINT group_external_ids_pkey PRIMARY KEY (id);
ALTER TABLE ONLY group_members
    ADD CONSTRAINT group_members_pkey PRIMARY KEY (id);
ALTER TABLE ONLY groups
    ADD CONSTRAINT groups_name_key_key UNIQUE (name_key);
ALTER TABLE ONLY groups
    ADD CONSTRAINT groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY idempotent_requests
    ADD CONSTRAINT idempotent_requests_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY ingest_jobs
    ADD CONSTRAINT ingest_jobs_file_id_key UNIQUE (file_id);
ALTER TABLE ONLY ingest_jobs
    ADD CONSTRAINT ingest_jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY limit_counters
    ADD CONSTRAINT limit_counters_pkey PRIMARY KEY (id);
ALTER TABLE ONLY limit_reservations
    ADD CONSTRAINT limit_reservations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY models
    ADD CONSTRAINT models_pkey PRIMARY KEY (id);
ALTER TABLE ONLY nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY one_time_links
    ADD CONSTRAINT one_time_links_digest_key UNIQUE (digest);
ALTER TABLE ONLY one_time_links
    ADD CONSTRAINT one_time_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY passages
    ADD CONSTRAINT passages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY passed_batches
    ADD CONSTRAINT passed_batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY plugins
    ADD CONSTRAINT plugins_pkey PRIMARY KEY (number);
ALTER TABLE ONLY response_ids
    ADD CONSTRAINT response_ids_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY revoked_tokens
    ADD CONSTRAINT revoked_tokens_pkey PRIMARY KEY (jti);
ALTER TABLE ONLY scim_tokens
    ADD CONSTRAINT scim_tokens_digest_key UNIQUE (digest);
ALTER TABLE ONLY scim_tokens
    ADD CONSTRAINT scim_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (jti);
ALTER TABLE ONLY shared_chats
    ADD CONSTRAINT shared_chats_chat_id_key UNIQUE (chat_id);
ALTER TABLE ONLY shared_chats
    ADD CONSTRAINT shared_chats_pkey PRIMARY KEY (id);
ALTER TABLE ONLY stored_responses
    ADD CONSTRAINT stored_responses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY stored_values
    ADD CONSTRAINT stored_values_pkey PRIMARY KEY (name);
ALTER TABLE ONLY stream_frames
    ADD CONSTRAINT stream_frames_pkey PRIMARY KEY (id);
ALTER TABLE ONLY streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tool_servers
    ADD CONSTRAINT tool_servers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY access_grants
    ADD CONSTRAINT uid_access_gran_resourc_8f3b2c UNIQUE (resource_type, resource_id, principal_type, principal_id, permission);
ALTER TABLE ONLY answer_runs
    ADD CONSTRAINT uid_answer_runs_user_id_246207 UNIQUE (user_id, chat_id, message_id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT uid_api_keys_user_id_d05d82 UNIQUE (user_id, name_key);
ALTER TABLE ONLY chat_messages
    ADD CONSTRAINT uid_chat_messag_chat_id_c43eaa UNIQUE (chat_id, id);
ALTER TABLE ONLY chat_tags
    ADD CONSTRAINT uid_chat_tags_chat_id_5f556d UNIQUE (chat_id, tag);
ALTER TABLE ONLY collection_files
    ADD CONSTRAINT uid_collection__collect_e78931 UNIQUE (collection_id, file_id);
ALTER TABLE ONLY file_texts
    ADD CONSTRAINT uid_file_texts_file_id_fcc988 UNIQUE (file_id, staged);
ALTER TABLE ONLY group_external_ids
    ADD CONSTRAINT uid_group_exter_group_i_9d8964 UNIQUE (group_id, provider);
ALTER TABLE ONLY group_external_ids
    ADD CONSTRAINT uid_group_exter_provide_92e020 UNIQUE (provider, external_id);
ALTER TABLE ONLY group_members
    ADD CONSTRAINT uid_group_membe_group_i_c11628 UNIQUE (group_id, user_id, source);
ALTER TABLE ONLY limits
    ADD CONSTRAINT uid_limits_subject_38e39f UNIQUE (subject, subject_id, model);
ALTER TABLE ONLY passed_batches
    ADD CONSTRAINT uid_passed_batc_batch_i_f03c1e UNIQUE (batch_id);
ALTER TABLE ONLY plugins
    ADD CONSTRAINT uid_plugins_family_ded120 UNIQUE (family, id);
ALTER TABLE ONLY stream_frames
    ADD CONSTRAINT uid_stream_fram_stream__5be605 UNIQUE (stream_id, first_frame);
ALTER TABLE ONLY user_external_ids
    ADD CONSTRAINT uid_user_extern_provide_eb40c8 UNIQUE (provider, external_id);
ALTER TABLE ONLY user_external_ids
    ADD CONSTRAINT uid_user_extern_user_id_ab4db3 UNIQUE (user_id, provider);
ALTER TABLE ONLY user_identities
    ADD CONSTRAINT uid_user_identi_issuer_e00b68 UNIQUE (issuer, subject);
ALTER TABLE ONLY user_identities
    ADD CONSTRAINT uid_user_identi_user_id_b17c07 UNIQUE (user_id, provider);
ALTER TABLE ONLY user_subjects
    ADD CONSTRAINT uid_user_subjec_provide_760530 UNIQUE (provider, subject);
ALTER TABLE ONLY user_subjects
    ADD CONSTRAINT uid_user_subjec_user_id_61e68e UNIQUE (user_id, provider);
ALTER TABLE ONLY user_valves
    ADD CONSTRAINT uid_user_valves_user_id_c76db5 UNIQUE (user_id, family, plugin_id);
ALTER TABLE ONLY users
    ADD CONSTRAINT uid_users_user_na_b747c2 UNIQUE (user_name_key);
ALTER TABLE ONLY usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY used_values
    ADD CONSTRAINT used_values_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY user_emails
    ADD CONSTRAINT user_emails_pkey PRIMARY KEY (id);
ALTER TABLE ONLY user_external_ids
    ADD CONSTRAINT user_external_ids_pkey PRIMARY KEY (id);
ALTER TABLE ONLY user_identities
    ADD CONSTRAINT user_identities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY user_subjects
    ADD CONSTRAINT user_subjects_pkey PRIMARY KEY (id);
ALTER TABLE ONLY user_valves
    ADD CONSTRAINT user_valves_pkey PRIMARY KEY (id);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_email_key UNIQUE (email);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_username_key UNIQUE (username);
ALTER TABLE ONLY vector_batches
    ADD CONSTRAINT vector_batches_pkey PRIMARY KEY (id);
CREATE INDEX idx_answer_runs_node_id_c8bb90 ON answer_runs USING btree (node_id);
CREATE INDEX idx_answer_runs_task_id_699a87 ON answer_runs USING btree (task_id);
CREATE INDEX idx_audit_log_at_63718d ON audit_log USING btree (at);
CREATE INDEX idx_batch_answe_batch_i_223ee6 ON batch_answers USING btree (batch_id, id);
CREATE INDEX idx_batch_files_expires_7538a3 ON batch_files USING btree (expires_at);
CREATE INDEX idx_batch_files_user_id_bfd411 ON batch_files USING btree (user_id, created_at, id);
CREATE INDEX idx_batches_status_5f62b5 ON batches USING btree (status);
CREATE INDEX idx_batches_user_id_15a76a ON batches USING btree (user_id, created_at, id);
CREATE INDEX idx_chat_folder_user_id_afdaa9 ON chat_folders USING btree (user_id, name_key);
CREATE INDEX idx_chat_messag_chat_id_3d7cdb ON chat_messages USING btree (chat_id, number);
CREATE INDEX idx_chat_messag_chat_id_ba8727 ON chat_messages USING btree (chat_id, parent_id);
CREATE INDEX idx_chat_messag_message_bbcbfa ON chat_message_items USING btree (message_id, kind, id);
CREATE INDEX idx_chat_messag_state_e66fa7 ON chat_messages USING btree (state);
CREATE INDEX idx_chat_messages_favorite ON chat_messages USING btree (chat_id, "timestamp") WHERE (attributes @> '{"favorite": true}'::jsonb);
CREATE INDEX idx_chats_updated_dee0b1 ON chats USING btree (updated_at);
CREATE INDEX idx_chats_user_id_e6f4e4 ON chats USING btree (user_id, updated_at, id);
CREATE INDEX idx_collection__collect_00359a ON collection_directories USING btree (collection_id, parent_id);
CREATE INDEX idx_collection__collect_b30262 ON collection_files USING btree (collection_id, place);
CREATE INDEX idx_collection__collect_c0a76a ON collection_files USING btree (collection_id, id);
CREATE INDEX idx_collection__file_id_4bc09b ON collection_files USING btree (file_id);
CREATE INDEX idx_collections_name_ke_76d043 ON collections USING btree (name_key);
CREATE INDEX idx_collections_updated_a6bf21 ON collections USING btree (updated_at);
CREATE INDEX idx_collections_user_id_299b91 ON collections USING btree (user_id);
CREATE INDEX idx_files_created_e0978a ON files USING btree (created_at);
CREATE INDEX idx_files_digest_3dc6ee ON files USING btree (digest);
CREATE INDEX idx_files_status_04501b ON files USING btree (status);
CREATE INDEX idx_files_text_ha_a3debf ON files USING btree (text_hash);
CREATE INDEX idx_files_updated_32bcf3 ON files USING btree (updated_at, id);
CREATE INDEX idx_files_user_id_11ec3a ON files USING btree (user_id, size);
CREATE INDEX idx_files_user_id_a51de5 ON files USING btree (user_id, created_at, id);
CREATE INDEX idx_group_membe_user_id_d5256e ON group_members USING btree (user_id, group_id);
CREATE INDEX idx_idempotent__created_a52d7f ON idempotent_requests USING btree (created_at);
CREATE INDEX idx_idempotent__user_id_8b4210 ON idempotent_requests USING btree (user_id, created_at);
CREATE INDEX idx_ingest_jobs_not_bef_7335a9 ON ingest_jobs USING btree (not_before);
CREATE INDEX idx_limit_count_starts__79da3b ON limit_counters USING btree (starts_at);
CREATE INDEX idx_limit_reser_call_id_051d77 ON limit_reservations USING btree (call_id);
CREATE INDEX idx_nodes_name_c52c40 ON nodes USING btree (name);
CREATE INDEX idx_one_time_li_expires_871635 ON one_time_links USING btree (expires_at);
CREATE INDEX idx_passages_file_id_8739c3 ON passages USING btree (file_id, staged, number);
CREATE INDEX idx_passages_words ON passages USING gin (words) WHERE (NOT staged);
CREATE INDEX idx_response_id_created_6a53a4 ON response_ids USING btree (created_at);
CREATE INDEX idx_response_id_user_id_64b8f6 ON response_ids USING btree (user_id, created_at);
CREATE INDEX idx_revoked_tok_expires_b3eec6 ON revoked_tokens USING btree (expires_at);
CREATE INDEX idx_sessions_expires_6bcc94 ON sessions USING btree (expires_at);
CREATE INDEX idx_sessions_provide_da87a8 ON sessions USING btree (provider, provider_session);
CREATE INDEX idx_sessions_user_id_80072d ON sessions USING btree (user_id);
CREATE INDEX idx_stored_resp_expires_6ea41d ON stored_responses USING btree (expires_at);
CREATE INDEX idx_stored_resp_user_id_830b49 ON stored_responses USING btree (user_id, created_at, id);
CREATE INDEX idx_streams_state_2f2df7 ON streams USING btree (state);
CREATE INDEX idx_usage_day_5405e6 ON usage USING btree (day);
CREATE INDEX idx_usage_user_id_dec9fd ON usage USING btree (user_id, day);
CREATE INDEX idx_used_values_expires_6be1cd ON used_values USING btree (expires_at);
CREATE INDEX idx_user_emails_user_id_06a345 ON user_emails USING btree (user_id);
CREATE INDEX idx_user_emails_value_k_e59877 ON user_emails USING btree (value_key);
CREATE INDEX idx_user_valves_family_1e3ffd ON user_valves USING btree (family, plugin_id);
CREATE INDEX idx_users_created_43d91f ON users USING btree (created_at);
CREATE INDEX idx_users_display_eb26be ON users USING btree (display_name_key, id);
CREATE INDEX idx_users_id_d95514 ON users USING btree (id, display_name_key);
CREATE INDEX idx_vector_batc_file_id_865a94 ON vector_batches USING btree (file_id, space_id);
CREATE INDEX idx_vector_batc_space_i_4b0923 ON vector_batches USING btree (space_id, file_id);
CREATE TRIGGER audit_base_grows BEFORE UPDATE ON audit_base FOR EACH ROW EXECUTE FUNCTION audit_base_grow();
CREATE TRIGGER audit_base_kept BEFORE DELETE ON audit_base FOR EACH ROW EXECUTE FUNCTION audit_log_refuse();
CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_keep();
CREATE TRIGGER audit_log_not_emptied BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION audit_log_refuse();
CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_refuse();
CREATE TRIGGER cluster_grant_delete AFTER DELETE ON access_grants REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('grant', 'resource_type', 'resource_id');
CREATE TRIGGER cluster_grant_insert AFTER INSERT ON access_grants REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('grant', 'resource_type', 'resource_id');
CREATE TRIGGER cluster_grant_truncate AFTER TRUNCATE ON access_grants FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('grant');
CREATE TRIGGER cluster_grant_update AFTER UPDATE ON access_grants FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('grant', 'resource_type', 'resource_id');
CREATE TRIGGER cluster_group_delete AFTER DELETE ON groups REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('group', 'id');
CREATE TRIGGER cluster_group_truncate AFTER TRUNCATE ON groups FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('group');
CREATE TRIGGER cluster_group_update AFTER UPDATE OF permissions ON groups FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('group', 'id');
CREATE TRIGGER cluster_key_delete AFTER DELETE ON api_keys REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('key', 'user_id');
CREATE TRIGGER cluster_key_truncate AFTER TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('key');
CREATE TRIGGER cluster_key_update AFTER UPDATE OF user_id, digest, expires_at ON api_keys FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('key', 'user_id');
CREATE TRIGGER cluster_limit_delete AFTER DELETE ON limits REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('limit', 'id');
CREATE TRIGGER cluster_limit_insert AFTER INSERT ON limits REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('limit', 'id');
CREATE TRIGGER cluster_limit_truncate AFTER TRUNCATE ON limits FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('limit');
CREATE TRIGGER cluster_limit_update AFTER UPDATE ON limits FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('limit', 'id');
CREATE CONSTRAINT TRIGGER cluster_logged AFTER INSERT ON cluster_pending DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cluster_log();
CREATE TRIGGER cluster_member_delete AFTER DELETE ON group_members REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('member', 'user_id');
CREATE TRIGGER cluster_member_insert AFTER INSERT ON group_members REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('member', 'user_id');
CREATE TRIGGER cluster_member_truncate AFTER TRUNCATE ON group_members FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('member');
CREATE TRIGGER cluster_member_update AFTER UPDATE OF group_id, user_id ON group_members FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('member', 'user_id');
CREATE TRIGGER cluster_model_delete AFTER DELETE ON models REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('model', 'id');
CREATE TRIGGER cluster_model_insert AFTER INSERT ON models REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('model', 'id');
CREATE TRIGGER cluster_model_truncate AFTER TRUNCATE ON models FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('model');
CREATE TRIGGER cluster_model_update AFTER UPDATE ON models FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('model', 'id');
CREATE TRIGGER cluster_plugin_delete AFTER DELETE ON plugins REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('plugin', 'family', 'id');
CREATE TRIGGER cluster_plugin_insert AFTER INSERT ON plugins REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('plugin', 'family', 'id');
CREATE TRIGGER cluster_plugin_truncate AFTER TRUNCATE ON plugins FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('plugin');
CREATE TRIGGER cluster_plugin_update AFTER UPDATE OF family, id, kind, user_id, name, content, description, manifest, meta, specs, valves, is_active, is_global, origin, path, missing ON plugins FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('plugin', 'family', 'id');
CREATE TRIGGER cluster_scim_token_delete AFTER DELETE ON scim_tokens REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('scim_token', 'id');
CREATE TRIGGER cluster_scim_token_insert AFTER INSERT ON scim_tokens REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('scim_token', 'id');
CREATE TRIGGER cluster_scim_token_truncate AFTER TRUNCATE ON scim_tokens FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('scim_token');
CREATE TRIGGER cluster_scim_token_update AFTER UPDATE ON scim_tokens FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('scim_token', 'id');
CREATE TRIGGER cluster_session_insert AFTER INSERT ON revoked_tokens REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('session', 'user_id', 'jti');
CREATE TRIGGER cluster_session_truncate AFTER TRUNCATE ON revoked_tokens FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('session');
CREATE TRIGGER cluster_setting_delete AFTER DELETE ON stored_values REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('setting', 'name');
CREATE TRIGGER cluster_setting_insert AFTER INSERT ON stored_values REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('setting', 'name');
CREATE TRIGGER cluster_setting_truncate AFTER TRUNCATE ON stored_values FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('setting');
CREATE TRIGGER cluster_setting_update AFTER UPDATE ON stored_values FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('setting', 'name');
CREATE TRIGGER cluster_tool_server_delete AFTER DELETE ON tool_servers REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('tool_server', 'id');
CREATE TRIGGER cluster_tool_server_insert AFTER INSERT ON tool_servers REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('tool_server', 'id');
CREATE TRIGGER cluster_tool_server_truncate AFTER TRUNCATE ON tool_servers FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('tool_server');
CREATE TRIGGER cluster_tool_server_update AFTER UPDATE ON tool_servers FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('tool_server', 'id');
CREATE TRIGGER cluster_user_out AFTER UPDATE OF active, role, token_version ON users FOR EACH ROW WHEN ((old.active AND ((old.role)::text <> 'pending'::text) AND (NOT (new.active AND ((new.role)::text <> 'pending'::text))))) EXECUTE FUNCTION cluster_note_row('user_out', 'id');
CREATE TRIGGER cluster_user_removed_delete AFTER DELETE ON users REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_rows('user_removed', 'id');
CREATE TRIGGER cluster_user_removed_truncate AFTER TRUNCATE ON users FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('user_removed');
CREATE TRIGGER cluster_user_signed_out AFTER UPDATE OF active, role, token_version ON users FOR EACH ROW WHEN ((old.token_version <> new.token_version)) EXECUTE FUNCTION cluster_note_row('user_signed_out', 'id');
CREATE TRIGGER cluster_user_truncate AFTER TRUNCATE ON users FOR EACH STATEMENT EXECUTE FUNCTION cluster_note_all('user');
CREATE TRIGGER cluster_user_update AFTER UPDATE OF email, username, name, role, active, profile_image_url, token_version, profile, settings, info, oauth, scim, user_name, display_name, formatted_name, given_name, family_name, emails, roles ON users FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION cluster_note_row('user', 'id');
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY batch_answers
    ADD CONSTRAINT batch_answers_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY batch_files
    ADD CONSTRAINT batch_files_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY batches
    ADD CONSTRAINT batches_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY chat_folders
    ADD CONSTRAINT chat_folders_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY chat_message_items
    ADD CONSTRAINT chat_message_items_message_id_fkey FOREIGN KEY (message_id) REFERENCES chat_messages(number) ON DELETE CASCADE;
ALTER TABLE ONLY chat_messages
    ADD CONSTRAINT chat_messages_chat_id_fkey FOREIGN KEY (chat_id) REFERENCES chats(id) ON DELETE CASCADE;
ALTER TABLE ONLY chat_tags
    ADD CONSTRAINT chat_tags_chat_id_fkey FOREIGN KEY (chat_id) REFERENCES chats(id) ON DELETE CASCADE;
ALTER TABLE ONLY chats
    ADD CONSTRAINT chats_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY collection_directories
    ADD CONSTRAINT collection_directories_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES collections(id) ON DELETE CASCADE;
ALTER TABLE ONLY collection_files
    ADD CONSTRAINT collection_files_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES collections(id) ON DELETE CASCADE;
ALTER TABLE ONLY collection_files
    ADD CONSTRAINT collection_files_file_id_fkey FOREIGN KEY (file_id) REFERENCES files(id) ON DELETE CASCADE;
ALTER TABLE ONLY file_texts
    ADD CONSTRAINT file_texts_file_id_fkey FOREIGN KEY (file_id) REFERENCES files(id) ON DELETE CASCADE;
ALTER TABLE ONLY group_external_ids
    ADD CONSTRAINT group_external_ids_group_id_fkey FOREIGN KEY (group_id) REFERENCES groups(id) ON DELETE CASCADE;
ALTER TABLE ONLY group_members
    ADD CONSTRAINT group_members_group_id_fkey FOREIGN KEY (group_id) REFERENCES groups(id) ON DELETE CASCADE;
ALTER TABLE ONLY group_members
    ADD CONSTRAINT group_members_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY ingest_jobs
    ADD CONSTRAINT ingest_jobs_file_id_fkey FOREIGN KEY (file_id) REFERENCES files(id) ON DELETE CASCADE;
ALTER TABLE ONLY limit_counters
    ADD CONSTRAINT limit_counters_limit_id_fkey FOREIGN KEY (limit_id) REFERENCES limits(id) ON DELETE CASCADE;
ALTER TABLE ONLY limit_reservations
    ADD CONSTRAINT limit_reservations_counter_id_fkey FOREIGN KEY (counter_id) REFERENCES limit_counters(id) ON DELETE CASCADE;
ALTER TABLE ONLY passages
    ADD CONSTRAINT passages_file_id_fkey FOREIGN KEY (file_id) REFERENCES files(id) ON DELETE CASCADE;
ALTER TABLE ONLY passed_batches
    ADD CONSTRAINT passed_batches_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY shared_chats
    ADD CONSTRAINT shared_chats_chat_id_fkey FOREIGN KEY (chat_id) REFERENCES chats(id) ON DELETE CASCADE;
ALTER TABLE ONLY stored_responses
    ADD CONSTRAINT stored_responses_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY user_emails
    ADD CONSTRAINT user_emails_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY user_external_ids
    ADD CONSTRAINT user_external_ids_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY user_identities
    ADD CONSTRAINT user_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY user_subjects
    ADD CONSTRAINT user_subjects_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY user_valves
    ADD CONSTRAINT user_valves_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE ONLY vector_batches
    ADD CONSTRAINT vector_batches_file_id_fkey FOREIGN KEY (file_id) REFERENCES files(id) ON DELETE CASCADE;
ALTER TABLE ONLY vector_batches
    ADD CONSTRAINT vector_batches_space_id_fkey FOREIGN KEY (space_id) REFERENCES embedding_spaces(id) ON DELETE CASCADE;
