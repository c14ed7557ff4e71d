/** What the buttons of a chat do. */
import { del, get, post } from "#app/core/api";
import { confirmDialog } from "#app/core/dialogs";
import { plural, t } from "#app/core/messages";
import { can } from "#app/core/session";
import { toast } from "#app/core/toasts";
import { ask, regenerate } from "#app/chat/asking";
import { plainText } from "#app/chat/content";
import { KeptRecord } from "#app/chat/drafts";
import { announceChange } from "#app/chat/tabs";

const places = new KeptRecord(localStorage, "gatewayd-branches");

/**
 * Returns the commands of a chat.
 * @param {import("#app/chat/chat_store").ChatStore} store
 * @param {() => object} choices returns the model, files, tools and filters of the next request
 * @param {{asked: (answerId: string) => void, fill: (text: string) => void, submit: (text: string) => void}} view
 */
export function makeCommands(store, choices, view) {
  const attempt = (work) => async (...given) => {
    try {
      await work(...given);
    } catch (error) {
      toast("error", t("chat.commandFailed", { reason: error.message }));
    }
  };
  const tell = () => view.asked(store.ids.peek().at(-1));
  return {
    fill: view.fill,
    submit: view.submit,
    edit: async (shown, text) => {
      const files = shown.files ?? [];
      const done = ask(store, shown.parentId ?? null, { text, files }, withFiles(choices(), files), false);
      tell();
      await done;
    },
    rewrite: async (shown, text) => {
      await store.change({ history: { messages: { [shown.id]: { content: text } } } });
      store.patch(shown.id, { content: text });
    },
    regenerate: attempt(async (shown) => {
      const done = regenerate(store, shown.parentId, withFiles(choices(), filesOf(store)));
      tell();
      await done;
    }),
    continueAnswer: () => view.submit(t("chat.continueText")),
    favourite: attempt((shown) => setFavourite(store, shown)),
    remove: can("chat.delete_message") ? attempt((shown) => removeBranch(store, shown)) : undefined,
    switchTo: attempt((siblingId) => switchBranch(store, siblingId)),
    runAction: attempt((shown, action) => runAction(store, shown, action)),
  };
}

/** Returns the files and collections of the questions of the branch, each once. */
export function filesOf(store) {
  const found = new Map();
  for (const message of store.messages()) {
    for (const file of message.role === "user" && Array.isArray(message.files) ? message.files : []) {
      if (["file", "collection"].includes(file?.type)) found.set(`${file.type} ${file.id}`, { type: file.type, id: file.id, name: file.name });
    }
  }
  return [...found.values()];
}

function withFiles(chosen, files) {
  return { ...chosen, files: files.filter((file) => file.type !== "image").map(({ type, id, name }) => ({ type, id, name })) };
}

async function setFavourite(store, shown) {
  const favorite = shown.favorite !== true;
  store.patch(shown.id, { favorite });
  try {
    await store.change({ history: { messages: { [shown.id]: { favorite } } } });
  } catch (error) {
    store.patch(shown.id, { favorite: !favorite });
    throw error;
  }
}

async function removeBranch(store, shown) {
  const { messages } = await get(`${address(store)}/branch?through=${encodeURIComponent(shown.id)}`);
  const known = messages.find((message) => message.id === shown.id) ?? shown;
  const below = known.descendantCount ?? 0;
  const following = store.ids.peek().length - 1 - store.ids.peek().indexOf(shown.id);
  const hidden = Math.max(0, below - following);
  const question = {
    title: t("chat.deleteTitle"),
    text: [plural("chat.deleteText", below + 1), hidden > 0 && plural("chat.deleteHidden", hidden)].filter(Boolean).join(" "),
    verb: plural("chat.deleteVerb", below + 1),
    danger: true,
  };
  if (!(await confirmDialog(question))) return;
  await store.writing(() => del(`${address(store)}/branch/${encodeURIComponent(shown.id)}`));
  await store.switchTo(shown.parentId ?? undefined);
}

async function switchBranch(store, siblingId) {
  const leaf = store.ids.peek().at(-1);
  const sibling = store.messages().find((message) => message.siblingIds?.includes(siblingId));
  if (sibling) places.set(sibling.id, leaf);
  const remembered = places.get(siblingId);
  if (remembered) {
    await store.switchTo(remembered);
    if (store.error.peek() === null && store.ids.peek().includes(siblingId)) return;
  }
  await store.switchTo(siblingId);
}

async function runAction(store, shown, action) {
  const messages = store.messages().map(({ id, role, content }) => ({ id, role, content: plainText(content) }));
  const body = { model: shown.model, messages, chat_id: store.id, id: shown.id, session_id: crypto.randomUUID() };
  await post(`/api/chat/actions/${encodeURIComponent(action.id)}`, body);
  announceChange(store.id);
  await store.load();
}

function address(store) {
  return `/api/v1/chats/${encodeURIComponent(store.id)}`;
}
