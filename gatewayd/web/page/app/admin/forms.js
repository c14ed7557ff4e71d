/**
 * What the forms for administrators have in common.
 */
import { html, useRef } from "#app/core/html";
import { t } from "#app/core/messages";

/** Stands for a stored secret in what the gateway sends; sent back, it keeps the secret. */
export const MASK = "********";

/**
 * A switch in a row of a table; it turns when the gateway has done the change.
 * @param {{label: string, checked: boolean, change: () => Promise<void>}} props
 */
export function RowSwitch({ label, checked, change }) {
  const isBusy = useRef(false);
  const turn = async (event) => {
    event.target.checked = checked;
    if (isBusy.current) return;
    isBusy.current = true;
    await change().finally(() => (isBusy.current = false));
  };
  return html`<input type="checkbox" role="switch" class="switch" aria-label=${label} checked=${checked} onChange=${turn} />`;
}

/** Returns the fault of an address, or "". @param {string} text */
export function faultOfAddress(text) {
  let url;
  try {
    url = new URL(text.trim());
  } catch {
    return t("admin.forms.address");
  }
  if (!["http:", "https:"].includes(url.protocol)) return t("admin.forms.address");
  return url.username || url.password ? t("admin.forms.addressCredentials") : "";
}

/** Returns the lines of a text that are not empty. @param {string} text */
export function linesOf(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

/** Offers a text as a file. @param {string} name @param {string} text @param {string} [type] */
export function download(name, text, type = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
