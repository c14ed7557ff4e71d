/**
 * The view `/admin/general`: sign-up, sessions, API keys, the address of the page, and what pending accounts see.
 */
import { AdminFrame, Section } from "#app/account/frames";
import { useResource } from "#app/ui/resource";
import { SettingField } from "#app/account/setting_fields";
import { api, post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { loadSession } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { Button, ErrorNote, Skeleton } from "#app/ui/index";

const PATH = "/api/v1/auths/admin/config";
const ENDPOINTS = "API_KEYS_ALLOWED_ENDPOINTS";
/** Entries that programs need most often. */
const SUGGESTED = [
  "/api/models",
  "/api/chat/completions",
  "/api/chat/completed",
  "/api/message",
  "/api/v1/messages",
  "/api/embeddings",
  "/api/v1/files/*",
  "/api/v1/knowledge/*",
  "/ollama/*",
];

/** The view. */
export default function GeneralView() {
  const { value, error, reload } = useResource(`${PATH}/origins`);
  const groups = useResource("/api/v1/groups/");
  const [warning, setWarning] = useState("");
  const save = async (name, wanted) => {
    const reply = await api("POST", PATH, { [name]: wanted }, { raw: true });
    if (name === ENDPOINTS) setWarning(reply.headers.get("X-Gateway-Warning") ?? "");
    await Promise.all([reload(), loadSession()]);
    toast("success", t("account.settingSaved", { name: t(`account.settings.${name}.label`) }));
  };
  const reset = async (name) => {
    await post(`${PATH}/reset`, { names: [name] });
    await Promise.all([reload(), loadSession()]);
  };
  const settings = Object.fromEntries((value ?? []).map((setting) => [setting.name, setting]));
  const field = (name, kind, more = {}) => html`<${SettingField} key=${name} setting=${settings[name]} kind=${kind}
    save=${save} reset=${reset} ...${more} />`;
  return html`<${AdminFrame} title=${t("account.general.title")}>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!value && !error && html`<${Skeleton} lines=${8} />`}
    ${value && html`<${Authentication} field=${field} groups=${groups.value ?? []} />
      <${ApiKeys} field=${field} settings=${settings} warning=${warning} save=${save} />
      <${Page} field=${field} />`}
  <//>`;
}

function Authentication({ field, groups }) {
  const roles = ["pending", "user", "admin"].map((value) => ({ value, label: t(`account.roles.${value}`) }));
  const options = [{ value: "", label: t("account.noGroup") }, ...groups.map(({ id, name }) => ({ value: id, label: name }))];
  return html`<${Section} title=${t("account.general.authentication")} text=${t("account.general.authenticationText")}>
    ${field("ENABLE_SIGNUP", "switch")}
    ${field("DEFAULT_USER_ROLE", "choice", { options: roles })}
    ${field("DEFAULT_GROUP_ID", "choice", { options })}
    ${field("JWT_EXPIRES_IN", "text", { dir: "ltr" })}
  <//>`;
}

function ApiKeys({ field, settings, warning, save }) {
  const entries = settings[ENDPOINTS].value.split(",").map((entry) => entry.trim()).filter(Boolean);
  const absent = SUGGESTED.filter((entry) => !entries.includes(entry));
  const isRestricted = settings.ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS.value;
  return html`<${Section} title=${t("account.general.keys")} text=${t("account.general.keysText")}>
    ${field("ENABLE_API_KEYS", "switch")}
    ${field("ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS", "switch")}
    ${isRestricted && html`${field(ENDPOINTS, "lines", { dir: "ltr" })}
      ${warning && html`<p class="note" role="alert" dir="auto">${warning}</p>`}
      ${!settings[ENDPOINTS].fixed && absent.length > 0 && html`<div role="group" aria-label=${t("account.general.suggested")} class="row">
        <span class="help">${t("account.general.suggested")}</span>
        ${absent.map((entry) => html`<${Button} key=${entry} class="suggestion" icon="plus" onClick=${() => save(ENDPOINTS, [...entries, entry].join(", "))}><bdi>${entry}</bdi><//>`)}
      </div>`}`}
  <//>`;
}

function Page({ field }) {
  return html`<${Section} title=${t("account.general.page")}>
    ${field("WEBUI_URL", "text", { dir: "ltr", type: "url" })}
    ${field("SHOW_ADMIN_DETAILS", "switch")}
    ${field("ADMIN_EMAIL", "text", { dir: "ltr", type: "email" })}
    ${field("PENDING_USER_OVERLAY_TITLE", "text")}
    ${field("PENDING_USER_OVERLAY_CONTENT", "lines")}
    ${field("RESPONSE_WATERMARK", "text")}
  <//>`;
}
