/**
 * The view of the connections: providers, runtimes, tool servers.
 */
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { location, navigate } from "#app/core/router";
import { AdminFrame } from "#app/admin/frame";
import { ProviderList } from "#app/admin/provider_list";
import { ToolServers } from "#app/admin/tool_servers";
import { Tabs } from "#app/ui/index";

/** @returns {unknown} the view */
export default function Connections() {
  const tabs = [
    { id: "openai", label: t("admin.connections.tabs.openai"), content: () => html`<${ProviderList} key="openai" family="openai" />` },
    { id: "ollama", label: t("admin.connections.tabs.ollama"), content: () => html`<${ProviderList} key="ollama" family="ollama" />` },
    { id: "servers", label: t("admin.connections.tabs.servers"), content: () => html`<${ToolServers} />` },
  ];
  const show = (id) => navigate(`/admin/connections?tab=${id}`, { replace: true });
  return html`<${AdminFrame} title=${t("account.nav.connections")} help=${t("admin.connections.help")}>
    <${Tabs} label=${t("account.nav.connections")} tabs=${tabs} value=${location.value.query.tab ?? "openai"} onChange=${show} />
  <//>`;
}
