/**
 * A list of facts: a name and a value each.
 */
import { html } from "#app/core/html";

/** @param {{label: string, facts: [string, unknown][]}} props facts without a value are left out */
export function Facts({ label, facts }) {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="admin-facts card" aria-label=${label}>
    ${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd><span dir="auto">${value}</span></dd></div>`)}
  </dl>`;
}
