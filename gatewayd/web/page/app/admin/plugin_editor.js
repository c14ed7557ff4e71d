/**
 * The editor of a function or tool: what was typed stays when the gateway refuses it.
 */
import { get, post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html, useEffect, useRef, useState } from "#app/core/html";
import { formatBytes, t } from "#app/core/messages";
import { AccessFields } from "#app/admin/access";
import { CodeField, showLine } from "#app/admin/code_field";
import { useForm } from "#app/ui/forms";
import { Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { Button, ErrorNote, TextArea, TextField } from "#app/ui/index";

const MAX_SOURCE_BYTES = 8 * 2 ** 20;
const FIELDS = { id: "id", name: "name" };
const ID = /^[a-z_][a-z0-9_]{0,63}$/;

/**
 * @param {{family: "functions" | "tools", id: string, start: string, close: (isSaved: boolean) => void}} props
 *   `id` is empty for a new plugin, which begins with the source `start`
 */
export function PluginEditor({ family, id, start, close }) {
  const plugin = useResource(() => (id ? get(`/api/v1/${family}/id/${encodeURIComponent(id)}`) : Promise.resolve(null)), [id]);
  if (plugin.value === undefined) return html`<${Waiting} of=${plugin} />`;
  return html`<${Editor} key=${id} ...${{ family, plugin: plugin.value, start, close }} />`;
}

function Editor({ family, plugin, start, close }) {
  const first = plugin ? valuesOf(plugin) : { id: "", name: "", description: "", content: start, grants: [] };
  const form = useForm(first, { id: (id) => (plugin || ID.test(id) ? "" : t("admin.plugins.idFault")) });
  const field = useRef(null);
  const [wrongLine, setWrongLine] = useState(0);
  // What somebody else has saved since, and to which revision the next save belongs.
  const [other, setOther] = useState(null);
  const revision = useRef(plugin?.revision);
  const size = new TextEncoder().encode(form.values.content).length;
  const isDirty = Object.keys(first).some((name) => form.values[name] !== first[name]);
  useWarning(isDirty);
  const onSubmit = async (event) => {
    event.preventDefault();
    setWrongLine(0);
    const saved = await form.submit((values) => save(family, plugin, { ...values, revision: revision.current }, setWrongLine).catch(compare), FIELDS);
    if (saved) close(true);
  };
  /** Shows what somebody else has saved; both texts stay until one is chosen. */
  const compare = async (error) => {
    if (error.code !== "revision_changed") throw error;
    const found = await get(`/api/v1/${family}/id/${encodeURIComponent(plugin.id)}`);
    revision.current = found.revision;
    setOther(found);
    return undefined;
  };
  const takeOther = () => {
    const { name, description, content, grants } = valuesOf(other);
    Object.entries({ name, description, content, grants }).forEach(([field, value]) => form.set(field, value));
    setOther(null);
  };
  const cancel = async () => {
    const asked = { title: t("admin.plugins.leaveTitle"), text: t("admin.plugins.leaveText"), verb: t("admin.plugins.leaveVerb"), danger: true };
    if (!isDirty || (await confirmDialog(asked))) close(false);
  };
  const isFixed = plugin && plugin.origin !== "database";
  return html`<form class="stack" onSubmit=${onSubmit} novalidate>
    ${isFixed && html`<p class="admin-note">${plugin.path ? t("admin.plugins.fixed", { path: plugin.path }) : t("admin.plugins.builtin")}</p>`}
    <div class="admin-columns">
      <${TextField} label=${t("admin.plugins.id")} help=${plugin ? "" : t("admin.plugins.idHelp")} readonly=${Boolean(plugin)}
        autocomplete="off" ...${form.field("id")} />
      <${TextField} label=${t("admin.plugins.name")} help=${t("admin.plugins.nameHelp")} autocomplete="off" ...${form.field("name")} />
    </div>
    <${TextField} label=${t("admin.forms.description")} autocomplete="off" ...${form.field("description")} />
    <${CodeField} label=${t("admin.plugins.source")} value=${form.values.content} fieldRef=${field} wrongLine=${wrongLine}
      onInput=${(content) => form.set("content", content)} />
    <p class=${size > MAX_SOURCE_BYTES ? "field-error" : "help"}>${t("admin.plugins.size", { size: formatBytes(size), limit: formatBytes(MAX_SOURCE_BYTES) })}</p>
    ${family === "tools" && html`<${AccessFields} value=${form.values.grants} onChange=${(grants) => form.set("grants", grants)} />`}
    <${ErrorNote} error=${form.failure} />
    ${other && html`<${OtherText} text=${other.content} take=${takeOther} />`}
    <div class="row">
      ${!isFixed && html`<${Button} kind="primary" type="submit" busy=${form.isBusy} disabled=${size > MAX_SOURCE_BYTES}>
        ${t(other ? "admin.plugins.saveOver" : "admin.plugins.save")}<//>`}
      <${Button} onClick=${cancel}>${t(isFixed ? "common.close" : "common.cancel")}<//>
      ${wrongLine > 0 && html`<${Button} onClick=${() => showLine(field.current, wrongLine)}>
        ${t("admin.plugins.showLine", { line: wrongLine })}<//>`}
    </div>
  </form>`;
}

/** The text that somebody else has saved. @param {{text: string, take: () => void}} props */
function OtherText({ text, take }) {
  return html`<section class="stack other-text" aria-label=${t("admin.plugins.otherTitle")}>
    <p class="admin-note" role="alert">${t("admin.plugins.otherHelp")}</p>
    <${TextArea} label=${t("admin.plugins.otherTitle")} value=${text} rows="12" dir="ltr" spellcheck=${false} readonly />
    <div class="row"><${Button} onClick=${take}>${t("admin.plugins.takeOther")}<//></div>
  </section>`;
}

function valuesOf({ id, name, meta, content, access_grants: grants }) {
  return { id, name, description: meta.description ?? "", content, grants: grants ?? [] };
}

async function save(family, plugin, values, setWrongLine) {
  const body = { name: values.name.trim(), content: values.content, meta: { ...plugin?.meta, description: values.description } };
  if (plugin) body.revision = values.revision;
  if (family === "tools") body.access_grants = values.grants;
  const path = plugin ? `id/${encodeURIComponent(plugin.id)}/update` : "create";
  try {
    return await post(`/api/v1/${family}/${path}`, plugin ? body : { ...body, id: values.id });
  } catch (error) {
    setWrongLine(lineOf(error.message));
    throw error;
  }
}

/** Returns the line that a refusal names, 0 for none. @param {string} message */
export function lineOf(message) {
  return Number(/\bline (\d{1,6})\b/.exec(message)?.[1] ?? 0);
}

/** Asks before the page is left with changes. */
function useWarning(isDirty) {
  useEffect(() => {
    if (!isDirty) return undefined;
    const warn = (event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isDirty]);
}
