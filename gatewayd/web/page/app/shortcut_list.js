/**
 * The list of the keyboard shortcuts, with the switch for all of them.
 */
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { shortcuts } from "#app/core/preferences";
import { keyNames, shortcutList } from "#app/core/shortcuts";
import { Button } from "#app/ui/controls";
import { Switch } from "#app/ui/fields";

/** The content of the dialog. @param {{titleId: string, close: () => void}} props */
export function ShortcutList({ titleId, close }) {
  return html`<h2 id=${titleId}>${t("common.shortcutList")}</h2>
    <dl class="shortcuts">${shortcutList.value.map(({ keys, messageKey }) => html`<div key="${keys}${messageKey}">
      <dt>${t(messageKey)}</dt>
      <dd>${keyNames(keys).map((name) => html`<kbd key=${name}>${name}</kbd>`)}</dd>
    </div>`)}</dl>
    <${Switch} label=${t("common.useShortcuts")} checked=${shortcuts.value}
      onChange=${(isOn) => (shortcuts.value = isOn)} />
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//></div>`;
}
