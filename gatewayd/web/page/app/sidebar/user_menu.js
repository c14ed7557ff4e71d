/**
 * The account at the foot of the sidebar: settings, colours, and what concerns all chats.
 */
import { openModule } from "#app/core/dialogs";
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { theme } from "#app/core/preferences";
import { navigate } from "#app/core/router";
import { can, isAdmin, me, signOut } from "#app/core/session";
import { Menu } from "#app/ui/menu";

const THEMES = { auto: "contrast", light: "sun", dark: "moon" };

const transfer = (work) => import("#app/sidebar/transfer").then(work).catch(reportError);

/** The menu of the account. */
export function UserMenu() {
  const { name, email } = me.value;
  const items = [
    { label: t("common.settings"), icon: "settings", run: () => navigate("/settings") },
    isAdmin() && { label: t("common.administration"), icon: "shield", run: () => navigate("/admin") },
    null,
    ...Object.entries(THEMES).map(([value, icon]) => ({
      label: t(`sidebar.theme_${value}`),
      icon,
      checked: theme.value === value,
      run: () => (theme.value = value),
    })),
    null,
    { label: t("sidebar.archivedChats"), icon: "archive", run: () => void openModule(() => import("#app/sidebar/archive_dialog"), "ArchiveDialog", { wide: true }) },
    can("chat.import") && { label: t("sidebar.importChats"), icon: "upload", run: () => transfer((module) => module.importChats()) },
    can("chat.export") && { label: t("sidebar.exportChats"), icon: "download", run: () => transfer((module) => module.exportAll()) },
    { label: t("common.shortcutList"), icon: "keyboard", run: () => void openModule(() => import("#app/shortcut_list"), "ShortcutList") },
    null,
    { label: t("sidebar.signOut"), icon: "log-out", run: signOut },
  ];
  const label = t("sidebar.accountMenu", { name: name || email });
  return html`<${Menu} class="user-menu" icon="user" label=${label} text=${html`<span class="user-name" dir="auto">${name || email}</span>`}
    items=${items.filter((item) => item !== false)} />`;
}
