/**
 * Stand-ins for what browsers give to pages over HTTPS (and of this machine) alone, so that a gateway without TLS in a
 * closed network works too. The first import of the page.
 */

/** Whether tabs can agree on one of them; without it each tab stands alone. */
export const canShare = "locks" in navigator;

if (!crypto.randomUUID) crypto.randomUUID = makeId;
if (!navigator.clipboard) Object.defineProperty(navigator, "clipboard", { value: { writeText } });
if (!canShare) Object.defineProperty(navigator, "locks", { value: { request } });

/** Returns a random id (RFC 9562, 5.4). */
function makeId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Copies a text by a selection, as pages did before there was a clipboard for them. */
async function writeText(text) {
  const field = document.createElement("textarea");
  const focused = document.activeElement;
  field.value = text;
  field.className = "hidden";
  // What lies behind an open dialog takes no focus.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  if (!isCopied) throw new DOMException("cannot copy", "NotAllowedError");
}

const held = new Map();

/** Holds a lock within this tab (Web Locks API, request). */
async function request(name, options, work = options) {
  if (options.ifAvailable && held.has(name)) return work(null);
  const before = held.get(name) ?? Promise.resolve();
  const done = before.then(() => work({ name, mode: "exclusive" }));
  const settled = done.then(
    () => {},
    () => {},
  );
  held.set(name, settled);
  try {
    return await done;
  } finally {
    if (held.get(name) === settled) held.delete(name);
  }
}
