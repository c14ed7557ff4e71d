/**
 * One connection to the event stream: it resumes after a loss, and tells when it is silent for too long.
 */
import { api } from "#app/core/api";
import { readFrames } from "#app/core/sse";

const PATH = "/api/v1/events";
/** The gateway sends a comment after 15 s of silence. */
export const HEARTBEAT_MS = 15000;
export const MAX_SILENT_MS = 2 * HEARTBEAT_MS;
/** After a connection that worked: the gateway ends one when the rights of its account change. */
const AGAIN_MS = 200;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 30000;

export class EventStream {
  #handlers;
  #ended = new AbortController();
  #connection = null;
  #retry = AGAIN_MS;
  #heardAt = 0;
  #wake = () => {};
  #lastId;

  /**
   * @param {string | null} lastId id after which to resume
   * @param {{opened: Function, heard: Function, alive: Function, lost: Function}} handlers `opened` gets the first
   *   frame of a connection and its id, `heard` each event and its id, `alive` nothing, for each sign of life
   */
  constructor(lastId, handlers) {
    this.#lastId = lastId;
    this.#handlers = handlers;
    this.#run();
    const watch = setInterval(() => this.#check(), HEARTBEAT_MS / 3);
    this.#ended.signal.addEventListener("abort", () => clearInterval(watch));
  }

  /** Ends the connection for good. */
  close() {
    this.#ended.abort();
    this.#connection?.abort();
    this.#wake();
  }

  /** Connects again now, if there is no connection or none that has given a sign of life lately. */
  hurry() {
    this.#check();
    this.#wake();
  }

  #check() {
    if (this.#connection && performance.now() - this.#heardAt > MAX_SILENT_MS) this.#connection.abort();
  }

  async #run() {
    while (!this.#ended.signal.aborted) {
      // Without a session the tab closes this. A refusal that leaves it open passes: a new password ends the session
      // a moment before it begins the next.
      await this.#connect().catch(() => {});
      this.#connection = null;
      if (this.#ended.signal.aborted) return;
      // One that ended is no loss yet.
      if (this.#retry !== AGAIN_MS) this.#handlers.lost();
      await this.#pause();
    }
  }

  async #connect() {
    this.#connection = new AbortController();
    this.#heardAt = performance.now();
    const headers = { Accept: "text/event-stream", ...(this.#lastId ? { "Last-Event-ID": this.#lastId } : {}) };
    const reply = await api("GET", PATH, undefined, { raw: true, signal: this.#connection.signal, headers });
    this.#retry = AGAIN_MS;
    for await (const frame of readFrames(reply.body)) {
      if (this.#ended.signal.aborted) return;
      this.#heardAt = performance.now();
      this.#handlers.alive();
      if (!frame.comment) this.#take(frame);
    }
  }

  #take(frame) {
    if (frame.id) this.#lastId = frame.id;
    const data = JSON.parse(frame.data);
    if (frame.event === "session") this.#handlers.opened(data, frame.id);
    else this.#handlers.heard(data, frame.id);
  }

  /** Waits before the next try: longer each time, and not exactly as long as other browsers. */
  async #pause() {
    const wait = this.#retry * (0.75 + Math.random() / 2);
    this.#retry = this.#retry === AGAIN_MS ? FIRST_RETRY_MS : Math.min(this.#retry * 2, MAX_RETRY_MS);
    await new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, wait);
    });
  }
}
