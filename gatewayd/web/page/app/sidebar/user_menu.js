/**
 * The account at the foot of the sidebar: settings, colours, and what concerns all chats.
 */
import { openDialog } from "#app/core/dialogs";
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { theme } from "#app/core/preferences";
import { navigate } from "#app/core/router";
import { can, isAdmin, me, signOut } from "#app/core/session";
import { ShortcutList } from "#app/shortcut_list";
import { openArchive } from "#app/sidebar/archive_dialog";
import { exportAll, importChats } from "#app/sidebar/transfer";
import { Menu } from "#app/ui/menu";

const THEMES = { auto: "contrast", light: "sun", dark: "moon" };

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
    { label: t("sidebar.archivedChats"), icon: "archive", run: openArchive },
    can("chat.import") && { label: t("sidebar.importChats"), icon: "upload", run: importChats },
    can("chat.export") && { label: t("sidebar.exportChats"), icon: "download", run: exportAll },
    { label: t("common.shortcutList"), icon: "keyboard", run: () => void openDialog(ShortcutList) },
    null,
    { label: t("sidebar.signOut"), icon: "log-out", run: signOut },
  ];
  const label = t("sidebar.accountMenu", { name: name || email });
  return html`<${Menu} class="user-menu" icon="user" label=${label} text=${html`<span class="user-name" dir="auto">${name || email}</span>`}
    items=${items.filter((item) => item !== false)} />`;
}
