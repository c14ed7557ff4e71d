/**
 * The form of a preset, and of what is kept of a listed model.
 */
import { get, post } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { AccessFields } from "#app/admin/access";
import { FormEnd, useForm } from "#app/ui/forms";
import { Checkbox, ErrorNote, Select, TextArea, TextField } from "#app/ui/index";

const MAX_ID = 256;
const FIELDS = { id: "id", base_model_id: "base", name: "name" };

/** @param {{model: object | null, models: object[], close: Function, titleId: string}} props null makes a preset */
export function ModelForm({ model, models, close, titleId }) {
  const record = model?.record;
  const isPreset = !model || Boolean(record?.base_model_id);
  const { system, ...others } = record?.params ?? {};
  const start = {
    id: model?.id ?? "",
    name: record?.name ?? model?.name ?? "",
    base: record?.base_model_id ?? "",
    description: record?.meta?.description ?? "",
    system: typeof system === "string" ? system : "",
    params: Object.keys(others).length > 0 ? JSON.stringify(others, null, 2) : "",
    knowledge: record?.meta?.knowledge ?? [],
    tools: record?.meta?.toolIds ?? [],
    grants: record?.access_grants ?? [],
  };
  const form = useForm(start, checksOf(model, models, isPreset));
  const choices = useChoices();
  const onSubmit = async (event) => {
    event.preventDefault();
    if (await form.submit((values) => save(values, record, isPreset, model), FIELDS)) close(true);
  };
  const bases = models.filter((one) => !one.record?.base_model_id && one.id !== model?.id);
  return html`<form onSubmit=${onSubmit} novalidate>
    <h2 id=${titleId} dir="auto">${model ? t("admin.forms.editOf", { name: model.name }) : t("admin.models.add")}</h2>
    <div class="admin-columns">
      <${TextField} label=${t("admin.models.name")} autocomplete="off" ...${form.field("name")} />
      <${TextField} label=${t("admin.models.id")} help=${model ? "" : t("admin.models.idHelp")} readonly=${Boolean(model)}
        autocomplete="off" ...${form.field("id")} />
    </div>
    ${isPreset && html`<${Select} label=${t("admin.models.base")} help=${t("admin.models.baseHelp")} value=${form.values.base}
      error=${form.field("base").error} onChange=${form.field("base").onInput} onBlur=${form.field("base").onBlur}
      options=${[{ value: "", label: t("admin.models.chooseBase") }, ...bases.map((one) => ({ value: one.id, label: one.name }))]} />`}
    <${TextArea} label=${t("admin.forms.description")} rows=${2} help=${t("admin.models.descriptionHelp")} ...${form.field("description")} />
    <${TextArea} label=${t("admin.models.system")} rows=${5} help=${t("admin.models.systemHelp")} ...${form.field("system")} />
    <${ErrorNote} error=${choices.error} />
    <div class="admin-columns">
      <${CheckList} label=${t("admin.models.knowledge")} none=${t("admin.models.noKnowledge")} options=${choices.collections}
        chosen=${form.values.knowledge.map((one) => one.id)} onChange=${(ids) => form.set("knowledge", referencesOf(ids, choices.collections, form.values.knowledge))} />
      <${CheckList} label=${t("admin.models.tools")} none=${t("admin.models.noTools")} options=${choices.tools}
        chosen=${form.values.tools} onChange=${(ids) => form.set("tools", ids)} />
    </div>
    <details class="admin-more"><summary>${t("admin.forms.more")}</summary>
      <${TextArea} label=${t("admin.models.params")} help=${t("admin.models.paramsHelp")} dir="ltr" spellcheck=${false}
        class="admin-code-input" ...${form.field("params")} />
    </details>
    <${AccessFields} value=${form.values.grants} onChange=${(grants) => form.set("grants", grants)} help=${t("admin.models.accessHelp")} />
    <${FormEnd} form=${form} verb=${t("admin.forms.save")} cancel=${() => close()} />
  </form>`;
}

function checksOf(model, models, isPreset) {
  const taken = new Set(models.map((one) => one.id));
  return {
    name: (name) => (name.trim() ? "" : t("admin.models.nameFault")),
    id: (id) => {
      if (model) return "";
      if (!id.trim() || id.length > MAX_ID) return t("admin.models.idFault");
      return taken.has(id.trim()) ? t("admin.models.idTaken") : "";
    },
    base: (base) => (isPreset && !base ? t("admin.models.baseFault") : ""),
    params: (text) => (paramsOf(text) === null ? t("admin.models.paramsFault") : ""),
  };
}

function paramsOf(text) {
  if (!text.trim()) return {};
  try {
    const found = JSON.parse(text);
    return typeof found === "object" && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

function save(values, record, isPreset, model) {
  const params = { ...paramsOf(values.params), ...(values.system.trim() ? { system: values.system } : {}) };
  const meta = { ...record?.meta, description: values.description, knowledge: values.knowledge, toolIds: values.tools };
  return post(`/api/v1/models/${model ? "model/update" : "create"}`, {
    id: values.id.trim(),
    name: values.name.trim(),
    base_model_id: isPreset ? values.base : null,
    params,
    meta,
    access_grants: values.grants,
    is_active: record?.is_active ?? true,
  });
}

/** Returns references to collections; those of other kinds stay. */
function referencesOf(ids, collections, held) {
  const names = new Map(collections.map((one) => [one.id, one.name]));
  const kept = held.filter((one) => ids.includes(one.id));
  const known = new Set(kept.map((one) => one.id));
  return [...kept, ...ids.filter((id) => !known.has(id)).map((id) => ({ id, name: names.get(id), type: "collection" }))];
}

function useChoices() {
  const [state, setState] = useState({ collections: [], tools: [], error: null });
  useEffect(() => {
    Promise.all([get("/api/v1/knowledge/list"), get("/api/v1/tools/")]).then(
      ([collections, tools]) => setState({ collections, tools, error: null }),
      (error) => setState((now) => ({ ...now, error })),
    );
  }, []);
  return state;
}

function CheckList({ label, none, options, chosen, onChange }) {
  const missing = chosen.filter((id) => options.every((one) => one.id !== id)).map((id) => ({ id, name: id }));
  const all = [...options, ...missing];
  const change = (id, isOn) => onChange(isOn ? [...chosen, id] : chosen.filter((one) => one !== id));
  return html`<fieldset class="admin-checks"><legend>${label}</legend>
    ${all.length === 0 && html`<p class="help">${none}</p>`}
    ${all.map((one) => html`<${Checkbox} key=${one.id} label=${html`<span dir="auto">${one.name}</span>`}
      checked=${chosen.includes(one.id)} onChange=${(isOn) => change(one.id, isOn)} />`)}
  </fieldset>`;
}
