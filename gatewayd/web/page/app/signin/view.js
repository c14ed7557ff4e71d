/**
 * The view `/auth`: every way into the gateway.
 */
import { useAction } from "#app/ui/forms";
import { post } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { location, navigate } from "#app/core/router";
import { config, hasSignedOut, loadSession, me, signedIn } from "#app/core/session";
import { useTitle } from "#app/core/title";
import { DirectoryForm, NewAccountForm, PasswordForm } from "#app/signin/account_forms";
import { providerAddress, returnPath, takeToken } from "#app/signin/addresses";
import { Invitation, SignInLink } from "#app/signin/one_time";
import { ProviderLinks, RefusalNote, SignInCard, SignInError } from "#app/signin/panels";
import { Pending } from "#app/signin/pending";
import { Button, CopyButton, Skeleton, Tabs } from "#app/ui/index";

const SETUP = "gatewayctl setup --email you@example.org --name 'Your Name'";

/** The view. */
export default function SignInView() {
  useTitle(t("signin.signIn"));
  const [once, setOnce] = useState(takeToken);
  const path = returnPath(location.value.query.redirect);
  useEffect(() => {
    // A link that is opened in this tab changes the fragment alone.
    const onHash = () => {
      const found = takeToken();
      if (found) setOnce(found);
    };
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  const isDone = Boolean(me.value) && me.value.role !== "pending" && !once;
  useEffect(() => {
    if (isDone) navigate(path, { replace: true });
  }, [isDone]);
  const onDone = async () => {
    setOnce(null);
    await signedIn();
  };
  if (once) {
    const Content = once.kind === "link" ? SignInLink : Invitation;
    return html`<${Content} key=${once.token} token=${once.token} onDone=${onDone} onLeave=${() => setOnce(null)} />`;
  }
  if (isDone) return null;
  if (me.value) return html`<${Pending} />`;
  if (config.value.onboarding) return html`<${FirstAdministrator} onDone=${onDone} />`;
  return html`<${WaysIn} path=${path} onDone=${onDone} />`;
}

/** The gateway has no account yet. */
function FirstAdministrator({ onDone }) {
  const title = t("signin.welcome", { name: config.value.name });
  if (!config.value.features.enable_signup) {
    return html`<${SignInCard} title=${title} text=${t("signin.setupText")}>
      <div class="shell-line"><code dir="ltr">${SETUP}</code><${CopyButton} text=${SETUP} /></div>
      <${Button} onClick=${loadSession}>${t("signin.checkAgain")}<//>
    <//>`;
  }
  const send = async (account) => {
    await post("/api/v1/auths/signup", account);
    await onDone();
  };
  return html`<${SignInCard} title=${title} text=${t("signin.firstText")}>
    <${NewAccountForm} verb=${t("signin.createFirst")} send=${send} />
  <//>`;
}

/** What the configuration offers. `?form=true` keeps the view from leaving for the only provider. */
function WaysIn({ path, onDone }) {
  const { features, oauth } = config.value;
  const { error: refusal, form } = location.value.query;
  const [isNew, setNew] = useState(false);
  const providers = Object.keys(oauth.providers);
  const leaves = oauth.auto_redirect && providers.length === 1 && form !== "true" && !refusal && !hasSignedOut.value;
  useEffect(() => {
    if (leaves) window.location.replace(providerAddress(providers[0], path));
  }, [leaves]);
  if (leaves) return html`<${SignInCard} title=${t("signin.title", { name: config.value.name })}><${Skeleton} /><//>`;
  const hasForm = features.enable_login_form || form === "true";
  if (isNew) return html`<${SignUp} onDone=${onDone} onLeave=${() => setNew(false)} />`;
  return html`<${SignInCard} title=${t("signin.title", { name: config.value.name })}>
    ${refusal && html`<${RefusalNote} code=${refusal} />`}
    ${features.auth_trusted_header && html`<${HeaderSignIn} onDone=${onDone} />`}
    ${providers.length > 0 && html`<${ProviderLinks} path=${path} />`}
    ${providers.length > 0 && (hasForm || features.enable_ldap) && html`<p class="signin-or"><span>${t("signin.or")}</span></p>`}
    <${Forms} hasForm=${hasForm} hasDirectory=${features.enable_ldap} onDone=${onDone} />
    ${features.enable_signup && hasForm && html`<p class="signin-text">${t("signin.noAccount")}${" "}
      <${Button} kind="plain" onClick=${() => setNew(true)}>${t("signin.signUp")}<//></p>`}
  <//>`;
}

function Forms({ hasForm, hasDirectory, onDone }) {
  const [chosen, setChosen] = useState("directory");
  const password = () => html`<${PasswordForm} onDone=${onDone} />`;
  const directory = () => html`<${DirectoryForm} onDone=${onDone} />`;
  if (!hasDirectory) return hasForm ? password() : null;
  if (!hasForm) return directory();
  const tabs = [
    { id: "directory", label: config.value.ldap?.label || t("signin.byDirectory"), content: directory },
    { id: "password", label: t("signin.byPassword"), content: password },
  ];
  return html`<${Tabs} label=${t("signin.ways")} tabs=${tabs} value=${chosen} onChange=${setChosen} />`;
}

/** The proxy before the gateway says who this is: tried once, unless somebody has just signed out. */
function HeaderSignIn({ onDone }) {
  const [isAsked, setAsked] = useState(false);
  const { run, busy, error } = useAction(async () => {
    await post("/api/v1/auths/signin", { email: "", password: "" });
    await onDone();
  });
  useEffect(() => {
    if (!hasSignedOut.peek()) run();
  }, []);
  const press = () => {
    setAsked(true);
    run();
  };
  // Who did not come through the proxy has other ways in, and need not read of this one.
  const isAbsent = error?.code === "invalid_credentials";
  return html`${isAbsent ? isAsked && html`<p class="error-note" role="alert">${t("signin.noProxy")}</p>` : html`<${SignInError} error=${error} />`}
    <${Button} icon="log-in" busy=${busy} onClick=${press}>${t("signin.byProxy")}<//>`;
}

function SignUp({ onDone, onLeave }) {
  const send = async (account) => {
    await post("/api/v1/auths/signup", account);
    await onDone();
  };
  return html`<${SignInCard} title=${t("signin.signUpTitle", { name: config.value.name })}>
    <${NewAccountForm} verb=${t("signin.signUp")} send=${send} />
    <${Button} kind="plain" onClick=${onLeave}>${t("signin.haveAccount")}<//>
  <//>`;
}
