/**
 * Which addresses in a text may be followed and which pictures may be shown.
 */
const FOLLOWED = new Set(["http:", "https:", "mailto:"]);
const OWN_PATH = /^\/(?![/\\])/;
/** Addresses of this page that begin or end a session: a text of somebody else must not lead there. */
const SESSIONS = /^\/+(?:oauth|api\/v1\/auths)(?:\/|$)/i;
const PICTURE_DATA = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]*$/i;

/**
 * Returns the address that a link may lead to, or null. Addresses with user and password are refused: they make one
 * host look like another.
 * @param {string} text
 * @returns {URL | null}
 */
export function safeLink(text) {
  const address = parse(text);
  if (!address || !FOLLOWED.has(address.protocol) || isOfSessions(address)) return null;
  return address.username || address.password ? null : address;
}

/**
 * Returns how a picture may be shown: at once ("own"), after a click ("foreign"), or not at all (null).
 * @param {string} text the address
 * @returns {{kind: "own" | "foreign", address: string, host: string} | null}
 */
export function sanitiseImage(text) {
  if (PICTURE_DATA.test(text)) return { kind: "own", address: text, host: "" };
  const address = safeLink(text);
  if (!address || address.protocol === "mailto:") return null;
  const kind = address.origin === location.origin ? "own" : "foreign";
  return { kind, address: address.href, host: address.host };
}

/** Returns whether an address belongs to the sign-in of this gateway, however it is written. */
function isOfSessions(address) {
  if (address.origin !== location.origin) return false;
  try {
    return SESSIONS.test(decodeURIComponent(address.pathname));
  } catch {
    return true;
  }
}

function parse(text) {
  try {
    const address = new URL(text, OWN_PATH.test(text) ? location.origin : undefined);
    // A browser drops tabs and line ends, which makes another host of "/\t/host".
    return OWN_PATH.test(text) && address.origin !== location.origin ? null : address;
  } catch {
    return null;
  }
}
