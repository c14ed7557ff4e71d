/**
 * Dialogs about one account: a new one, its fields and groups, its password, its sessions and keys.
 */
import { confirmed } from "#app/account/confirmation";
import { Form, PasswordField, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { KeyTable } from "#app/account/keys";
import { SessionList } from "#app/account/sessions";
import { del, post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { me } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { Button, Checkbox, Chip, ErrorNote, Select, Skeleton, TextField } from "#app/ui/index";

const ROLES = ["user", "admin", "pending"];
const FIELDS = ["name", "email", "role", "password"];

/** Returns the roles as options of a choice. */
export function roleOptions() {
  return ROLES.map((value) => ({ value, label: t(`account.roles.${value}`) }));
}

/** The buttons of a dialog with a form. */
export function DialogButtons({ close, verb, busy, disabled }) {
  return html`<div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.cancel")}<//>
    <${Button} type="submit" kind="primary" busy=${busy} disabled=${disabled}>${verb}<//></div>`;
}

/** Boxes to check for groups. @param {{groups: object[], chosen: Set<string>, onChange: (chosen: Set<string>) => void}} props */
export function GroupChoice({ groups, chosen, onChange }) {
  if (groups.length === 0) return null;
  const turn = (id, isOn) => {
    const ids = new Set(chosen);
    if (isOn) ids.add(id);
    else ids.delete(id);
    onChange(ids);
  };
  return html`<fieldset class="choice-list"><legend>${t("account.users.groups")}</legend>
    ${groups.map((group) => html`<${Checkbox} key=${group.id} label=${html`<bdi>${group.name}</bdi>`} checked=${chosen.has(group.id)}
      onChange=${(isOn) => turn(group.id, isOn)} />`)}</fieldset>`;
}

/** A new account. */
export function NewUser({ titleId, close }) {
  const [form, setForm] = useState({ name: "", email: "", password: "", role: "user" });
  const set = (name) => (value) => setForm((before) => ({ ...before, [name]: value }));
  const { run, busy, error } = useAction(async () => {
    await post("/api/v1/auths/add", form);
    close(true);
  });
  return html`<h2 id=${titleId}>${t("account.users.create")}</h2>
    <${Form} onSubmit=${run}>
      <${TextField} label=${t("account.users.name")} value=${form.name} onInput=${set("name")} autofocus autocomplete="off"
        error=${fieldProblem(error, "name")} />
      <${TextField} label=${t("account.users.email")} type="email" dir="ltr" autocomplete="off" value=${form.email}
        onInput=${set("email")} error=${fieldProblem(error, "email")} />
      <${Select} label=${t("account.users.role")} value=${form.role} options=${roleOptions()} onChange=${set("role")}
        help=${t("account.users.roleHelp")} />
      <${PasswordField} label=${t("account.users.password")} autocomplete="new-password" value=${form.password}
        onInput=${set("password")} help=${t("signin.passwordHelp")} error=${fieldProblem(error, "password")} />
      <${ErrorNote} error=${otherProblem(error, ...FIELDS)} />
      <${DialogButtons} close=${close} verb=${t("account.users.create")} busy=${busy} />
    <//>`;
}

/** Name, address, role and groups of an account, and where it comes from. */
export function UserDialog({ user, groups, titleId, close }) {
  const [form, setForm] = useState({ name: user.name, email: user.email, role: user.role });
  const [chosen, setChosen] = useState(new Set(user.group_ids));
  const set = (name) => (value) => setForm((before) => ({ ...before, [name]: value }));
  const { run, busy, error } = useAction(async () => {
    const role = form.role === user.role ? null : form.role;
    await confirmed(() => post(`/api/v1/users/${encodeURIComponent(user.id)}/update`, { ...form, role }));
    for (const { id } of groups) {
      if (chosen.has(id) === user.group_ids.includes(id)) continue;
      const verb = chosen.has(id) ? "add" : "remove";
      await post(`/api/v1/groups/id/${encodeURIComponent(id)}/users/${verb}`, { user_ids: [user.id] });
    }
    close(true);
  });
  return html`<h2 id=${titleId}><bdi>${user.name}</bdi></h2>
    <${Form} onSubmit=${run}>
      <${Links} user=${user} />
      <${TextField} label=${t("account.users.name")} value=${form.name} onInput=${set("name")} error=${fieldProblem(error, "name")} />
      <${TextField} label=${t("account.users.email")} type="email" dir="ltr" value=${form.email} onInput=${set("email")}
        error=${fieldProblem(error, "email")} />
      <${Select} label=${t("account.users.role")} value=${form.role} options=${roleOptions()} onChange=${set("role")}
        disabled=${user.id === me.value.id || !user.active} help=${t("account.users.roleHelp")} error=${fieldProblem(error, "role")} />
      <${GroupChoice} groups=${groups} chosen=${chosen} onChange=${setChosen} />
      <${ErrorNote} error=${otherProblem(error, ...FIELDS)} />
      <${DialogButtons} close=${close} verb=${t("account.save")} busy=${busy} />
    <//>`;
}

/** The ids of the account at providers. */
function Links({ user }) {
  const scim = Object.entries(user.scim ?? {}).map(([provider, link]) => [provider, link?.external_id]);
  const oauth = Object.entries(user.oauth ?? {}).map(([provider, link]) => [provider, link?.sub]);
  const known = [...scim, ...oauth].filter(([, id]) => typeof id === "string");
  if (known.length === 0) return null;
  return html`<div class="row">${known.map(([provider, id]) => html`<${Chip} key="${provider}${id}" icon="link" kind="accent">
    ${t("account.externalId", { provider, id })}<//>`)}</div>`;
}

/** A new password of another account. */
export function PasswordDialog({ user, titleId, close }) {
  const [password, setPassword] = useState("");
  const { run, busy, error } = useAction(async () => {
    await post(`/api/v1/users/${encodeURIComponent(user.id)}/update`, { password });
    toast("success", t("account.users.passwordSet", { name: user.name }));
    close(true);
  });
  return html`<h2 id=${titleId}>${t("account.users.passwordTitle", { name: user.name })}</h2>
    <${Form} onSubmit=${run}>
      <p>${t("account.users.passwordText")}</p>
      <${PasswordField} label=${t("account.password.new")} autocomplete="new-password" value=${password} onInput=${setPassword}
        autofocus help=${t("signin.passwordHelp")} error=${fieldProblem(error, "password")} />
      <${ErrorNote} error=${otherProblem(error, "password")} />
      <${DialogButtons} close=${close} verb=${t("account.users.setPassword")} busy=${busy} disabled=${!password} />
    <//>`;
}

/** Where an account is signed in. */
export function SessionsDialog({ user, titleId, close }) {
  const path = `/api/v1/users/${encodeURIComponent(user.id)}/sessions`;
  const { value, error, reload } = useResource(path);
  const end = useAction(async () => {
    await del(path);
    await reload();
  });
  return html`<h2 id=${titleId}>${t("account.users.sessionsOf", { name: user.name })}</h2>
    <${ErrorNote} error=${error ?? end.error} />
    ${value ? html`<${SessionList} sessions=${value} />` : !error && html`<${Skeleton} />`}
    <p class="help">${t("account.users.sessionsText")}</p>
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//>
      ${value?.length > 0 && html`<${Button} kind="danger" busy=${end.busy} onClick=${end.run}>${t("account.users.endSessions")}<//>`}</div>`;
}

/** The API keys of an account, without their values, which nobody can read. */
export function KeysDialog({ user, titleId, close }) {
  const path = `/api/v1/users/${encodeURIComponent(user.id)}/api_keys`;
  const { value, error, reload } = useResource(path);
  return html`<h2 id=${titleId}>${t("account.users.keysOf", { name: user.name })}</h2>
    <${ErrorNote} error=${error} />
    ${value ? html`<${KeyTable} keys=${value.keys} reload=${reload} path=${path} />` : !error && html`<${Skeleton} />`}
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//></div>`;
}
