/**
 * The providers by which the account can sign in: link and unlink.
 */
import { confirmSession, confirmed } from "#app/account/confirmation";
import { Section } from "#app/account/frames";
import { useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { moment } from "#app/account/keys";
import { del } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html } from "#app/core/html";
import { t } from "#app/core/messages";
import { config } from "#app/core/session";
import { Button, Chip, ErrorNote, Icon } from "#app/ui/index";

const PATH = "/api/v1/auths/identities";

/** Settings > Account > Identity providers; absent where there is none and the account has no link. */
export function Identities() {
  const { value, error, reload } = useResource(PATH);
  const unlink = useAction(async (one) => {
    const question = { title: t("account.identities.unlinkTitle", { provider: one.label }), danger: true };
    const text = t("account.identities.unlinkText");
    if (!(await confirmDialog({ ...question, text, verb: t("account.identities.unlink") }))) return;
    await confirmed(() => del(`${PATH}/${encodeURIComponent(one.provider)}`));
    await reload();
  });
  const link = useAction(async (one) => {
    // Linking leaves the page, so the session is confirmed before.
    if (!(await confirmSession())) return;
    const back = encodeURIComponent("/settings/account");
    window.location.assign(`/oauth/${encodeURIComponent(one.provider)}/login?link=true&redirect=${back}`);
  });
  if (error?.status === 404 || (value && value.length === 0)) return null;
  return html`<${Section} title=${t("account.identities.title")} text=${t("account.identities.text")}>
    <${ErrorNote} error=${error ?? unlink.error ?? link.error} />
    <ul class="item-list">${(value ?? []).map((one) => html`<li key=${one.provider}>
      <${Icon} name=${one.linked ? "link" : "link-2-off"} />
      <div class="grow">
        <p><strong dir="auto">${one.label}</strong>${" "}
          ${one.linked && html`<${Chip} kind="success">${t("account.identities.linked")}<//>`}</p>
        ${one.linked && html`<p class="help"><bdi>${one.email || one.subject_hint}</bdi> · ${moment(one.linked_at)}</p>`}
      </div>
      ${one.linked
        ? html`<${Button} aria-label=${t("account.identities.unlinkTitle", { provider: one.label })} busy=${unlink.busy}
            onClick=${() => unlink.run(one)}>${t("account.identities.unlink")}<//>`
        : one.provider in config.value.oauth.providers && html`<${Button} busy=${link.busy}
            aria-label=${t("account.identities.linkNamed", { provider: one.label })} onClick=${() => link.run(one)}>${t("account.identities.link")}<//>`}
    </li>`)}</ul>
  <//>`;
}
