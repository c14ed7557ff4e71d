/** A chat that somebody shares, to read: `/s/{id}`. */
import { get, post } from "#app/core/api";
import { html, signal, useEffect, useMemo, useSignal } from "#app/core/html";
import { formatTime, t } from "#app/core/messages";
import { navigate } from "#app/core/router";
import { useTitle } from "#app/core/title";
import { Button, ErrorNote, Skeleton } from "#app/ui/index";
import { Transcript } from "#app/chat/transcript";
import { branchOf } from "#app/chat/tree";

/** The view. @param {{params: {id: string}}} props */
export default function SharedView({ params }) {
  const record = useSignal(null);
  const error = useSignal(null);
  const load = async () => {
    try {
      record.value = await get(`/api/v1/chats/share/${encodeURIComponent(params.id)}`);
      error.value = null;
    } catch (failure) {
      error.value = failure;
    }
  };
  useEffect(() => void load(), [params.id]);
  useTitle(record.value?.title ?? "");
  if (error.value) return html`<div class="view"><h1 class="hidden">${t("chat.sharedChat")}</h1><${ErrorNote} error=${error.value} retry=${load} /></div>`;
  if (record.value === null) return html`<div class="view"><h1 class="hidden">${t("chat.sharedChat")}</h1><${Skeleton} lines=${6} /></div>`;
  return html`<${SharedChat} key=${params.id} record=${record.value} error=${error} />`;
}

function SharedChat({ record, error }) {
  const store = useMemo(() => new ReadStore(record.chat.history ?? { messages: {} }), [record]);
  const commands = useMemo(() => ({ switchTo: (id) => store.show(id) }), [store]);
  const copy = async () => {
    try {
      const made = await post(`/api/v1/chats/${encodeURIComponent(record.share_id ?? record.id)}/clone/shared`, {});
      navigate(`/c/${encodeURIComponent(made.id)}`);
    } catch (failure) {
      error.value = failure;
    }
  };
  return html`<div class="chat">
    <header class="chat-header"><h1 class="chat-title" dir="auto">${record.title}</h1>
      <span class="help">${t("chat.sharedAt", { time: formatTime(record.updated_at) })}</span></header>
    <${Transcript} store=${store} commands=${commands} freshId=${null} isRunning=${false} />
    <div class="composer shared"><${Button} kind="primary" icon="copy" onClick=${copy}>${t("chat.copyShared")}<//></div>
  </div>`;
}

/** A branch of a whole history, with the signals that a transcript reads. */
class ReadStore {
  constructor(history) {
    this._history = history;
    this._messages = new Map();
    this.ids = signal([]);
    this.hasEarlier = signal(false);
    this.show();
  }

  /** Shows the branch through a message. @param {string} [through] */
  show(through) {
    const branch = branchOf(this._history, through);
    this._messages = new Map(branch.map((message) => [message.id, signal({ ...message, done: true })]));
    this.ids.value = branch.map((message) => message.id);
  }

  /** Returns the signal of a message. @param {string} id */
  message(id) {
    return this._messages.get(id);
  }

  /** There is nothing more to load. */
  async loadEarlier() {
    return 0;
  }
}
