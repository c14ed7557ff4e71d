/**
 * What the address of the sign-in says: where to go afterwards, and the token of a link.
 */

const NAMED = /^#(link|invitation)=/;
const TOKEN = /^#(link|invitation)=([\w-]{1,200})$/;

/**
 * Returns a path of this page to go to after the sign-in; "/" for anything else.
 * @param {string | undefined} wanted
 */
export function returnPath(wanted) {
  if (!wanted || !/^\/(?![/\\])/.test(wanted) || /[\u0000-\u001f\u007f\\]/.test(wanted)) return "/";
  const url = new URL(wanted, window.location.origin);
  if (url.origin !== window.location.origin || url.pathname === "/auth") return "/";
  return url.pathname + url.search;
}

/**
 * Takes the token of a link out of the address, so that neither the history nor a copied address has it.
 * @returns {{kind: "link" | "invitation", token: string} | null}
 */
export function takeToken() {
  const found = TOKEN.exec(window.location.hash);
  if (NAMED.test(window.location.hash)) {
    history.replaceState(null, "", window.location.pathname + window.location.search);
  }
  return found ? { kind: found[1], token: found[2] } : null;
}

/**
 * Returns the address at which the sign-in by a provider begins.
 * @param {string} provider
 * @param {string} path where to go afterwards
 */
export function providerAddress(provider, path) {
  return `/oauth/${encodeURIComponent(provider)}/login?redirect=${encodeURIComponent(path)}`;
}
