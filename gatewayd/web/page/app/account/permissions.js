/**
 * The view `/admin/permissions`: the default permissions of accounts with the role user.
 */
import { AdminFrame } from "#app/account/frames";
import { useAction } from "#app/ui/forms";
import { useResource } from "#app/ui/resource";
import { PermissionTree, SaveBar, isSameTree } from "#app/account/permission_tree";
import { post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { toast } from "#app/core/toasts";
import { ErrorNote, Skeleton } from "#app/ui/index";

const PATH = "/api/v1/users/default/permissions";

/** The view. */
export default function PermissionsView() {
  const stored = useResource(PATH);
  const initial = useResource(`${PATH}/defaults`);
  const [draft, setDraft] = useState(null);
  const { run, busy, error } = useAction(async () => {
    stored.setValue(await post(PATH, draft));
    setDraft(null);
    toast("success", t("account.permissions.saved"));
  });
  const tree = draft ?? stored.value;
  const isChanged = draft !== null && !isSameTree(draft, stored.value);
  return html`<${AdminFrame} title=${t("account.permissions.title")}>
    <p>${t("account.permissions.text")}</p>
    <${ErrorNote} error=${stored.error ?? initial.error ?? error} />
    ${tree && initial.value
      ? html`<${PermissionTree} own=${tree} inherited=${initial.value} isGroup=${false} onChange=${setDraft} />`
      : html`<${Skeleton} lines=${8} />`}
    <${SaveBar} isChanged=${isChanged} busy=${busy} save=${run} drop=${() => setDraft(null)} />
  <//>`;
}
