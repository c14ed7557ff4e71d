/**
 * One group: its name, its members and who added them, its permissions, and its deletion.
 */
import { AdminFrame, Section } from "#app/account/frames";
import { Form, fieldProblem, otherProblem, useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { Members } from "#app/account/members";
import { PermissionTree, SaveBar, isSameTree } from "#app/account/permission_tree";
import { del, post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { Link, navigate } from "#app/core/router";
import { toast } from "#app/core/toasts";
import { Button, ErrorNote, Icon, Skeleton, Tabs, TextArea, TextField } from "#app/ui/index";

/** The group. @param {{id: string}} props */
export function GroupDetail({ id }) {
  const path = `/api/v1/groups/id/${encodeURIComponent(id)}`;
  const group = useResource(path);
  const [tab, setTab] = useState("members");
  const tabs = [
    { id: "members", label: t("account.groups.members"), content: () => html`<${Members} path=${path} />` },
    { id: "permissions", label: t("account.groups.permissions"), content: () => html`<${GroupPermissions} path=${path} group=${group} />` },
    { id: "general", label: t("account.groups.general"), content: () => html`<${GroupGeneral} path=${path} group=${group} />` },
  ];
  const back = html`<${Link} class="button plain mirrored" href="/admin/groups"><${Icon} name="arrow-left" />${t("account.groups.all")}<//>`;
  return html`<${AdminFrame} title=${group.value?.name ?? t("account.groups.title")} actions=${back}>
    <${ErrorNote} error=${group.error} retry=${group.reload} />
    ${group.value ? html`<${Tabs} label=${group.value.name} tabs=${tabs} value=${tab} onChange=${setTab} />` : !group.error && html`<${Skeleton} />`}
  <//>`;
}

function GroupPermissions({ path, group }) {
  const defaults = useResource("/api/v1/users/default/permissions");
  const [draft, setDraft] = useState(null);
  const { run, busy, error } = useAction(async () => {
    group.setValue(await post(`${path}/update`, { permissions: draft }));
    setDraft(null);
    toast("success", t("account.permissions.saved"));
  });
  const own = draft ?? group.value.permissions;
  const isChanged = draft !== null && !isSameTree(draft, group.value.permissions);
  return html`<div class="stack">
    <p>${t("account.groups.permissionsText")}</p>
    <${ErrorNote} error=${defaults.error ?? error} />
    ${defaults.value
      ? html`<${PermissionTree} own=${own} inherited=${defaults.value} isGroup=${true} onChange=${setDraft} />`
      : html`<${Skeleton} lines=${8} />`}
    <${SaveBar} isChanged=${isChanged} busy=${busy} save=${run} drop=${() => setDraft(null)} />
  </div>`;
}

function GroupGeneral({ path, group }) {
  const [name, setName] = useState(group.value.name);
  const [description, setDescription] = useState(group.value.description);
  const { run, busy, error } = useAction(async () => {
    group.setValue(await post(`${path}/update`, { name, description }));
    toast("success", t("account.groups.saved"));
  });
  const remove = useAction(async () => {
    const question = { title: t("account.groups.removeTitle", { name: group.value.name }), danger: true };
    const text = plural("account.groups.removeText", group.value.member_count);
    if (!(await confirmDialog({ ...question, text, verb: t("account.groups.remove") }))) return;
    await del(`${path}/delete`);
    navigate("/admin/groups", { replace: true });
  });
  return html`<div class="stack">
    <${Form} onSubmit=${run}>
      <${TextField} label=${t("account.groups.name")} value=${name} onInput=${setName} error=${fieldProblem(error, "name")} />
      <${TextArea} label=${t("account.groups.description")} value=${description} onInput=${setDescription}
        error=${fieldProblem(error, "description")} />
      <${ErrorNote} error=${otherProblem(error, "name", "description")} />
      <div class="row"><${Button} type="submit" kind="primary" busy=${busy}>${t("account.save")}<//></div>
    <//>
    <${Section} title=${t("account.groups.remove")} text=${plural("account.groups.removeText", group.value.member_count)}>
      <${ErrorNote} error=${remove.error} />
      <div class="row"><${Button} kind="danger" icon="trash-2" busy=${remove.busy} onClick=${remove.run}>${t("account.groups.remove")}<//></div>
    <//>
  </div>`;
}
