/** The chat: `/` for a new one, `/c/{id}` for a stored one. */
import { post } from "#app/core/api";
import { computed, html, useEffect, useMemo, useRef, useSignal } from "#app/core/html";
import { t } from "#app/core/messages";
import { location, navigate } from "#app/core/router";
import { config } from "#app/core/session";
import { shortcut } from "#app/core/shortcuts";
import { useTitle } from "#app/core/title";
import { toast } from "#app/core/toasts";
import { Chip, ErrorNote, Skeleton } from "#app/ui/index";
import { Announcer } from "#app/chat/announcer";
import { ask, stop } from "#app/chat/asking";
import { Attachments } from "#app/chat/attachments";
import { ChatStore } from "#app/chat/chat_store";
import { makeCommands, filesOf } from "#app/chat/commands";
import { Composer } from "#app/chat/composer";
import { lastCodeBlock, readableText } from "#app/chat/content";
import { findModel, loadModels, models, rememberModel, usualModel } from "#app/chat/models";
import { ModelPicker } from "#app/chat/model_picker";
import { Transcript } from "#app/chat/transcript";

const NEW_DRAFT = "new";
const UNTITLED = "New Chat";

/** Store of a chat that this tab has just begun, until its view takes it. */
let begun = null;

/** The view. @param {{params: {id?: string}}} props */
export default function ChatView({ params }) {
  const soughtId = location.value.query.message;
  const store = useStore(params.id, soughtId);
  const field = useRef(null);
  const freshId = useSignal(null);
  const attachments = useMemo(() => new Attachments(), [params.id]);
  const chosen = { modelId: useSignal(""), toolIds: useSignal([]), filterIds: useSignal([]) };
  const isRunning = useComputedOf(store, () => store?.ids.value.some((id) => store.message(id).value.done === false) ?? false);
  useEffect(() => void loadModels(), []);
  useEffect(() => {
    freshId.value = begun?.freshId ?? null;
    begun = null;
    chosen.modelId.value = "";
  }, [params.id]);
  const model = useModel(store, chosen);
  const choices = () => ({ model, files: [], toolIds: chosen.toolIds.peek(), filterIds: knownFilters(model, chosen) });
  const current = useRef(null);
  current.current = { store, choices, model, field };
  const view = useMemo(() => viewActions(current, freshId), [store]);
  const commands = useMemo(() => store && makeCommands(store, () => current.current.choices(), view), [store]);
  useTitle(titleOf(store?.head.value));
  useShortcuts(current);
  const isEmpty = store === null || (store.head.value !== null && store.ids.value.length === 0);
  return html`<div class="chat ${isEmpty ? "empty" : ""}" onDragOver=${allowFiles} onDrop=${(event) => dropped(event, attachments)}>
    <${ChatHeader} store=${store} model=${model} onChoose=${(id) => {
      chosen.modelId.value = id;
      rememberModel(id);
    }} />
    <${ChatBody} store=${store} commands=${commands} freshId=${freshId.value} soughtId=${soughtId} isRunning=${isRunning} isEmpty=${isEmpty} />
    ${store && html`<${Announcer} store=${store} isRunning=${isRunning} />`}
    <${Composer} draftKey=${params.id ?? NEW_DRAFT} model=${model} attachments=${attachments} chosen=${chosen} field=${field}
      isRunning=${isRunning} onSend=${view.send} onStop=${() => stop(store.id)} onEditLast=${editLast} />
  </div>`;
}

function useStore(id, soughtId) {
  const store = useMemo(() => {
    if (id === undefined) return null;
    if (begun?.store.id === id) return begun.store;
    return new ChatStore(id);
  }, [id]);
  useEffect(() => {
    if (store === null) return undefined;
    // What was begun here is known, and has events that are not stored.
    if (store.head.peek() === null && !soughtId) store.load();
    return () => store.close();
  }, [store]);
  useEffect(() => {
    if (store !== null && soughtId) store.loadUntil(soughtId);
  }, [store, soughtId]);
  return store;
}

function useModel(store, chosen) {
  return useComputedOf(store, () => {
    const picked = findModel(chosen.modelId.value);
    if (picked || models.value === null) return picked;
    const answers = (store?.ids.value ?? []).map((id) => store.message(id).value).filter((message) => message.role === "assistant");
    return usualModel([answers.at(-1)?.model, ...(store?.head.value?.chat.models ?? [])]);
  });
}

/** Returns a value of a store; the view renders when it changes, not when what it is made of does. */
function useComputedOf(store, compute) {
  return useMemo(() => computed(compute), [store]).value;
}

function knownFilters(model, chosen) {
  const known = new Set((model?.filters ?? []).map((each) => each.id));
  return chosen.filterIds.peek().filter((id) => known.has(id));
}

/** What the composer, follow-up questions and embeds do. */
function viewActions(current, freshId) {
  const send = async (draft) => {
    const { store, choices } = current.current;
    const known = store === null ? [] : filesOf(store);
    const files = [...known, ...draft.files.filter((file) => file.type !== "image")];
    const own = { ...choices(), files: unique(files) };
    const target = store ?? (await begin(own.model));
    const leaf = target.ids.peek().at(-1) ?? null;
    const done = ask(target, leaf, draft, own, leaf === null);
    freshId.value = target.ids.peek().at(-1);
    if (store === null) {
      begun = { store: target, freshId: freshId.peek() };
      navigate(`/c/${encodeURIComponent(target.id)}`);
    }
    await done;
  };
  return {
    send,
    asked: (id) => (freshId.value = id),
    fill: (text) => {
      const field = current.current.field.current;
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    },
    submit: (text) => send({ text, files: [] }).catch((error) => toast("error", t("chat.commandFailed", { reason: error.message }))),
  };
}

/** Makes a chat, in the folder that the address names. */
async function begin(model) {
  const folder = location.peek().query.folder;
  const made = await post("/api/v1/chats/new", { chat: { models: [model.id] }, ...(folder ? { folder_id: folder } : {}) });
  const store = new ChatStore(made.id);
  store.head.value = made;
  return store;
}

function unique(files) {
  const found = new Map(files.map(({ type, id, name }) => [`${type} ${id}`, { type, id, name }]));
  return [...found.values()];
}

function ChatHeader({ store, model, onChoose }) {
  const head = store?.head.value;
  return html`<header class="chat-header">
    <h1 class="chat-title" dir="auto">${titleOf(head)}</h1>
    <${ModelPicker} model=${model} onChoose=${onChoose} />
    ${head?.meta?.tags?.length > 0 && html`<ul class="chat-tags" aria-label=${t("chat.tags")}>
      ${head.meta.tags.map((tag) => html`<li key=${tag}><${Chip} icon="tag">${tag}<//></li>`)}</ul>`}
  </header>`;
}

/** Returns the title of a chat; the gateway names a chat without one in English. */
function titleOf(head) {
  return !head?.title || head.title === UNTITLED ? t("chat.newChat") : head.title;
}

function ChatBody({ store, commands, freshId, soughtId, isRunning, isEmpty }) {
  if (store?.error.value) return html`<div class="view"><${ErrorNote} error=${store.error.value} retry=${() => store.load()} /></div>`;
  if (isEmpty) return html`<div class="welcome"><p class="welcome-text">${t("chat.welcome", { name: config.value.name })}</p></div>`;
  if (store.head.value === null) return html`<div class="view"><${Skeleton} lines=${6} /></div>`;
  return html`<${Transcript} key=${store.id} store=${store} commands=${commands} freshId=${freshId} soughtId=${soughtId}
    isRunning=${isRunning} />`;
}

function useShortcuts(current) {
  useEffect(() => {
    const copyCode = () => {
      const answer = current.current.store?.messages().findLast((message) => message.role === "assistant");
      const code = lastCodeBlock(readableText(answer?.content));
      if (code === null) return false;
      navigator.clipboard.writeText(code).then(() => toast("success", t("common.copied")));
      return true;
    };
    const removers = [
      shortcut("mod+shift+o", () => navigate("/"), "chat.newChat"),
      shortcut("mod+shift+;", copyCode, "chat.copyCode"),
    ];
    return () => removers.forEach((remove) => remove());
  }, []);
}

/** Opens the editor of the last question. */
function editLast() {
  [...document.querySelectorAll(".message.question .edit")].at(-1)?.click();
}

function allowFiles(event) {
  if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
}

function dropped(event, attachments) {
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  attachments.add(event.dataTransfer.files);
}
