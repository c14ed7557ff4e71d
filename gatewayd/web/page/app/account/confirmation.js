/**
 * Changes that need a fresh session: the gateway asks for the password of an older one.
 */
import { ApiError, post } from "#app/core/api";
import { promptDialog } from "#app/core/dialogs";
import { t } from "#app/core/messages";

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
    const password = await askPassword();
    if (!password) throw error;
    await post("/api/v1/auths/confirm", { password });
    return action();
  }
}

/** Asks for the password of the account. @returns {Promise<string | null>} */
export function askPassword() {
  const question = { title: t("account.identities.confirmTitle"), text: t("account.identities.confirmText"), masked: true };
  return promptDialog({ ...question, verb: t("account.identities.confirm") });
}
