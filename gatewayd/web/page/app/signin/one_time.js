/**
 * Links that work once: the page shows what they are for, and only a press of the button uses them.
 */
import { useAction } from "#app/ui/forms";
import { post } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { config, me } from "#app/core/session";
import { NewAccountForm } from "#app/signin/account_forms";
import { SignInCard, SignInError } from "#app/signin/panels";
import { Button, Skeleton } from "#app/ui/index";

/**
 * A sign-in link.
 * @param {{token: string, onDone: () => Promise<void>, onLeave: () => void}} props
 */
export function SignInLink({ token, onDone, onLeave }) {
  const { run, busy, error } = useAction(async () => {
    await post("/api/v1/auths/link", { token });
    await onDone();
  });
  return html`<${SignInCard} title=${t("signin.title", { name: config.value.name })}
    text=${me.value ? t("signin.linkAsOther", { name: me.value.name, email: me.value.email }) : t("signin.linkText")}>
    <${SignInError} error=${error} />
    <${Button} kind="primary" busy=${busy} onClick=${run}>${t("signin.useLink")}<//>
    <${Button} kind="plain" onClick=${onLeave}>${me.value ? t("signin.stay", { name: me.value.name }) : t("signin.otherWay")}<//>
  <//>`;
}

/**
 * An invitation: name and password of the new account.
 * @param {{token: string, onDone: () => Promise<void>, onLeave: () => void}} props
 */
export function Invitation({ token, onDone, onLeave }) {
  const [shown, setShown] = useState({});
  useEffect(() => {
    post("/api/v1/auths/invitations/show", { token }).then(
      (invitation) => setShown({ invitation }),
      (error) => setShown({ error }),
    );
  }, [token]);
  const send = async (account) => {
    await post("/api/v1/auths/invitations/accept", { token, ...account, email: account.email || null });
    await onDone();
  };
  const leave = html`<${Button} kind="plain" onClick=${onLeave}>
    ${me.value ? t("signin.stay", { name: me.value.name }) : t("signin.otherWay")}<//>`;
  return html`<${SignInCard} title=${t("signin.invitationTitle", { name: config.value.name })}
    text=${invitationText(shown)}>
    <${SignInError} error=${shown.error} />
    ${!shown.invitation && !shown.error && html`<${Skeleton} />`}
    ${shown.invitation && html`<${NewAccountForm} verb=${t("signin.accept")} email=${shown.invitation.email || null}
      send=${send} />`}
    ${leave}
  <//>`;
}

function invitationText({ error }) {
  if (error) return undefined;
  if (!me.value) return t("signin.invitationText");
  return t("signin.invitationAsOther", { name: me.value.name, email: me.value.email });
}
