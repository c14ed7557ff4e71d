/**
 * The view of the models: which exist, who may use them, and presets over them.
 */
import { get, post } from "#app/core/api";
import { confirmDialog, openDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { formatNumber, plural, t } from "#app/core/messages";
import { AccessFields, describeAccess } from "#app/admin/access";
import { RowSwitch } from "#app/admin/forms";
import { FormEnd, useForm } from "#app/ui/forms";
import { AdminFrame, Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { ModelForm } from "#app/admin/model_form";
import { Button, EmptyState, ErrorNote, IconButton, Menu, SearchField, Select, Table } from "#app/ui/index";

const PATH = "/api/v1/models";
const PAGE = 100;

/** @returns {unknown} the view */
export default function Models() {
  const list = useResource(readModels);
  const [text, setText] = useState("");
  const [kind, setKind] = useState("all");
  const [limit, setLimit] = useState(PAGE);
  const [failure, setFailure] = useState(null);
  const attempt = async (act) => {
    setFailure(null);
    try {
      await act();
    } catch (error) {
      setFailure(error);
    }
    await list.reload();
  };
  const actions = makeActions(list, attempt);
  const add = html`<${Button} kind="primary" icon="plus" onClick=${() => actions.edit(null)}>${t("admin.models.add")}<//>`;
  const found = (list.value ?? []).filter((model) => matches(model, text, kind));
  return html`<${AdminFrame} title=${t("account.nav.models")} help=${t("admin.models.help")} actions=${list.value && add}>
    <div class="row admin-filters">
      <${SearchField} label=${t("admin.models.search")} value=${text} onInput=${setText} />
      <${Select} class="compact" label=${t("admin.models.show")} value=${kind} onChange=${setKind}
        options=${["all", "presets", "active", "inactive"].map((value) => ({ value, label: t(`admin.models.kinds.${value}`) }))} />
      <p class="help" role="status">${list.value && plural("admin.models.count", found.length)}</p>
    </div>
    <${ErrorNote} error=${failure} />
    ${list.value === undefined
      ? html`<${Waiting} of=${list} />`
      : html`<${Table} label=${t("account.nav.models")} rows=${found.slice(0, limit)} columns=${columnsOf(actions)}
          rowName=${(row) => row.name} empty=${html`<${EmptyState} icon="bot" title=${t("admin.models.none")}
            text=${t("admin.models.noneHelp")} />`} />`}
    ${found.length > limit && html`<${Button} onClick=${() => setLimit(limit + PAGE)}>
      ${t("admin.forms.showMore", { count: formatNumber(found.length - limit) })}<//>`}
  <//>`;
}

async function readModels() {
  const { data } = await get(`${PATH}/base`);
  return data.map((model) => ({ ...model, record: model.info ?? null }));
}

function matches(model, text, kind) {
  const wanted = text.trim().toLowerCase();
  const isFound = `${model.id} ${model.name}`.toLowerCase().includes(wanted);
  const isKind = { all: true, presets: Boolean(model.record?.base_model_id), active: isOn(model), inactive: !isOn(model) }[kind];
  return isFound && isKind;
}

/** A model without a record can be used by administrators alone, and is not switched off. */
const isOn = (model) => model.record?.is_active ?? true;

function makeActions(list, attempt) {
  return {
    edit: (model) => openDialog(ModelForm, { model, models: list.value, wide: true }).then((isSaved) => isSaved && list.reload()),
    share: (model) => openDialog(AccessForm, { model }).then((isSaved) => isSaved && list.reload()),
    toggle: (model) =>
      attempt(() => (model.record
        ? post(`${PATH}/model/toggle?id=${encodeURIComponent(model.id)}`)
        : post(`${PATH}/create`, { id: model.id, name: model.name, is_active: false }))),
    remove: async (model) => {
      const what = model.record.base_model_id ? "removePreset" : "removeRecord";
      const asked = { title: t(`admin.models.${what}.title`, { name: model.name }), text: t(`admin.models.${what}.text`) };
      if (await confirmDialog({ ...asked, verb: t(`admin.models.${what}.verb`), danger: true })) {
        await attempt(() => post(`${PATH}/model/delete`, { id: model.id }));
      }
    },
  };
}

function columnsOf(actions) {
  return [
    { key: "name", label: t("admin.models.name"), sort: (row) => row.name, cell: (row) => html`<div class="admin-name">
      <strong dir="auto">${row.name}</strong><span class="help" dir="ltr">${row.id}</span></div>` },
    { key: "source", label: t("admin.models.source"), sort: sourceOf, cell: sourceOf },
    { key: "access", label: t("admin.access.label"), sort: (row) => describeAccess(row.record?.access_grants),
      cell: (row) => html`<${Button} kind="plain" aria-label=${t("admin.models.accessButton", { name: row.name, access: describeAccess(row.record?.access_grants) })}
        onClick=${() => actions.share(row)}>${describeAccess(row.record?.access_grants)}<//>` },
    { key: "active", label: t("admin.models.active"), sort: (row) => Number(isOn(row)),
      cell: (row) => html`<${RowSwitch} label=${t("admin.models.activeOf", { name: row.name })} checked=${isOn(row)}
        change=${() => actions.toggle(row)} />` },
    { key: "act", label: t("admin.forms.actions"), hideLabel: true, cell: (row) => html`<div class="row admin-acts">
      <${IconButton} icon="pencil" label=${t("admin.forms.editOf", { name: row.name })} onClick=${() => actions.edit(row)} />
      ${row.record && html`<${Menu} label=${t("admin.forms.actionsOf", { name: row.name })} items=${menuOf(row, actions)} />`}
    </div>` },
  ];
}

function menuOf(row, actions) {
  const verb = t(`admin.models.${row.record.base_model_id ? "removePreset" : "removeRecord"}.verb`);
  return [
    { label: t("admin.models.changeAccess"), icon: "lock", run: () => actions.share(row) },
    null,
    { label: verb, icon: "trash-2", danger: true, run: () => actions.remove(row) },
  ];
}

function sourceOf(model) {
  return model.record?.base_model_id ? t("admin.models.presetOf", { base: model.record.base_model_id }) : model.owned_by;
}

function AccessForm({ model, titleId, close }) {
  const form = useForm({ grants: model.record?.access_grants ?? [] });
  const save = ({ grants }) => post(`${PATH}/model/access/update`, { id: model.id, name: model.name, access_grants: grants });
  const onSubmit = async (event) => {
    event.preventDefault();
    if (await form.submit(save)) close(true);
  };
  return html`<form onSubmit=${onSubmit}>
    <h2 id=${titleId} dir="auto">${t("admin.models.accessOf", { name: model.name })}</h2>
    <${AccessFields} value=${form.values.grants} onChange=${(grants) => form.set("grants", grants)}
      help=${t("admin.models.accessHelp")} />
    <${FormEnd} form=${form} verb=${t("admin.forms.save")} cancel=${() => close()} />
  </form>`;
}
