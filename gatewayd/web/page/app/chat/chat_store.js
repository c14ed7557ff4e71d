/**
 * One open chat: its branch in memory, kept in step by events.
 *
 * Every message is a signal of its own, so that a piece of an answer renders one message and nothing else. Pages of
 * the branch come from `GET /api/v1/chats/{id}/branch`; its `event_id` tells which events a page already has.
 */
import { get, post } from "#app/core/api";
import { batch, signal } from "#app/core/html";
import { onEvent } from "#app/core/events";
import { t } from "#app/core/messages";
import { toast } from "#app/core/toasts";
import { isAfter, isStored, reduceMessage } from "#app/chat/message_state";
import { onChange } from "#app/chat/tabs";

const PAGE_MESSAGES = 100;
const MAX_BUFFERED_EVENTS = 10_000;
/** Time in which changes by others are read anew together. */
const RELOAD_MS = 150;

/** The state of one chat. Its signals: `head`, `ids`, `hasEarlier`, `count`, `error`, `isLoading`. */
export class ChatStore {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.head = signal(null);
    this.ids = signal([]);
    this.hasEarlier = signal(false);
    this.count = signal(0);
    this.error = signal(null);
    this.isLoading = signal(false);
    this._messages = new Map();
    this._position = undefined;
    this._waiting = null;
    this._loads = 0;
    this._followsCurrent = true;
    this._own = 0;
    this._timer = 0;
    this._stops = [
      onEvent((event) => this._hear(event), { chatId: id }),
      onEvent((event) => event.data?.gap && this._reloadAll(), { type: "stream:opened" }),
      onChange((chatId) => chatId === id && this._reloadSoon()),
    ];
  }

  /** Stop listening. */
  close() {
    clearTimeout(this._timer);
    for (const stop of this._stops) stop();
  }

  /**
   * Return the signal of a message, or undefined.
   * @param {string} id
   */
  message(id) {
    return this._messages.get(id);
  }

  /** Return the messages that are loaded, oldest first. */
  messages() {
    return this.ids.peek().map((id) => this._messages.get(id).peek());
  }

  /** Return the newest message of the branch, or undefined. */
  leaf() {
    const id = this.ids.peek().at(-1);
    return id === undefined ? undefined : this._messages.get(id).peek();
  }

  /**
   * Load the newest page of a branch.
   * @param {string} [through] a message of the branch, the current one by default
   */
  async load(through) {
    const turn = ++this._loads;
    this._waiting ??= [];
    this.isLoading.value = true;
    if (through !== undefined) this._followsCurrent = false;
    try {
      const wanted = through ?? (this._followsCurrent ? undefined : this.ids.peek().at(-1));
      const page = await this._page({ through: wanted });
      if (turn === this._loads) this._show(page);
    } catch (error) {
      if (turn !== this._loads) return;
      this._waiting = null;
      this.error.value = error;
    } finally {
      if (turn === this._loads) this.isLoading.value = false;
    }
  }

  /**
   * Load the page before the oldest message; return how many messages came.
   * @returns {Promise<number>}
   */
  async loadEarlier() {
    const [first] = this.ids.peek();
    const leaf = this.ids.peek().at(-1);
    if (!this.hasEarlier.peek() || first === undefined) return 0;
    const page = await this._page({ through: leaf, before: first });
    if (this.ids.peek()[0] !== first) return 0;
    batch(() => {
      for (const message of page.messages) this._messages.set(message.id, signal(message));
      this.ids.value = [...page.messages.map((message) => message.id), ...this.ids.peek()];
      this.hasEarlier.value = page.has_earlier;
    });
    return page.messages.length;
  }

  /**
   * Load the branch of a message as far as that message, or the current branch if the message is gone.
   * @param {string} id
   */
  async loadUntil(id) {
    await this.load(id);
    if (this.error.peek()?.status === 404) {
      this._followsCurrent = true;
      await this.load();
      if (this.error.peek() === null) toast("info", t("sidebar.messageGone"));
      return;
    }
    while (this.error.peek() === null && !this.ids.peek().includes(id)) {
      if ((await this.loadEarlier()) === 0) return;
    }
  }

  /**
   * Make a branch the one that is shown and the current one of the chat.
   * @param {string} through
   */
  async switchTo(through) {
    await this.load(through);
    this._followsCurrent = true;
    const leaf = this.ids.peek().at(-1);
    if (this.error.peek() === null && leaf !== undefined) await this.change({ history: { currentId: leaf } });
  }

  /**
   * Put messages at the end of the branch, after one of it; what followed that one belongs to another branch.
   * @param {object[]} messages
   * @returns {() => void} takes them away again
   */
  append(messages) {
    const before = { ids: this.ids.peek(), hasEarlier: this.hasEarlier.peek() };
    batch(() => {
      const parent = messages[0].parentId;
      const ids = this.ids.peek();
      const kept = parent === null ? [] : ids.slice(0, ids.indexOf(parent) + 1);
      const first = this._messages.get(ids[kept.length])?.peek();
      const siblingIds = [...(first?.siblingIds ?? []), messages[0].id];
      messages.forEach((message, place) => {
        const own = place === 0 ? siblingIds : [message.id];
        this._messages.set(message.id, signal({ ...message, siblingIds: own, descendantCount: messages.length - place - 1 }));
      });
      for (const id of kept) this.patch(id, { descendantCount: this._messages.get(id).peek().descendantCount + messages.length });
      this.ids.value = [...kept, ...messages.map((message) => message.id)];
      if (parent === null) this.hasEarlier.value = false;
    });
    return () => batch(() => Object.keys(before).forEach((name) => (this[name].value = before[name])));
  }

  /**
   * Change members of a message on the page alone.
   * @param {string} id
   * @param {object} members
   */
  patch(id, members) {
    const found = this._messages.get(id);
    if (found) found.value = { ...found.peek(), ...members };
  }

  /**
   * Change the stored messages; other tabs and browsers hear of it.
   * @param {object} chat
   */
  async change(chat) {
    await this.writing(() => post(`/api/v1/chats/${encodeURIComponent(this.id)}/branch`, { chat }));
  }

  /**
   * Do something that the gateway announces as a change of messages; the page itself has it already.
   * @param {() => Promise<unknown>} work
   */
  async writing(work) {
    this._own++;
    try {
      await work();
    } catch (error) {
      this._own = Math.max(0, this._own - 1);
      throw error;
    }
  }

  _reloadSoon() {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => void this.load(), RELOAD_MS);
  }

  /** Read everything anew after events were lost, among them perhaps those about changes of this page. */
  _reloadAll() {
    this._own = 0;
    void this.load();
  }

  async _page(query) {
    const given = Object.entries({ limit: PAGE_MESSAGES, ...query }).filter(([, value]) => value !== undefined);
    return get(`/api/v1/chats/${encodeURIComponent(this.id)}/branch?${new URLSearchParams(given)}`);
  }

  _show(page) {
    batch(() => {
      const known = this._messages;
      this._messages = new Map();
      for (const message of page.messages) {
        const kept = known.get(message.id) ?? signal(message);
        kept.value = message;
        this._messages.set(message.id, kept);
      }
      const ids = page.messages.map((message) => message.id);
      if (ids.join() !== this.ids.peek().join()) this.ids.value = ids;
      this.hasEarlier.value = page.has_earlier;
      this.count.value = page.count;
      this.head.value = page.chat;
      this.error.value = null;
      this._position = page.event_id;
      const waiting = this._waiting ?? [];
      this._waiting = null;
      for (const event of waiting) this._apply(event);
    });
  }

  _hear(event) {
    if (this._waiting === null) this._apply(event);
    else if (this._waiting.length < MAX_BUFFERED_EVENTS) this._waiting.push(event);
  }

  _apply(event) {
    if (event.call_id) return;
    // What is stored is in the page; other events are not, and may be applied twice.
    if (isStored(event.type) && !isAfter(event.id, this._position)) return;
    if (applyToHead(this, event)) return;
    if (event.type === "chat:reload") return this._hearChange();
    if (event.type === "chat:outlet") return this._takeOutlet(event.data);
    const found = this._messages.get(event.message_id);
    if (found) found.value = reduceMessage(found.peek(), event.type, event.data);
    else if (event.type === "chat:active" && event.data?.active && this._followsCurrent) this.load();
    else if (event.type === "chat:message" && this._followsCurrent) this._reloadSoon();
  }

  _hearChange() {
    if (this._own > 0) this._own--;
    else this._reloadSoon();
  }

  _takeOutlet(data) {
    for (const message of Array.isArray(data?.messages) ? data.messages : []) {
      const known = this._messages.get(message?.id)?.peek();
      if (known && message.content !== undefined && message.content !== known.content) {
        this.patch(message.id, { content: message.content, originalContent: known.content });
      }
    }
  }
}

/** Apply an event about the chat as a whole; return whether it is one. */
function applyToHead(store, { type, data }) {
  const head = store.head.peek();
  if (head === null) return false;
  if (type === "chat:title") {
    const title = typeof data === "string" ? data : data?.title;
    if (typeof title === "string") store.head.value = { ...head, title };
    return true;
  }
  if (type === "chat:tags") {
    store.head.value = { ...head, meta: { ...head.meta, tags: tagNames(data) } };
    return true;
  }
  return false;
}

/**
 * Return the names in the data of `chat:tags`: a list of texts or of tags, or an object with one.
 * @param {any} data
 * @returns {string[]}
 */
export function tagNames(data) {
  const list = Array.isArray(data) ? data : Array.isArray(data?.tags) ? data.tags : [];
  return list.map((tag) => (typeof tag === "string" ? tag : tag?.name)).filter((name) => typeof name === "string");
}
