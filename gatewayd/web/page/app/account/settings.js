/**
 * The views `/settings/account` and `/settings/interface`.
 */
import { AccountSettings } from "#app/account/account_settings";
import { SettingsFrame } from "#app/account/frames";
import { InterfaceSettings } from "#app/account/interface_settings";
import { html } from "#app/core/html";
import { t } from "#app/core/messages";

/** The view. @param {{params: {section?: string}}} props */
export default function SettingsView({ params }) {
  const isInterface = params.section === "interface";
  return html`<${SettingsFrame} title=${t(isInterface ? "account.interface.title" : "account.section")}>
    ${isInterface ? html`<${InterfaceSettings} />` : html`<${AccountSettings} />`}
  <//>`;
}
