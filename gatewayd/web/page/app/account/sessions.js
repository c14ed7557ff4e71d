/**
 * Where somebody is signed in: the list, and how to end sessions.
 */
import { Section } from "#app/account/frames";
import { useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { moment } from "#app/account/keys";
import { del, post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { loadSession } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { Button, Chip, ErrorNote, Icon, Skeleton } from "#app/ui/index";

const FIRST = 20;
const PATH = "/api/v1/auths/sessions";
const BROWSERS = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
const SYSTEMS = [["Android", "Android"], ["iPhone", "iOS"], ["iPad", "iPadOS"], ["Windows", "Windows"], ["Mac OS", "macOS"],
  ["Linux", "Linux"]];

/** Settings > Account > Sessions. */
export function Sessions() {
  const { value, error, reload } = useResource(PATH);
  const end = useAction(async (session) => {
    await del(`${PATH}/${encodeURIComponent(session.id)}`);
    await (session.current ? loadSession() : reload());
  });
  const others = useAction(async () => {
    const { ended } = await post(`${PATH}/end_others`);
    toast("success", plural("account.sessions.ended", ended));
    await reload();
  });
  return html`<${Section} title=${t("account.sessions.title")} text=${t("account.sessions.text")}>
    <${ErrorNote} error=${error ?? end.error ?? others.error} />
    ${!value && !error && html`<${Skeleton} />`}
    ${value && html`<${SessionList} sessions=${value} end=${end.run} />`}
    ${value?.length > 1 && html`<div class="row"><${Button} busy=${others.busy} onClick=${others.run}>${t("account.sessions.endOthers")}<//></div>`}
  <//>`;
}

/** A list of sessions. @param {{sessions: object[], end?: (session: object) => void}} props */
export function SessionList({ sessions, end }) {
  const [shown, setShown] = useState(FIRST);
  if (sessions.length === 0) return html`<p class="help">${t("account.sessions.none")}</p>`;
  return html`<ul class="item-list">${sessions.slice(0, shown).map((session) => {
    const name = browserName(session.user_agent);
    return html`<li key=${session.id}>
      <${Icon} name=${/Android|iPhone|iPad/.test(session.user_agent) ? "smartphone" : "monitor"} />
      <div class="grow">
        <p><strong title=${session.user_agent}>${name}</strong>${" "}
          ${session.current && html`<${Chip} kind="accent">${t("account.sessions.current")}<//>`}</p>
        <p class="help">${method(session)} · <bdi>${session.address || t("account.sessions.noAddress")}</bdi> ·${" "}
          ${t("account.sessions.seen")} ${moment(session.last_seen_at)}</p>
      </div>
      ${end && html`<${Button} aria-label=${t("account.sessions.endNamed", { name })} onClick=${() => end(session)}>${t("account.sessions.end")}<//>`}
    </li>`;
  })}</ul>
  ${sessions.length > shown && html`<div class="row"><${Button} onClick=${() => setShown(shown * 4)}>${t("sidebar.showMore")}<//></div>`}`;
}

function method({ method: kind, provider }) {
  return kind === "oauth" && provider ? t("account.sessions.byProvider", { provider }) : t(`account.sessions.methods.${kind}`);
}

function browserName(agent) {
  const browser = BROWSERS.find(([mark]) => agent.includes(mark))?.[1];
  const system = SYSTEMS.find(([mark]) => agent.includes(mark))?.[1];
  if (!browser) return agent.slice(0, 60) || t("account.sessions.unknown");
  return system ? t("account.sessions.browserOn", { browser, system }) : browser;
}
