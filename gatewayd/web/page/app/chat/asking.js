/**
 * Requests that begin, repeat, continue and stop answers.
 *
 * An answer is made in the background by the gateway: the request returns at once, and events bring the text.
 */
import { post } from "#app/core/api";
import { announceChange } from "#app/chat/tabs";

/** Names this tab to the gateway; calls go to all sessions of the account. */
const SESSION_ID = crypto.randomUUID();

/**
 * What a question goes to, and with what.
 * @typedef {{model: object, files: object[], toolIds: string[], filterIds: string[]}} Choices
 */

/**
 * Ask a question after a message, or at the beginning of a new chat; the branch shows it at once.
 * @param {import("#app/chat/chat_store").ChatStore} store
 * @param {string|null} parentId
 * @param {{text: string, files: object[]}} draft
 * @param {Choices} choices
 * @param {boolean} isFirst whether the chat still needs a title
 */
export async function ask(store, parentId, draft, choices, isFirst) {
  const question = {
    id: crypto.randomUUID(),
    parentId,
    childrenIds: [],
    role: "user",
    content: draft.text,
    timestamp: seconds(),
    models: [choices.model.id],
    ...(draft.files.length > 0 ? { files: draft.files } : {}),
  };
  await run(store, [question], question.id, choices, { user_message: question }, isFirst);
}

/**
 * Answer a question once more, as another branch.
 * @param {import("#app/chat/chat_store").ChatStore} store
 * @param {string} questionId
 * @param {Choices} choices
 */
export async function regenerate(store, questionId, choices) {
  await run(store, [], questionId, choices, { user_message: { id: questionId } }, false);
}

/**
 * Stop the answers of a chat.
 * @param {string} chatId
 */
export async function stop(chatId) {
  await post(`/api/tasks/chat/${encodeURIComponent(chatId)}/stop`, {});
}

async function run(store, before, questionId, choices, options, isFirst) {
  const answer = {
    id: crypto.randomUUID(),
    parentId: questionId,
    childrenIds: [],
    role: "assistant",
    content: "",
    done: false,
    timestamp: seconds(),
    model: choices.model.id,
    modelName: choices.model.name,
  };
  const undo = store.append([...before, answer]);
  try {
    await post("/api/chat/completions", body(store.id, choices, { ...options, id: answer.id }, isFirst));
    announceChange(store.id);
  } catch (error) {
    undo();
    throw error;
  }
}

function body(chatId, { model, files, toolIds, filterIds }, options, isFirst) {
  return {
    model: model.id,
    stream: true,
    chat_id: chatId,
    session_id: SESSION_ID,
    files,
    ...(toolIds.length > 0 ? { tool_ids: toolIds } : {}),
    ...(filterIds.length > 0 ? { filter_ids: filterIds } : {}),
    background_tasks: { title_generation: isFirst, tags_generation: isFirst, follow_up_generation: true },
    ...options,
  };
}

function seconds() {
  return Math.floor(Date.now() / 1000);
}
