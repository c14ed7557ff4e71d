/**
 * Changes that need a fresh session: the gateway asks for the password of an older one.
 */
import { ApiError, get, post } from "#app/core/api";
import { confirmDialog, promptDialog } from "#app/core/dialogs";
import { t } from "#app/core/messages";
import { signOut } from "#app/core/session";

const PATH = "/api/v1/auths/confirm";

/**
 * Does something that needs a fresh session; asks for the password when the gateway says so.
 * @template Result
 * @param {() => Promise<Result>} action
 * @returns {Promise<Result>}
 */
export async function confirmed(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "confirmation_needed") throw error;
    if (!(await confirmSession())) throw error;
    return action();
  }
}

/** Makes the session fresh, by the password where it is needed; resolves to whether it is. @returns {Promise<boolean>} */
export async function confirmSession() {
  const state = await get(PATH);
  if (state.is_fresh) return true;
  const title = t("account.identities.confirmTitle");
  if (!state.has_password) {
    const question = { title, text: t("account.identities.signInAgain"), verb: t("signin.signOut") };
    if (await confirmDialog(question)) await signOut();
    return false;
  }
  const text = t("account.identities.confirmText");
  const password = await promptDialog({ title, text, masked: true, verb: t("account.identities.confirm") });
  if (!password) return false;
  await post(PATH, { password });
  return true;
}
