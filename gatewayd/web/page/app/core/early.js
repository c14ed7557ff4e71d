/**
 * Asks who is signed in while the other modules are still on their way. It is a script of the document itself, and
 * imports nothing.
 */

/** Requests that were sent ahead, by their path; whoever wants an answer takes it, once. */
export const early = new Map();

for (const path of ["/api/v1/auths/", "/api/config"]) {
  const reply = fetch(path, { credentials: "same-origin", headers: { Accept: "application/json" } });
  // Who takes it hears of the failure.
  reply.catch(() => {});
  early.set(path, reply);
}
