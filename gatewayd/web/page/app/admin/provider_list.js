/**
 * The list of providers or runtimes, with what it takes to add, change, test and remove them.
 */
import { html, useState } from "#app/core/html";
import { formatNumber, t } from "#app/core/messages";
import { confirmDialog, openDialog } from "#app/core/dialogs";
import { Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { readProviders, writeProviders } from "#app/admin/provider_data";
import { ProviderForm, ProviderTest } from "#app/admin/provider_form";
import { Button, Chip, EmptyState, ErrorNote, Icon, Menu, Switch, Table } from "#app/ui/index";

/** @param {{family: "openai" | "ollama"}} props */
export function ProviderList({ family }) {
  const list = useResource(() => readProviders(family), [family]);
  const [failure, setFailure] = useState(null);
  if (list.value === undefined) return html`<${Waiting} of=${list} />`;
  const write = async (change) => list.setValue(await writeProviders(family, { ...list.value, ...change }));
  const attempt = async (change) => {
    setFailure(null);
    list.setValue({ ...list.value, ...change });
    try {
      await write(change);
    } catch (error) {
      setFailure(error);
      list.reload();
    }
  };
  const actions = makeActions(family, list.value.entries, write, attempt);
  return html`<div class="stack">
    <div class="row admin-list-head">
      <${Switch} label=${t(`admin.connections.use.${family}`)} help=${t(`admin.connections.useHelp.${family}`)}
        checked=${list.value.isEnabled} onChange=${(isEnabled) => attempt({ isEnabled })} />
      <${Button} kind="primary" icon="plus" onClick=${() => actions.edit({})}>${t(`admin.connections.add.${family}`)}<//>
    </div>
    <${ErrorNote} error=${failure} />
    <${Table} label=${t(`admin.connections.tabs.${family}`)} rows=${list.value.entries} rowName=${(row) => row.name}
      columns=${columnsOf(actions, list.value.isEnabled)}
      empty=${html`<${EmptyState} icon="plug" title=${t(`admin.connections.none.${family}`)}
        text=${t(`admin.connections.noneHelp.${family}`)} />`} />
  </div>`;
}

function makeActions(family, entries, write, attempt) {
  const others = (row) => entries.filter((one) => one.id !== row.id);
  const save = (row) => (entry) =>
    write({ entries: row.id ? entries.map((one) => (one.id === row.id ? entry : one)) : [...entries, entry] });
  return {
    edit: (row) => openDialog(ProviderForm, { family, entry: row, save: save(row) }),
    test: (row) => openDialog(TestDialog, { family, entry: row }),
    toggle: (row) => attempt({ entries: entries.map((one) => (one.id === row.id ? { ...one, enable: !one.enable } : one)) }),
    remove: async (row) => {
      const title = t("admin.connections.removeTitle", { name: row.name });
      const text = t("admin.connections.removeText");
      if (await confirmDialog({ title, text, verb: t("admin.connections.removeVerb"), danger: true })) {
        await attempt({ entries: others(row) });
      }
    },
  };
}

function columnsOf(actions, isEnabled) {
  return [
    { key: "name", label: t("admin.connections.name"), sort: (row) => row.name, cell: nameCell },
    {
      key: "models",
      label: t("admin.connections.modelCount"),
      numeric: true,
      sort: (row) => row.models,
      cell: (row) => formatNumber(row.models),
    },
    { key: "state", label: t("admin.connections.state"), cell: (row) => stateCell(row, isEnabled) },
    { key: "act", label: t("admin.forms.actions"), hideLabel: true, cell: (row) => html`<${RowMenu} row=${row} actions=${actions} />` },
  ];
}

function nameCell(row) {
  return html`<div class="admin-name">
    <strong dir="auto">${row.name}</strong>
    <span class="help" dir="ltr">${row.url}</span>
    ${row.locked_by && html`<span class="help origin"><${Icon} name="lock" size=${14} />
      ${t("admin.forms.lockedBy", { origin: row.locked_by })}</span>`}
  </div>`;
}

function stateCell(row, isEnabled) {
  if (!isEnabled || !row.enable) return html`<${Chip}>${t("admin.connections.states.off")}<//>`;
  if (!row.problem) return html`<${Chip} kind="success" icon="check">${t("admin.connections.states.used")}<//>`;
  return html`<div class="admin-problem"><${Chip} kind="danger" icon="triangle-alert">${t("admin.connections.states.fails")}<//>
    <span class="help" dir="auto">${row.problem}</span></div>`;
}

function RowMenu({ row, actions }) {
  const items = [{ label: t("admin.connections.test"), icon: "plug-zap", run: () => actions.test(row) }];
  if (!row.locked_by) {
    items.unshift({ label: t("admin.forms.edit"), icon: "pencil", run: () => actions.edit(row) });
    items.push({ label: t(`admin.forms.${row.enable ? "switchOff" : "switchOn"}`), icon: "power", run: () => actions.toggle(row) });
    items.push(null, { label: t("admin.connections.removeVerb"), icon: "trash-2", danger: true, run: () => actions.remove(row) });
  }
  return html`<${Menu} label=${t("admin.forms.actionsOf", { name: row.name })} items=${items} />`;
}

function TestDialog({ family, entry, titleId, close }) {
  return html`<h2 id=${titleId} dir="auto">${entry.name}</h2>
    <p class="dialog-text" dir="ltr">${entry.url}</p>
    <${ProviderTest} family=${family} entry=${() => entry} />
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//></div>`;
}
