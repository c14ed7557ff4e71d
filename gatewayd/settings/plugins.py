"""The settings of plugins, tool servers, events and stored chats."""

from pathlib import Path

from pydantic import ByteSize, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import CHATS, EVENTS, PLUGINS, TOOL_SERVERS, reload, restart, setting


class PluginFields(BaseSettings):
    """What `Settings` has for plugins, tool servers, events and stored chats."""

    enable_plugins: types.Switch = setting(
        restart(PLUGINS), True, "Load plugins: tools, pipes, filters and actions."
    )
    safe_mode: types.Switch = setting(
        restart(PLUGINS), False, "Load no plugin, but let them be listed and changed."
    )
    plugins_dir: types.Directory = setting(
        restart(PLUGINS), Path("/etc/gatewayd/plugins.d"), "Directory of plugins that are kept as files."
    )
    plugin_load_timeout: types.Seconds = setting(
        restart(PLUGINS), 60.0, "Longest time for a plugin to load.", gt=0, le=3600
    )
    plugin_isolation: types.Isolation = setting(
        restart(PLUGINS),
        "thread",
        "Where plugins live: threads of the daemon, or processes of their own.",
    )
    plugin_isolation_exceptions: types.Texts = setting(
        restart(PLUGINS), (), "Ids of the plugins that live in the other place."
    )
    plugin_processes: types.Whole = setting(
        restart(PLUGINS), 64, "Processes of plugins, at most.", ge=1, le=10_000
    )
    plugin_process_memory: types.Size = setting(
        restart(PLUGINS),
        ByteSize(1 << 30),
        "Memory that one process of a plugin may write to.",
        ge=256 << 20,
        le=1 << 40,
    )
    plugin_process_timeout: types.Seconds = setting(
        restart(PLUGINS),
        30.0,
        "Longest time without a sign of life of a process of a plugin before it is ended.",
        ge=1,
        le=3600,
    )
    enable_pip_install_frontmatter_requirements: types.Switch = setting(
        restart(PLUGINS), False, "Install the packages that plugins require, into data_dir."
    )
    pip_options: types.Line = setting(
        restart(PLUGINS), "", "Further options for the installation of packages, divided by blanks."
    )
    pip_package_index_options: types.Line = setting(
        restart(PLUGINS), "", "Options that choose the package index, divided by blanks."
    )
    enable_valve_encryption: types.Switch = setting(
        restart(PLUGINS), False, "Keep the valves of plugins encrypted in the database."
    )
    enable_api_outlet_filters: types.Switch = setting(
        reload(PLUGINS), False, "Run outlet filters on the answers of direct API calls, too."
    )

    tool_server_connections: types.ToolServers = setting(
        restart(TOOL_SERVERS), SecretStr("[]"), "Tool servers as a JSON list; more are kept in the database."
    )
    aiohttp_client_timeout_tool_server: types.OptionalSeconds = setting(
        restart(TOOL_SERVERS), None, "Longest time for one call of a tool server; none when empty."
    )
    aiohttp_client_timeout_tool_server_data: types.Seconds = setting(
        restart(TOOL_SERVERS), 10.0, "Longest time for the description of a tool server.", gt=0
    )
    mcp_initialize_timeout: types.Seconds = setting(
        restart(TOOL_SERVERS), 10.0, "Longest time to begin a session with an MCP server.", gt=0
    )
    enable_forward_user_info_headers: types.Switch = setting(
        restart(TOOL_SERVERS),
        False,
        "Tell tool servers and model providers who asks and for which chat, by the headers below, and accept"
        " events of external tools.",
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
        restart(EVENTS), 300.0, "Longest time that a plugin waits for a user's answer; 0 for any.", ge=0
    )
    event_replay_frames: types.Whole = setting(
        restart(EVENTS), 1000, "Events kept per user for clients that connect again.", ge=0, le=1_000_000
    )
    event_queue_frames: types.Whole = setting(
        restart(EVENTS),
        1000,
        "Events that wait for a slow client before it is cut off.",
        ge=10,
        le=1_000_000,
    )

    enable_realtime_chat_save: types.Switch = setting(
        reload(CHATS), False, "Save answers while they are made, not only once they are finished."
    )
    enable_admin_chat_access: types.Switch = setting(
        restart(CHATS), True, "Administrators may read the chats of everybody."
    )
    chat_response_max_tool_call_iterations: types.Whole = setting(
        restart(CHATS),
        256,
        "Rounds of tool calls in one answer, at most.",
        "chat_response_max_tool_call_retries",
        ge=1,
        le=10_000,
    )
    task_model: types.Line = setting(
        reload(CHATS), "", "Model for titles, tags and follow-ups; that of the chat when empty."
    )
    enable_title_generation: types.Switch = setting(
        reload(CHATS), True, "Make titles for chats when asked to."
    )
    enable_tags_generation: types.Switch = setting(reload(CHATS), True, "Make tags for chats when asked to.")
    enable_follow_up_generation: types.Switch = setting(
        reload(CHATS), True, "Make questions that may follow when asked to."
    )
