/**
 * The forms of the sign-in view: password, directory, and new account.
 */
import { Form, PasswordField, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { SignInError } from "#app/signin/panels";
import { Button, TextField } from "#app/ui/index";

const FIELDS = ["name", "email", "password"];

/** Sign-in by e-mail address and password. @param {{onDone: () => Promise<void>}} props */
export function PasswordForm({ onDone }) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const { run, busy, error } = useAction(async () => {
    await post("/api/v1/auths/signin", { email, password });
    await onDone();
  });
  return html`<${Form} onSubmit=${run} aria-label=${t("signin.passwordForm")}>
    <${TextField} label=${t("signin.email")} type="email" name="email" autocomplete="username" dir="ltr" required
      value=${email} onInput=${setEmail} />
    <${PasswordField} label=${t("signin.password")} name="password" autocomplete="current-password" required
      value=${password} onInput=${setPassword} />
    <${SignInError} error=${error} />
    <${Button} type="submit" kind="primary" busy=${busy}>${t("signin.signIn")}<//>
  <//>`;
}

/** Sign-in by the directory of the company. @param {{onDone: () => Promise<void>}} props */
export function DirectoryForm({ onDone }) {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const { run, busy, error } = useAction(async () => {
    await post("/api/v1/auths/ldap", { user, password });
    await onDone();
  });
  return html`<${Form} onSubmit=${run} aria-label=${t("signin.directoryForm")}>
    <${TextField} label=${t("signin.userName")} name="user" autocomplete="username" dir="ltr" required
      value=${user} onInput=${setUser} help=${t("signin.directoryHelp")} />
    <${PasswordField} label=${t("signin.password")} name="password" autocomplete="current-password" required
      value=${password} onInput=${setPassword} />
    <${SignInError} error=${error} wrong="invalid_user_name" />
    <${Button} type="submit" kind="primary" busy=${busy}>${t("signin.signIn")}<//>
  <//>`;
}

/**
 * Name, e-mail address and password of a new account.
 * @param {{verb: string, email?: string | null, send: (account: object) => Promise<void>}} props
 *   with an `email` of a text that address is fixed
 */
export function NewAccountForm({ verb, email: fixed = null, send }) {
  const [name, setName] = useState("");
  const [email, setEmail] = useState(fixed ?? "");
  const [password, setPassword] = useState("");
  const { run, busy, error } = useAction(() => send({ name, email, password }));
  return html`<${Form} onSubmit=${run} aria-label=${verb}>
    <${TextField} label=${t("signin.name")} name="name" autocomplete="name" required value=${name} onInput=${setName}
      error=${fieldProblem(error, "name")} />
    <${TextField} label=${t("signin.email")} type="email" name="email" autocomplete="username" dir="ltr" required
      value=${email} onInput=${setEmail} readonly=${fixed !== null} error=${fieldProblem(error, "email")} />
    <${PasswordField} label=${t("signin.newPassword")} name="password" autocomplete="new-password" required
      value=${password} onInput=${setPassword} help=${t("signin.passwordHelp")} error=${fieldProblem(error, "password")} />
    <${SignInError} error=${otherProblem(error, ...FIELDS)} />
    <${Button} type="submit" kind="primary" busy=${busy}>${verb}<//>
  <//>`;
}
