/**
 * Settings > Account > API Keys.
 */
import { Section } from "#app/account/frames";
import { Form, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { del, post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatRelative, formatTime, plural, t } from "#app/core/messages";
import { Button, CopyButton, ErrorNote, IconButton, Select, Skeleton, Table, TextField } from "#app/ui/index";

const PATH = "/api/v1/auths/api_keys";
const DAY_SECONDS = 86400;
const DAYS = [7, 30, 90, 365];

/** The keys of the account, and the form for a new one. */
export function Keys() {
  const { value, error, reload } = useResource(PATH);
  const [created, setCreated] = useState(null);
  const add = (key) => {
    setCreated(key);
    reload();
  };
  return html`<${Section} title=${t("account.keys.title")} text=${t("account.keys.text")}>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!value && !error && html`<${Skeleton} />`}
    ${created && html`<${NewKey} value=${created} close=${() => setCreated(null)} />`}
    ${value && html`<${KeyTable} keys=${value.keys} reload=${reload} />`}
    ${value && (value.missing.length > 0 ? html`<${Missing} reasons=${value.missing} />` : html`<${KeyForm} onCreated=${add} />`)}
  <//>`;
}

function Missing({ reasons }) {
  return html`<div class="note"><p>${t("account.keys.missing")}</p>
    <ul>${reasons.map((reason) => html`<li key=${reason} dir="auto">${reason}</li>`)}</ul></div>`;
}

function KeyForm({ onCreated }) {
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [date, setDate] = useState("");
  const { run, busy, error } = useAction(async () => {
    onCreated(await post(PATH, { name: name.trim() || null, expires_at: expiry(days, date) }));
    setName("");
  });
  const options = [
    ...DAYS.map((count) => ({ value: String(count), label: plural("account.keys.days", count) })),
    { value: "date", label: t("account.keys.onDate") },
    { value: "", label: t("account.keys.never") },
  ];
  return html`<${Form} onSubmit=${run} class="key-form" aria-label=${t("account.keys.create")}>
    <${TextField} label=${t("account.keys.name")} maxlength="128" value=${name} onInput=${setName}
      placeholder=${t("account.keys.namePlaceholder")} error=${fieldProblem(error, "name")} />
    <${Select} label=${t("account.keys.expires")} value=${days} options=${options} onChange=${setDays}
      error=${days === "date" ? undefined : fieldProblem(error, "expires_at")} />
    ${days === "date" && html`<${TextField} label=${t("account.keys.date")} type="date" value=${date} onInput=${setDate}
      error=${fieldProblem(error, "expires_at")} />`}
    <${Button} type="submit" kind="primary" icon="plus" busy=${busy} disabled=${days === "date" && !date}>${t("account.keys.create")}<//>
    <${ErrorNote} error=${otherProblem(error, "name", "expires_at")} />
  <//>`;
}

/** Returns the expiry in seconds since the epoch: the end of a day in this time zone, or null. */
function expiry(days, date) {
  if (days === "date") return Math.floor(new Date(`${date}T23:59:59`).getTime() / 1000);
  return days ? Math.floor(Date.now() / 1000) + Number(days) * DAY_SECONDS : null;
}

/** The value of a new key, which is never shown again. */
function NewKey({ value, close }) {
  const lines = [
    `export GATEWAY_KEY='${value.api_key}'`,
    `curl -H "Authorization: Bearer $GATEWAY_KEY" ${window.location.origin}/api/models`,
  ].join("\n");
  return html`<div class="new-key" role="status">
    <p><strong dir="auto">${t("account.keys.created", { name: value.name })}</strong> ${t("account.keys.once")}</p>
    <div class="shell-line"><code dir="ltr" data-testid="new-key">${value.api_key}</code>
      <${CopyButton} text=${value.api_key} label=${t("account.keys.copy")} /></div>
    <p>${t("account.keys.try")}</p>
    <div class="shell-line"><pre dir="ltr" tabindex="0">${lines}</pre>
      <${CopyButton} text=${lines} label=${t("account.keys.copyLines")} /></div>
    <div class="row"><${Button} onClick=${close}>${t("account.keys.kept")}<//></div>
  </div>`;
}

/** Keys as a table. @param {{keys: object[], reload: () => Promise<void>, path?: string}} props `path` is that of the list */
export function KeyTable({ keys, reload, path = PATH }) {
  const { run, error } = useAction(async (key) => {
    const question = { title: t("account.keys.revokeTitle", { name: key.name }), text: t("account.keys.revokeText"), danger: true };
    if (!(await confirmDialog({ ...question, verb: t("account.keys.revoke") }))) return;
    await del(`${path}/${encodeURIComponent(key.id)}`);
    await reload();
  });
  const columns = [
    { key: "name", label: t("account.keys.name"), sort: (key) => key.name, cell: (key) => html`<span dir="auto">${key.name}</span>` },
    { key: "prefix", label: t("account.keys.begins"), cell: (key) => html`<code dir="ltr">${key.prefix}…</code>` },
    { key: "expires", label: t("account.keys.expires"), sort: (key) => key.expires_at ?? Infinity, cell: expiryCell },
    { key: "used", label: t("account.keys.used"), sort: (key) => key.last_used_at ?? 0, cell: (key) => moment(key.last_used_at) },
    { key: "verbs", label: t("account.actions"), hideLabel: true, cell: (key) => html`<${IconButton} icon="trash-2"
      label=${t("account.keys.revokeNamed", { name: key.name })} onClick=${() => run(key)} />` },
  ];
  return html`<${ErrorNote} error=${error} />
    <${Table} label=${t("account.keys.title")} rows=${keys} columns=${columns} rowName=${(key) => key.name}
      empty=${html`<p class="help">${t("account.keys.none")}</p>`} />`;
}

function expiryCell(key) {
  if (key.expires_at === null) return t("account.keys.never");
  const isOver = key.expires_at * 1000 < Date.now();
  return html`<span title=${formatTime(key.expires_at)} class=${isOver ? "field-error" : ""}>${formatRelative(key.expires_at)}</span>`;
}

/** A time by its distance, with the exact one on hover; "never" for none. @param {number | null} seconds */
export function moment(seconds) {
  if (!seconds) return t("account.neverTime");
  return html`<time title=${formatTime(seconds)}>${formatRelative(seconds)}</time>`;
}
