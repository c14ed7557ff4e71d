/**
 * What an account sees that waits for an administrator.
 */
import { useResource } from "#app/ui/resource";
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { config, loadSession, me, signOut } from "#app/core/session";
import { SignInCard } from "#app/signin/panels";
import { Button } from "#app/ui/index";

/** The card. */
export function Pending() {
  // The contact is absent when the administrator hides it.
  const { value: contact } = useResource("/api/v1/auths/admin/details");
  const ui = config.value.ui ?? {};
  return html`<${SignInCard} title=${ui.pending_user_overlay_title || t("signin.pendingTitle")}
    text=${ui.pending_user_overlay_content || t("signin.pendingText", { email: me.value.email })}>
    ${contact && html`<p class="signin-text">${t("signin.contact", { name: contact.name })}${" "}
      <a href="mailto:${encodeURIComponent(contact.email).replace("%40", "@")}" dir="ltr">${contact.email}</a></p>`}
    <${Button} kind="primary" onClick=${loadSession}>${t("signin.checkAgain")}<//>
    <${Button} kind="plain" onClick=${signOut}>${t("signin.signOut")}<//>
  <//>`;
}
