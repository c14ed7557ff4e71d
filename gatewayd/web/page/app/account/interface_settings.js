/**
 * Settings > Interface: language, colours, shortcuts and notifications of this browser.
 */
import { Section } from "#app/account/frames";
import { html, useState } from "#app/core/html";
import { LANGUAGES, language, setLanguage, t } from "#app/core/messages";
import { notifications, shortcuts, theme } from "#app/core/preferences";
import { keyNames, shortcutList } from "#app/core/shortcuts";
import { Select, Switch } from "#app/ui/index";

const THEMES = ["auto", "light", "dark"];

/** The sections. */
export function InterfaceSettings() {
  return html`<${Section} title=${t("account.interface.look")} text=${t("account.interface.lookText")}>
      <${Select} label=${t("account.interface.language")} value=${language.value} onChange=${setLanguage}
        options=${Object.entries(LANGUAGES).map(([value, label]) => ({ value, label }))} />
      <${Select} label=${t("account.interface.theme")} value=${theme.value} onChange=${(chosen) => (theme.value = chosen)}
        options=${THEMES.map((value) => ({ value, label: t(`account.interface.themes.${value}`) }))} />
    <//>
    <${Notifications} />
    <${Section} title=${t("common.shortcutList")} text=${t("account.interface.shortcutsText")}>
      <${Switch} label=${t("common.useShortcuts")} checked=${shortcuts.value} onChange=${(isOn) => (shortcuts.value = isOn)} />
      <dl class="shortcuts">${shortcutList.value.map(({ keys, messageKey }) => html`<div key="${keys}${messageKey}">
        <dt>${t(messageKey)}</dt>
        <dd dir="ltr">${keyNames(keys).map((name) => html`<kbd key=${name}>${name}</kbd>`)}</dd>
      </div>`)}</dl>
    <//>`;
}

function Notifications() {
  const [isRefused, setRefused] = useState(false);
  const change = async (isOn) => {
    const answer = isOn && "Notification" in window ? await Notification.requestPermission() : "default";
    setRefused(isOn && answer !== "granted");
    notifications.value = isOn && answer === "granted";
  };
  return html`<${Section} title=${t("account.interface.notifications")}>
    <${Switch} label=${t("account.interface.notify")} help=${t("account.interface.notifyHelp")} checked=${notifications.value}
      onChange=${change} error=${isRefused ? t("account.interface.notifyRefused") : undefined} />
  <//>`;
}
