/**
 * Who is signed in, what they may do, and the public configuration of the gateway.
 */
import { signal } from "@preact/signals";
import { ApiError, get, onUnauthenticated, post } from "#app/core/api";

/** The account of GET /api/v1/auths/ without its token; null when nobody is signed in. */
export const me = signal(null);
/** The answer of GET /api/config. */
export const config = signal({ name: "", features: {}, oauth: { providers: {} } });

/** Whether somebody chose to sign out and nobody has signed in since, so that nothing signs them in by itself. */
export const hasSignedOut = signal(false);

/** How the keys in localStorage begin that hold something of an account. */
const ACCOUNT_KEYS = "gatewayd-";
const SIGNED_IN = "signed in";
const SIGNED_OUT = "signed out";
const channel = new BroadcastChannel("gatewayd-session");
channel.onmessage = ({ data }) => {
  if (data === SIGNED_OUT) leave();
  else loadSession().catch(reportError);
};
let held = 0;
/** Id of the account that this page was last shown to, also after it signed out; null at first. */
let lastId = null;
onUnauthenticated(() => {
  if (held === 0) me.value = null;
});

function leave() {
  hasSignedOut.value = true;
  me.value = null;
  forget();
}

/** Removes what the browser keeps of the account, such as drafts; the settings of the browser itself stay. */
function forget() {
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith(ACCOUNT_KEYS)) localStorage.removeItem(key);
  }
}

/**
 * Does something that replaces the session; until it is done a refused request is no sign that somebody signed out.
 * @param {() => Promise<void>} replace
 */
export async function replaceSession(replace) {
  held += 1;
  try {
    await replace();
  } finally {
    held -= 1;
    await loadSession();
  }
}

/** Asks the gateway anew who is signed in. */
export async function loadSession() {
  const [account, settings] = await Promise.all([findAccount(), get("/api/config")]);
  config.value = settings;
  // Nothing of one account stays in the page of another, be it in a module that has no place on the screen.
  if (account && lastId !== null && account.id !== lastId) {
    window.location.assign("/");
    return;
  }
  me.value = account;
  if (account === null) return;
  lastId = account.id;
  hasSignedOut.value = false;
}

async function findAccount() {
  try {
    const { token: _, ...account } = await get("/api/v1/auths/");
    return account;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

/** Tells the other tabs that somebody signed in, and reads the session. */
export async function signedIn() {
  await loadSession();
  channel.postMessage(SIGNED_IN);
}

/** Ends the session, in all tabs. */
export async function signOut() {
  const reply = await post("/api/v1/auths/signout");
  channel.postMessage(SIGNED_OUT);
  leave();
  if (reply?.redirect_url) window.location.assign(reply.redirect_url);
}

/**
 * Returns whether the account has a permission, named by its path in the tree, `features.api_keys`.
 * @param {string} path
 */
export function can(path) {
  if (isAdmin()) return true;
  return path.split(".").reduce((tree, name) => tree?.[name], me.value?.permissions) === true;
}

/** Returns whether the account is an administrator. */
export function isAdmin() {
  return me.value?.role === "admin";
}
