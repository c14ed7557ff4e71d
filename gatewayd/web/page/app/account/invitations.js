/**
 * Invitations: a new one, whose link is shown once, and the list of those that nobody has used.
 */
import { Form, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { moment } from "#app/account/keys";
import { DialogButtons, GroupChoice, roleOptions } from "#app/account/user_dialogs";
import { del, post } from "#app/core/api";
import { openDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { Button, Chip, CopyButton, ErrorNote, IconButton, Select, Table, TextField } from "#app/ui/index";

const PATH = "/api/v1/auths/invitations";
const DAY_SECONDS = 86400;
const DAYS = [1, 7, 30];

/** Asks for an invitation and shows its link; resolves to whether one was made. @param {object[]} groups */
export async function inviteSomebody(groups) {
  const made = await openDialog(NewInvitation, { groups });
  if (made) await openDialog(InvitationLink, { made });
  return Boolean(made);
}

function NewInvitation({ groups, titleId, close }) {
  const [form, setForm] = useState({ email: "", role: "user", days: "7" });
  const [chosen, setChosen] = useState(new Set());
  const set = (name) => (value) => setForm((before) => ({ ...before, [name]: value }));
  const { run, busy, error } = useAction(async () => {
    const { email, role, days } = form;
    const body = { email: email.trim() || null, role, group_ids: [...chosen], expires_in: Number(days) * DAY_SECONDS };
    close(await post(PATH, body));
  });
  const days = DAYS.map((count) => ({ value: String(count), label: plural("account.keys.days", count) }));
  return html`<h2 id=${titleId}>${t("account.users.invite")}</h2>
    <${Form} onSubmit=${run}>
      <${TextField} label=${t("account.users.email")} type="email" dir="ltr" value=${form.email} onInput=${set("email")} autofocus
        help=${t("account.invitations.emailHelp")} error=${fieldProblem(error, "email")} />
      <${Select} label=${t("account.users.role")} value=${form.role} options=${roleOptions()} onChange=${set("role")} />
      <${GroupChoice} groups=${groups} chosen=${chosen} onChange=${setChosen} />
      <${Select} label=${t("account.keys.expires")} value=${form.days} options=${days} onChange=${set("days")} />
      <${ErrorNote} error=${otherProblem(error, "email")} />
      <${DialogButtons} close=${close} verb=${t("account.users.invite")} busy=${busy} />
    <//>`;
}

function InvitationLink({ made, titleId, close }) {
  return html`<h2 id=${titleId}>${t("account.invitations.ready")}</h2>
    <p>${t("account.invitations.readyText")}</p>
    <div class="shell-line"><code dir="ltr" data-testid="invitation-link">${made.url}</code>
      <${CopyButton} text=${made.url} label=${t("account.invitations.copy")} /></div>
    <div class="dialog-buttons"><${Button} kind="primary" onClick=${() => close(true)}>${t("common.close")}<//></div>`;
}

/** The invitations that nobody has used. @param {{rows: object[], groups: object[], reload: () => void}} props */
export function Invitations({ rows, groups, reload }) {
  const names = new Map(groups.map((group) => [group.id, group.name]));
  const { run, error } = useAction(async (row) => {
    await del(`${PATH}/${encodeURIComponent(row.id)}`);
    await reload();
  });
  const address = (row) => row.email || t("account.invitations.anybody");
  const columns = [
    { key: "email", label: t("account.users.email"), sort: address, cell: (row) => html`<bdi>${address(row)}</bdi>` },
    { key: "role", label: t("account.users.role"), cell: (row) => t(`account.roles.${row.role}`) },
    { key: "groups", label: t("account.users.groups"), cell: (row) => html`<span class="row">${row.group_ids.map((id) =>
      html`<${Chip} key=${id}>${names.get(id) ?? id}<//>`)}</span>` },
    { key: "expires", label: t("account.keys.expires"), sort: (row) => row.expires_at, cell: (row) => moment(row.expires_at) },
    { key: "verbs", label: t("account.actions"), hideLabel: true, cell: (row) => html`<${IconButton} icon="trash-2"
      label=${t("account.invitations.revoke", { email: address(row) })} onClick=${() => run(row)} />` },
  ];
  return html`<${ErrorNote} error=${error} />
    <${Table} label=${t("account.invitations.title")} rows=${rows} columns=${columns} rowName=${address} />`;
}
