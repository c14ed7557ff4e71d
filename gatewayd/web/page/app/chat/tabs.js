/** Word to the other tabs of the browser: a chat was changed, a call was answered. */

const channel = new BroadcastChannel("gatewayd-chats");
const handlers = { changed: new Set(), answered: new Set() };

channel.addEventListener("message", ({ data }) => {
  for (const handler of handlers[data?.kind] ?? []) handler(data.id);
});

/**
 * Tell the other tabs that a chat was changed in a way that no event tells.
 * @param {string} chatId
 */
export function announceChange(chatId) {
  channel.postMessage({ kind: "changed", id: chatId });
}

/**
 * Tell the other tabs that a call was answered.
 * @param {string} callId
 */
export function announceAnswer(callId) {
  channel.postMessage({ kind: "answered", id: callId });
}

/**
 * Call a function with the id of each chat that another tab changed; return how to stop.
 * @param {(chatId: string) => void} handler
 */
export function onChange(handler) {
  handlers.changed.add(handler);
  return () => handlers.changed.delete(handler);
}

/**
 * Call a function with the id of each call that another tab answered; return how to stop.
 * @param {(callId: string) => void} handler
 */
export function onAnswer(handler) {
  handlers.answered.add(handler);
  return () => handlers.answered.delete(handler);
}
