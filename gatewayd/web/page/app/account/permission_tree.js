/**
 * The editor of a tree of permissions, of the defaults and of groups.
 */
import { html, useState } from "#app/core/html";
import { formatNumber, hasText, t } from "#app/core/messages";
import { Button, Checkbox, Chip, IconButton, SearchField } from "#app/ui/index";

/**
 * The tree. A permission of a group is granted by it, inherited from the defaults, or not there; one of the defaults is
 * allowed or not, and may differ from the initial value.
 * @param {{own: Tree, inherited: Tree, isGroup: boolean, onChange: (tree: Tree) => void}} props
 *   `inherited` are the defaults for a group, and the initial values for the defaults
 * @typedef {Record<string, Record<string, boolean>>} Tree
 */
export function PermissionTree({ own, inherited, isGroup, onChange }) {
  const [query, setQuery] = useState("");
  const set = (section, leaf, value) => {
    const leaves = { ...own[section] };
    if (value === undefined) delete leaves[leaf];
    else leaves[leaf] = value;
    onChange({ ...own, [section]: leaves });
  };
  const sections = Object.entries(inherited)
    .map(([section, leaves]) => [section, Object.keys(leaves).filter((leaf) => fits(section, leaf, query))])
    .filter(([, leaves]) => leaves.length > 0);
  return html`<div class="permission-tree">
    <${SearchField} label=${t("account.permissions.search")} value=${query} onInput=${setQuery} />
    ${sections.length === 0 && html`<p class="help" role="status">${t("account.permissions.nothing")}</p>`}
    ${sections.map(([section, leaves]) => html`<${PermissionSection} key=${section} section=${section} leaves=${leaves}
      own=${own[section] ?? {}} inherited=${inherited[section]} isGroup=${isGroup}
      set=${(leaf, value) => set(section, leaf, value)} />`)}
  </div>`;
}

/** Returns whether a permission has a text in its name or label. */
function fits(section, leaf, query) {
  const wanted = query.trim().toLowerCase();
  return `${section}.${leaf} ${leafLabel(section, leaf)} ${sectionLabel(section)}`.toLowerCase().includes(wanted);
}

/** Returns what a permission allows; its name where this release of the page has no words for it. */
function leafLabel(section, leaf) {
  const key = `account.leaves.${section}.${leaf}`;
  return hasText(key) ? t(key) : leaf;
}

function sectionLabel(section) {
  const key = `account.leafSections.${section}`;
  return hasText(key) ? t(key) : section;
}

function PermissionSection({ section, leaves, own, inherited, isGroup, set }) {
  const isOn = (leaf) => (isGroup ? own[leaf] === true || inherited[leaf] : own[leaf]);
  const count = { allowed: formatNumber(leaves.filter(isOn).length), all: formatNumber(leaves.length) };
  return html`<fieldset class="permission-section">
    <legend>${sectionLabel(section)} <span class="help">${t("account.permissions.count", count)}</span></legend>
    <ul>${leaves.map((leaf) => html`<li key=${leaf}>
      ${isGroup
        ? html`<${GroupLeaf} section=${section} leaf=${leaf} isGranted=${own[leaf] === true} isInherited=${inherited[leaf]}
            set=${(isGranted) => set(leaf, isGranted ? true : undefined)} />`
        : html`<${DefaultLeaf} section=${section} leaf=${leaf} isAllowed=${own[leaf]} initial=${inherited[leaf]}
            set=${(isAllowed) => set(leaf, isAllowed)} />`}
    </li>`)}</ul>
  </fieldset>`;
}

/** Three states: granted by the group, inherited from the defaults (a box half checked), not allowed. */
function GroupLeaf({ section, leaf, isGranted, isInherited, set }) {
  const state = isGranted ? "granted" : isInherited ? "inherited" : "absent";
  const kind = { granted: "accent", inherited: "success", absent: "" }[state];
  return html`<${Checkbox} label=${leafLabel(section, leaf)} help=${html`<code dir="ltr">${section}.${leaf}</code>`}
      checked=${isGranted} indeterminate=${!isGranted && isInherited} onChange=${set} />
    <${Chip} kind=${kind}>${t(`account.permissions.states.${state}`)}<//>`;
}

function DefaultLeaf({ section, leaf, isAllowed, initial, set }) {
  const label = leafLabel(section, leaf);
  const state = t(`account.permissions.states.${initial ? "initiallyOn" : "initiallyOff"}`);
  return html`<${Checkbox} label=${label} help=${html`<code dir="ltr">${section}.${leaf}</code>`} checked=${isAllowed}
      onChange=${set} />
    ${isAllowed !== initial && html`<span class="row"><${Chip} kind="warning">${state}<//>
      <${IconButton} icon="rotate-ccw" label=${t("account.permissions.reset", { permission: label })}
        onClick=${() => set(initial)} /></span>`}`;
}

/**
 * What is not saved yet, with the buttons to save it or to drop it; nothing when all is saved.
 * @param {{isChanged: boolean, busy: boolean, save: () => void, drop: () => void}} props
 */
export function SaveBar({ isChanged, busy, save, drop }) {
  if (!isChanged) return null;
  return html`<div class="save-bar" role="region" aria-label=${t("account.unsaved")}>
    <p>${t("account.unsaved")}</p>
    <${Button} onClick=${drop}>${t("account.discard")}<//>
    <${Button} kind="primary" busy=${busy} onClick=${save}>${t("account.save")}<//>
  </div>`;
}

/** Returns whether two trees allow the same. */
export function isSameTree(one, other) {
  return JSON.stringify(granted(one)) === JSON.stringify(granted(other));
}

function granted(tree) {
  return Object.entries(tree)
    .flatMap(([section, leaves]) => Object.keys(leaves).filter((leaf) => leaves[leaf]).map((leaf) => `${section}.${leaf}`))
    .sort();
}
