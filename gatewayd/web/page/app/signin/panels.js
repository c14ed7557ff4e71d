/**
 * The card of the sign-in view, and the buttons of providers.
 */
import { html } from "#app/core/html";
import { formatRelative, hasText, t } from "#app/core/messages";
import { config } from "#app/core/session";
import { providerAddress } from "#app/signin/addresses";
import { ErrorNote, Icon } from "#app/ui/index";

/** The card. @param {{title: string, text?: string}} props */
export function SignInCard({ title, text, children }) {
  return html`<div class="signin">
    <div class="signin-card">
      <div class="signin-mark" aria-hidden="true"><${Icon} name="messages-square" size=${28} /></div>
      <h1 dir="auto">${title}</h1>
      ${text && html`<p class="signin-text" dir="auto">${text}</p>`}
      ${children}
    </div>
  </div>`;
}

/** Links to the providers: a policy would keep a form from leading to another site. @param {{path: string}} props */
export function ProviderLinks({ path }) {
  return html`<div class="signin-providers">
    ${Object.entries(config.value.oauth.providers).map(([name, label]) => html`<a key=${name} class="button"
      href=${providerAddress(name, path)}><${Icon} name="log-in" />
      <span dir="auto">${t("signin.continueWith", { provider: label })}</span></a>`)}
  </div>`;
}

/** Why a sign-in that came back from a provider was refused. @param {{code: string}} props */
export function RefusalNote({ code }) {
  const key = `signin.refusals.${code}`;
  return html`<div class="error-note" role="alert"><${Icon} name="circle-alert" />
    <div><p>${/^\w+$/.test(code) && hasText(key) ? t(key) : t("signin.refusals.unknown")}</p></div></div>`;
}

/**
 * Why the gateway refused a form, in the words of the reader.
 * @param {{error: any, wrong?: string}} props `wrong` is the key of the text for wrong credentials
 */
export function SignInError({ error, wrong = "invalid_credentials" }) {
  if (!error) return null;
  const told = error.code === "invalid_credentials" ? wrong : error.code;
  const code = error.status === 429 ? "too_many" : told;
  const key = [`signin.codes.${code}`, `signin.refusals.${code}`].find(hasText);
  if (!key) return html`<${ErrorNote} error=${error} />`;
  const until = formatRelative(Date.now() / 1000 + (error.retryAfter ?? 60));
  return html`<div class="error-note" role="alert"><${Icon} name="circle-alert" />
    <div><p>${t(key, { when: until })}</p></div></div>`;
}
