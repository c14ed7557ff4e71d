/**
 * Settings > Account: profile, password, API keys, sessions, and the providers of the account.
 */
import { Section } from "#app/account/frames";
import { Form, PasswordField, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { Identities } from "#app/account/identities";
import { Keys } from "#app/account/keys";
import { PictureField } from "#app/account/picture";
import { Sessions } from "#app/account/sessions";
import { post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { location } from "#app/core/router";
import { loadSession, me, replaceSession, signedIn } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { RefusalNote } from "#app/signin/panels";
import { Button, ErrorNote, TextField } from "#app/ui/index";

/** The sections. */
export function AccountSettings() {
  const { error } = location.value.query;
  return html`${error && html`<${RefusalNote} code=${error} />`}
    <${Profile} /><${Keys} /><${Password} /><${Sessions} /><${Identities} />`;
}

function Profile() {
  const [name, setName] = useState(me.value.name);
  const [picture, setPicture] = useState(me.value.profile_image_url);
  const { run, busy, error } = useAction(async () => {
    await post("/api/v1/auths/update/profile", { name, profile_image_url: picture });
    await loadSession();
    toast("success", t("account.profile.saved"));
  });
  const isChanged = name !== me.value.name || picture !== me.value.profile_image_url;
  return html`<${Section} title=${t("account.profile.title")} text=${me.value.email}>
    <${Form} onSubmit=${run} aria-label=${t("account.profile.title")}>
      <${PictureField} name=${name} value=${picture} onChange=${setPicture} error=${fieldProblem(error, "profile_image_url")} />
      <${TextField} label=${t("account.profile.name")} autocomplete="name" value=${name} onInput=${setName}
        help=${t("account.profile.nameHelp")} error=${fieldProblem(error, "name")} />
      <${ErrorNote} error=${otherProblem(error, "name", "profile_image_url")} />
      <div class="row"><${Button} type="submit" kind="primary" busy=${busy} disabled=${!isChanged}>${t("account.profile.save")}<//></div>
    <//>
  <//>`;
}

/** An account of a provider alone has no password to change. */
function Password() {
  const { value } = useResource("/api/v1/auths/confirm");
  if (value?.has_password === false) {
    return html`<${Section} title=${t("account.password.title")} text=${t("account.password.none")} />`;
  }
  return html`<${PasswordForm} />`;
}

function PasswordForm() {
  const [present, setPresent] = useState("");
  const [wanted, setWanted] = useState("");
  const { run, busy, error } = useAction(async () => {
    await replaceSession(async () => {
      await post("/api/v1/auths/update/password", { password: present, new_password: wanted });
      // Every session has ended, this one too: the new password begins the next.
      await post("/api/v1/auths/signin", { email: me.value.email, password: wanted });
    });
    await signedIn();
    setPresent("");
    setWanted("");
    toast("success", t("account.password.changed"));
  });
  return html`<${Section} title=${t("account.password.title")} text=${t("account.password.text")}>
    <${Form} onSubmit=${run} aria-label=${t("account.password.title")}>
      <input type="text" name="username" autocomplete="username" value=${me.value.email} readonly hidden />
      <${PasswordField} label=${t("account.password.present")} autocomplete="current-password" value=${present}
        onInput=${setPresent} error=${fieldProblem(error, "password")} />
      <${PasswordField} label=${t("account.password.new")} autocomplete="new-password" value=${wanted} onInput=${setWanted}
        help=${t("signin.passwordHelp")} error=${fieldProblem(error, "new_password")} />
      <${ErrorNote} error=${otherProblem(error, "password", "new_password")} />
      <div class="row"><${Button} type="submit" busy=${busy} disabled=${!present || !wanted}>${t("account.password.change")}<//></div>
    <//>
  <//>`;
}
