/** What a question goes to beside its model: collections, tools and filters that can be switched. */
import { get } from "#app/core/api";
import { html, signal, useEffect } from "#app/core/html";
import { t } from "#app/core/messages";
import { can } from "#app/core/session";
import { Menu } from "#app/ui/index";

const tools = signal([]);
const collections = signal([]);
const optionsError = signal(null);

async function loadOptions() {
  try {
    const [toolList, collectionList] = await Promise.all([get("/api/v1/tools/"), get("/api/v1/knowledge/list")]);
    tools.value = toolList;
    collections.value = collectionList;
    optionsError.value = null;
  } catch (error) {
    optionsError.value = error;
  }
}

/**
 * The buttons for files, collections, tools and filters.
 * @param {{model: object, attachments: import("#app/chat/attachments").Attachments, chosen: object,
 *   onAttach: () => void}} props `chosen` has the signals `toolIds` and `filterIds`
 */
export function ComposerOptions({ model, attachments, chosen, onAttach }) {
  useEffect(() => void loadOptions(), []);
  const filters = model?.filters ?? [];
  const attached = new Set(attachments.items.value.filter((item) => item.type === "collection").map((item) => item.id));
  const add = [
    ...(can("chat.file_upload") ? [{ label: t("chat.attachFiles"), icon: "paperclip", run: onAttach }] : []),
    ...(collections.value.length > 0 ? [null] : []),
    ...collections.value.map((each) => ({
      label: each.name,
      icon: "library",
      checked: attached.has(each.id),
      run: () => attachments.toggleCollection(each),
    })),
  ];
  return html`<div class="composer-options">
    ${add.length > 0 && html`<${Menu} label=${t("chat.add")} icon="plus" items=${add} />`}
    ${tools.value.length > 0 && html`<${Menu} label=${t("chat.tools")} icon="wrench" items=${toggles(tools.value, chosen.toolIds)} />`}
    ${filters.length > 0 && html`<${Menu} label=${t("chat.filters")} icon="sliders-horizontal" items=${toggles(filters, chosen.filterIds)} />`}
    ${optionsError.value && html`<span class="help" role="alert">${t("chat.optionsFailed")}</span>`}
  </div>`;
}

/** The names of the tools and filters that are on. @param {{model: object, chosen: object}} props */
export function chosenNames(model, chosen) {
  const named = (all, ids) => all.filter((each) => ids.value.includes(each.id));
  return [
    ...named(tools.value, chosen.toolIds).map((each) => ({ ...each, icon: "wrench", ids: chosen.toolIds })),
    ...named(model?.filters ?? [], chosen.filterIds).map((each) => ({ ...each, icon: "sliders-horizontal", ids: chosen.filterIds })),
  ];
}

/** Switches an id of a list on or off. */
export function toggleId(ids, id) {
  ids.value = ids.peek().includes(id) ? ids.peek().filter((each) => each !== id) : [...ids.peek(), id];
}

function toggles(all, ids) {
  return all.map((each) => ({
    label: each.name ?? each.id,
    checked: ids.value.includes(each.id),
    run: () => toggleId(ids, each.id),
  }));
}
