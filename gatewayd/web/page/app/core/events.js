/**
 * The events of the account, by one connection for all tabs of a browser: HTTP/1.1 gives an origin six of them.
 *
 * The tab that holds the lock `gatewayd-events-ACCOUNT` reads the stream and passes everything on by a
 * BroadcastChannel; when it goes, another one gets the lock and resumes after the last event that it heard. A tab that
 * hears nothing for two heartbeats reads a stream of its own until the others are heard again. Where browsers give no locks
(without HTTPS) each tab reads its own.
 *
 * An event is {id, type, data, chat_id, message_id, call_id?}. The page adds one type: `stream:opened` with
 * {gap, session_id} after each (re)connection; with `gap` events are lost, and what is shown must be asked for anew.
 */
import { effect, signal } from "@preact/signals";
import { EventStream, HEARTBEAT_MS, MAX_SILENT_MS } from "#app/core/event_stream";
import { canShare } from "#app/core/platform";
import { me } from "#app/core/session";

/** "open", or "lost" while no events can come. */
export const connection = signal("open");
/** Id of the session of the stream; "" without a stream. */
export const streamSession = signal("");

const handlers = new Set();
const types = new Map();
let reader = null;

/**
 * Calls a function for each event, or for those of a chat or of a type.
 * @param {(event: object) => void} handler
 * @param {{chatId?: string, type?: string}} [filter]
 * @returns {() => void} stops it
 */
export function onEvent(handler, { chatId, type } = {}) {
  const one = { handler, chatId, type };
  handlers.add(one);
  return () => handlers.delete(one);
}

/**
 * Registers code of one's own for a type of event, which may be one that the gateway itself does not know. A type has
 * one such handler; the last one registered wins.
 * @param {string} type
 * @param {(event: object) => void} handler
 * @returns {() => void} removes it
 */
export function registerEventType(type, handler) {
  types.set(type, handler);
  return () => types.get(type) === handler && types.delete(type);
}

function dispatch(event) {
  const wanted = [...handlers].filter(
    (one) => (!one.type || one.type === event.type) && (!one.chatId || one.chatId === event.chat_id),
  );
  const own = types.get(event.type);
  for (const handler of [...wanted.map((one) => one.handler), ...(own ? [own] : [])]) {
    try {
      handler(event);
    } catch (error) {
      // One view that fails must not keep the event from the others.
      reportError(error);
    }
  }
}

/** Reads the events of one account in this tab, as the leader of its tabs or as one that listens to the leader. */
class TabReader {
  #channel;
  #ended = new AbortController();
  #stream = null;
  #isLeader = false;
  #lastId = null;
  #heardAt = performance.now();

  constructor(account) {
    const name = `gatewayd-events-${account}`;
    this.#channel = new BroadcastChannel(name);
    if (!canShare) {
      this.#open();
      return;
    }
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    this.#post({ kind: "hello" });
    this.#lead(name);
    const watch = setInterval(() => this.#check(), HEARTBEAT_MS / 3);
    this.#ended.signal.addEventListener("abort", () => clearInterval(watch));
  }

  close() {
    this.#ended.abort();
    this.#stream?.close();
    this.#channel.close();
  }

  /** Looks at once whether the connection lives: the machine may have slept. */
  hurry() {
    this.#stream?.hurry();
    this.#check();
  }

  async #lead(name) {
    const until = new Promise((resolve) => this.#ended.signal.addEventListener("abort", resolve));
    const held = async () => {
      this.#isLeader = true;
      this.#open();
      await until;
    };
    try {
      await navigator.locks.request(name, { signal: this.#ended.signal }, held);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  #open() {
    this.#stream ??= new EventStream(this.#lastId, {
      opened: (session, id) => this.#tell({ kind: "opened", session, id }),
      heard: (frame, id) => this.#tell({ kind: "event", frame, id }),
      alive: () => this.#isLeader && this.#post({ kind: "beat" }),
      lost: () => this.#tell({ kind: "lost" }),
    });
  }

  #tell(message) {
    if (this.#isLeader) this.#post(message);
    this.#take(message);
  }

  #post(message) {
    if (!this.#ended.signal.aborted) this.#channel.postMessage(message);
  }

  /** Takes a message of another tab. */
  #receive(message) {
    if (message.kind === "hello") {
      const state = { connection: connection.peek(), session: streamSession.peek(), id: this.#lastId };
      if (this.#isLeader) this.#post({ kind: "state", ...state });
      return;
    }
    this.#heardAt = performance.now();
    if (!this.#isLeader && this.#stream) {
      this.#stream.close();
      this.#stream = null;
    }
    this.#take(message);
  }

  #take(message) {
    if (message.kind === "event") this.#hear(message.frame, message.id);
    else if (message.kind === "opened") this.#begin(message.session, message.id);
    else if (message.kind === "lost") connection.value = "lost";
    else if (message.kind === "state") {
      connection.value = message.connection;
      streamSession.value = message.session;
      this.#lastId ??= message.id;
    }
  }

  #begin(session, id) {
    connection.value = "open";
    streamSession.value = session.session_id;
    if (session.gap || !this.#lastId) this.#lastId = id;
    dispatch({ id, type: "stream:opened", data: session, chat_id: "", message_id: "" });
  }

  #hear(frame, id) {
    // A call has no id. What two streams brought for a moment comes once.
    if (id && isHeard(id, this.#lastId)) return;
    if (id) this.#lastId = id;
    const { data, ...target } = frame;
    dispatch({ ...target, id, type: data.type, data: data.data });
  }

  #check() {
    if (!this.#isLeader && performance.now() - this.#heardAt > MAX_SILENT_MS) this.#open();
  }
}

/** Returns whether an id, `BOOT-NUMBER`, is not later than another one of the same life of the gateway. */
export function isHeard(id, last) {
  if (!last) return false;
  const [boot, number] = id.split("-");
  const [lastBoot, lastNumber] = last.split("-");
  return boot === lastBoot && Number(number) <= Number(lastNumber);
}

let account = null;
effect(() => {
  const current = me.value && me.value.role !== "pending" ? me.value.id : null;
  if (current === account) return;
  account = current;
  reader?.close();
  streamSession.value = "";
  connection.value = "open";
  reader = current === null ? null : new TabReader(current);
});
for (const sign of ["online", "pageshow"]) addEventListener(sign, () => reader?.hurry());
document.addEventListener("visibilitychange", () => document.hidden || reader?.hurry());
