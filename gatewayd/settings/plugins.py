"""Settings of plugins, tool servers, events and stored chats."""

from pathlib import Path

from pydantic import ByteSize, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import CHATS, EVENTS, PLUGINS, TOOL_SERVERS, reload, restart, setting


class PluginFields(BaseSettings):
    """The settings of plugins, tool servers, events and stored chats."""

    enable_plugins: types.Switch = setting(
        restart(PLUGINS), True, "Whether to load plugins: tools, pipes, filters and actions."
    )
    safe_mode: types.Switch = setting(
        restart(PLUGINS), False, "Whether to load no plugin, while all can be listed and changed."
    )
    plugins_dir: types.Directory = setting(
        restart(PLUGINS), Path("/etc/gatewayd/plugins.d"), "Directory of plugins that are files."
    )
    plugin_load_timeout: types.Seconds = setting(
        restart(PLUGINS), 60.0, "Maximum time to load a plugin.", gt=0, le=3600
    )
    plugin_isolation: types.Isolation = setting(
        restart(PLUGINS),
        "thread",
        "Where plugins run: in threads of the daemon, or in processes of their own.",
    )
    plugin_isolation_exceptions: types.Texts = setting(
        restart(PLUGINS), (), "Ids of the plugins that run in the other of the two places."
    )
    plugin_processes: types.Whole = setting(
        restart(PLUGINS), 64, "Maximum number of plugin processes.", ge=1, le=10_000
    )
    plugin_process_memory: types.Size = setting(
        restart(PLUGINS),
        ByteSize(1 << 30),
        "Maximum writable memory of one plugin process.",
        ge=256 << 20,
        le=1 << 40,
    )
    plugin_process_timeout: types.Seconds = setting(
        restart(PLUGINS),
        30.0,
        "Time without a sign of life after which a plugin process is killed.",
        ge=1,
        le=3600,
    )
    enable_pip_install_frontmatter_requirements: types.Switch = setting(
        restart(PLUGINS), False, "Whether to install the packages that plugins require, into data_dir."
    )
    pip_options: types.Line = setting(
        restart(PLUGINS), "", "Further options of pip for the installation of packages, separated by blanks."
    )
    pip_package_index_options: types.Line = setting(
        restart(PLUGINS), "", "Options of pip that choose the package index, separated by blanks."
    )
    enable_valve_encryption: types.Switch = setting(
        restart(PLUGINS), False, "Whether the database stores the valves of plugins encrypted."
    )
    enable_api_outlet_filters: types.Switch = setting(
        reload(PLUGINS), False, "Whether outlet filters also run on the answers of direct API calls."
    )

    tool_server_connections: types.ToolServers = setting(
        restart(TOOL_SERVERS),
        SecretStr("[]"),
        "Tool servers as a JSON list; the database holds further ones.",
    )
    aiohttp_client_timeout_tool_server: types.OptionalSeconds = setting(
        restart(TOOL_SERVERS), None, "Maximum time for one call of a tool server; no limit when empty."
    )
    aiohttp_client_timeout_tool_server_data: types.Seconds = setting(
        restart(TOOL_SERVERS), 10.0, "Maximum time to fetch the description of a tool server.", gt=0
    )
    mcp_initialize_timeout: types.Seconds = setting(
        restart(TOOL_SERVERS), 10.0, "Maximum time to open a session with an MCP server.", gt=0
    )
    enable_forward_user_info_headers: types.Switch = setting(
        restart(TOOL_SERVERS),
        False,
        "Whether requests to tool servers and model providers name the user and the chat in the headers"
        " below,"
        " and external tools may send events.",
    )
    forward_user_info_header_user_name: types.HeaderName = setting(
        restart(TOOL_SERVERS), "X-OpenWebUI-User-Name", "Header with the user's name."
    )
    forward_user_info_header_user_id: types.HeaderName = setting(
        restart(TOOL_SERVERS), "X-OpenWebUI-User-Id", "Header with the user's id."
    )
    forward_user_info_header_user_email: types.HeaderName = setting(
        restart(TOOL_SERVERS), "X-OpenWebUI-User-Email", "Header with the user's e-mail address."
    )
    forward_user_info_header_user_role: types.HeaderName = setting(
        restart(TOOL_SERVERS), "X-OpenWebUI-User-Role", "Header with the user's role."
    )
    forward_session_info_header_chat_id: types.HeaderName = setting(
        restart(TOOL_SERVERS), "X-Service-Chat-Id", "Header with the id of the chat."
    )
    forward_session_info_header_message_id: types.HeaderName = setting(
        restart(TOOL_SERVERS), "X-Service-Message-Id", "Header with the id of the message."
    )

    websocket_event_caller_timeout: types.Seconds = setting(
        restart(EVENTS),
        300.0,
        "Maximum time that a plugin waits for an answer of the user; 0 for no limit.",
        ge=0,
    )
    event_replay_frames: types.Whole = setting(
        restart(EVENTS),
        1000,
        "Number of events kept per user for clients that reconnect.",
        ge=0,
        le=1_000_000,
    )
    event_queue_frames: types.Whole = setting(
        restart(EVENTS),
        1000,
        "Maximum number of events that wait for a slow client; one more disconnects it.",
        ge=10,
        le=1_000_000,
    )

    enable_realtime_chat_save: types.Switch = setting(
        reload(CHATS),
        False,
        "Whether answers are saved while they are generated, not only when they are finished.",
    )
    enable_admin_chat_access: types.Switch = setting(
        restart(CHATS), True, "Whether administrators may read the chats of all users."
    )
    chat_response_max_tool_call_iterations: types.Whole = setting(
        restart(CHATS),
        256,
        "Maximum number of rounds of tool calls in one answer.",
        "chat_response_max_tool_call_retries",
        ge=1,
        le=10_000,
    )
    task_model: types.Line = setting(
        reload(CHATS), "", "Model that generates titles, tags and follow-ups; that of the chat when empty."
    )
    enable_title_generation: types.Switch = setting(
        reload(CHATS), True, "Whether titles of chats can be generated."
    )
    enable_tags_generation: types.Switch = setting(
        reload(CHATS), True, "Whether tags of chats can be generated."
    )
    enable_follow_up_generation: types.Switch = setting(
        reload(CHATS), True, "Whether follow-up questions can be generated."
    )
