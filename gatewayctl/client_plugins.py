"""The part of the client for plugins and tool servers, and for the models that are made of them."""

from gatewayctl.asking import Asking, segment
from gatewayctl.wire import models, plugins, tool_servers


class PluginClient(Asking):
    """One method for each control route of plugins, tool servers and custom models.

    `family` is function or tool.
    """

    def list_plugins(self, family: str, kind: str | None = None) -> plugins.PluginList:
        """Return the plugins of a family, or those of one kind."""
        return self._read(f"/v1/plugins/{segment(family)}", plugins.PluginList, kind=kind)

    def get_plugin(self, family: str, plugin_id: str, *, source: bool = False) -> plugins.Plugin:
        """Return one plugin, with its source when that is asked for."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}"
        return self._read(path, plugins.Plugin, source="true" if source else None)

    def install_plugin(
        self, family: str, plugin_id: str, request: plugins.NewPlugin, *, dry_run: bool = False
    ) -> plugins.PluginWritten:
        """Bring a plugin into the given state, however long it takes to load."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}"
        query = {"dry_run": "true" if dry_run else None}
        return self._transport.patient.call("PUT", path, plugins.PluginWritten, query, request)

    def change_plugin(
        self, family: str, plugin_id: str, request: plugins.PluginChange, *, dry_run: bool = False
    ) -> plugins.PluginWritten:
        """Switch a plugin, and wait until it has loaded."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}"
        query = {"dry_run": "true" if dry_run else None}
        return self._transport.patient.call("PATCH", path, plugins.PluginWritten, query, request)

    def remove_plugin(self, family: str, plugin_id: str, *, dry_run: bool = False) -> plugins.PluginWritten:
        """Delete a plugin with its valves."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}"
        return self._write("DELETE", path, plugins.PluginWritten, None, dry_run)

    def grant_plugin(
        self, family: str, plugin_id: str, request: models.Holders, *, dry_run: bool = False
    ) -> plugins.PluginWritten:
        """Give users, groups or everyone a right on a tool."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}/grant"
        return self._write("POST", path, plugins.PluginWritten, request, dry_run)

    def revoke_plugin(
        self, family: str, plugin_id: str, request: models.Holders, *, dry_run: bool = False
    ) -> plugins.PluginWritten:
        """Take a right on a tool away."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}/revoke"
        return self._write("POST", path, plugins.PluginWritten, request, dry_run)

    def get_valves(self, family: str, plugin_id: str, *, reveal: bool = False) -> plugins.ValveList:
        """Return the valves of a plugin; secrets are masked unless they are to be revealed."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}/valves"
        return self._read(path, plugins.ValveList, reveal="true" if reveal else None)

    def set_valves(
        self, family: str, plugin_id: str, request: plugins.ValveChange, *, dry_run: bool = False
    ) -> plugins.ValvesWritten:
        """Set and unset valves, all or none."""
        path = f"/v1/plugins/{segment(family)}/{segment(plugin_id)}/valves"
        return self._write("PATCH", path, plugins.ValvesWritten, request, dry_run)

    def check_plugin(self, family: str, request: plugins.PluginSource) -> plugins.PluginReport:
        """Return what is known of a source, however long it takes to load."""
        path = f"/v1/plugins/{segment(family)}/check"
        return self._transport.patient.call("POST", path, plugins.PluginReport, {}, request)

    def reload_plugins(self) -> plugins.Reloaded:
        """Read the database and the directory of plugins again, and load what has changed or failed."""
        return self._transport.patient.call("POST", "/v1/plugins/reload", plugins.Reloaded, {})

    def create_model(self, request: models.NewModel, *, dry_run: bool = False) -> models.ModelWritten:
        """Make a model on top of another."""
        return self._write("POST", "/v1/models", models.ModelWritten, request, dry_run)

    def remove_model(self, model_id: str, *, dry_run: bool = False) -> models.ModelWritten:
        """Delete what is kept about a model; its id travels in the query, as it may hold slashes."""
        query = {"id": model_id, "dry_run": "true" if dry_run else None}
        return self._transport.call("DELETE", "/v1/models/one", models.ModelWritten, query)

    def list_tool_servers(self) -> tool_servers.ToolServerList:
        """Return all tool servers."""
        return self._read("/v1/tool-servers", tool_servers.ToolServerList)

    def get_tool_server(self, server_id: str) -> tool_servers.ToolServer:
        """Return one tool server."""
        return self._read(f"/v1/tool-servers/{segment(server_id)}", tool_servers.ToolServer)

    def add_tool_server(
        self, request: tool_servers.NewToolServer, *, dry_run: bool = False
    ) -> tool_servers.ToolServerWritten:
        """Keep a tool server."""
        return self._write("POST", "/v1/tool-servers", tool_servers.ToolServerWritten, request, dry_run)

    def remove_tool_server(self, server_id: str, *, dry_run: bool = False) -> tool_servers.ToolServerWritten:
        """Forget a tool server."""
        path = f"/v1/tool-servers/{segment(server_id)}"
        return self._write("DELETE", path, tool_servers.ToolServerWritten, None, dry_run)

    def check_tool_server(self, server_id: str) -> tool_servers.Offer:
        """Return what a tool server offers, however long it takes to answer."""
        path = f"/v1/tool-servers/{segment(server_id)}/check"
        return self._transport.patient.call("POST", path, tool_servers.Offer, {})

    def grant_tool_server(
        self, server_id: str, request: models.Holders, *, dry_run: bool = False
    ) -> tool_servers.ToolServerWritten:
        """Give users, groups or everyone a right on a tool server."""
        path = f"/v1/tool-servers/{segment(server_id)}/grant"
        return self._write("POST", path, tool_servers.ToolServerWritten, request, dry_run)

    def revoke_tool_server(
        self, server_id: str, request: models.Holders, *, dry_run: bool = False
    ) -> tool_servers.ToolServerWritten:
        """Take a right on a tool server away."""
        path = f"/v1/tool-servers/{segment(server_id)}/revoke"
        return self._write("POST", path, tool_servers.ToolServerWritten, request, dry_run)
