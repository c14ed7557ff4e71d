/**
 * What can be done with several accounts at once.
 */
import { post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { html } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { me } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { Button, Menu } from "#app/ui/index";

/**
 * The number of chosen accounts, and the verbs for them.
 * @param {{users: object[], groups: object[], clear: () => void, reload: () => Promise<void>,
 *   fail: (error: unknown) => void}} props `users` are the chosen accounts
 */
export function UserSelection({ users, groups, clear, reload, fail }) {
  if (users.length === 0) return null;
  const attempt = (action) => async () => {
    fail(null);
    try {
      if ((await action()) === false) return;
      clear();
    } catch (error) {
      fail(error);
    }
    await reload();
  };
  const ids = users.map((user) => user.id);
  const join = (group) => async () => {
    await post(`/api/v1/groups/id/${encodeURIComponent(group.id)}/users/add`, { user_ids: ids });
    toast("success", plural("account.users.addedTo", users.length, { group: group.name }));
  };
  const turn = (active) => async () => {
    const others = users.filter((user) => user.id !== me.value.id && user.active !== active);
    const question = { title: plural("account.users.deactivateAll", others.length), text: t("account.users.deactivateAllText"),
      verb: t("account.users.deactivate"), danger: true };
    if (!active && !(await confirmDialog(question))) return false;
    for (const user of others) await post(`/api/v1/users/${encodeURIComponent(user.id)}/update`, { active });
    return true;
  };
  const items = [
    ...groups.map((group) => ({ label: t("account.users.addTo", { group: group.name }), icon: "users", run: attempt(join(group)) })),
    ...(groups.length > 0 ? [null] : []),
    { label: t("account.users.activate"), icon: "user-check", run: attempt(turn(true)) },
    { label: t("account.users.deactivate"), icon: "user-x", run: attempt(turn(false)), danger: true },
  ];
  return html`<div class="row selection" role="region" aria-label=${t("account.users.selection")}>
    <p role="status">${plural("account.users.selected", users.length)}</p>
    <${Menu} label=${t("account.actions")} icon="list-checks" text=${t("account.actions")} items=${items} />
    <${Button} kind="plain" onClick=${clear}>${t("account.users.selectNone")}<//>
  </div>`;
}
