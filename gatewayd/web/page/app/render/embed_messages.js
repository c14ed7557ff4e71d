/**
 * What an embed may say to the page: its height, a wish for its data, and texts for the composer. Everything else, and
 * everything too large, is dropped.
 */
import { confirmDialog } from "#app/core/dialogs";
import { t } from "#app/core/messages";

const MAX_PROMPT_CHARACTERS = 10_000;
const MAX_ID_CHARACTERS = 200;
const MIN_HEIGHT = 40;
const MAX_HEIGHT = 2_000;
/** Milliseconds between two texts of one embed. */
const PROMPT_PAUSE_MS = 500;

/** Questions that the reader refuses before an embed may ask no more. */
const MAX_REFUSALS = 3;

let isAsking = false;

/** Returns the height in pixels that an embed gets, or null. @param {unknown} wanted */
export function clampHeight(wanted) {
  if (typeof wanted !== "number" || !Number.isFinite(wanted)) return null;
  return Math.min(Math.max(Math.ceil(wanted), MIN_HEIGHT), MAX_HEIGHT);
}

/** Takes the messages of one embed. */
export class EmbedListener {
  lastPrompt = -Infinity;
  refusals = 0;

  /**
   * @param {HTMLIFrameElement} frame
   * @param {() => {title: string, payload?: unknown, requestId?: string, onPrompt?: Function, onSubmit?: Function}} props
   */
  constructor(frame, props) {
    this.frame = frame;
    this.props = props;
    this.hear = this.hear.bind(this);
    addEventListener("message", this.hear);
  }

  stop() {
    removeEventListener("message", this.hear);
  }

  hear({ source, data }) {
    // The origin of an embed is opaque; only its window tells it from others.
    if (source !== this.frame.contentWindow || source === null) return;
    if (typeof data !== "object" || data === null) return;
    const { type } = data;
    if (type === "iframe:height") this.resize(data.height);
    else if (type === "payload") this.answer(data.requestId);
    else if (type === "input:prompt") this.prompt(data.text, (text) => this.props().onPrompt?.(text));
    else if (type === "input:prompt:submit" || type === "action:submit") this.prompt(data.text, (text) => this.ask(text));
  }

  resize(wanted) {
    const height = clampHeight(wanted);
    if (height !== null) this.frame.style.blockSize = `${height}px`;
  }

  answer(asked) {
    if (typeof asked !== "string" || asked.length > MAX_ID_CHARACTERS) return;
    const { requestId, payload = null } = this.props();
    const isOurs = requestId === undefined || requestId === asked;
    this.frame.contentWindow.postMessage({ type: "payload", requestId: asked, payload: isOurs ? payload : null }, "*");
  }

  prompt(text, use) {
    if (typeof text !== "string" || !text.trim() || text.length > MAX_PROMPT_CHARACTERS) return;
    const now = performance.now();
    if (now - this.lastPrompt < PROMPT_PAUSE_MS) return;
    this.lastPrompt = now;
    use(text);
  }

  /** Sends a text as a question when the reader agrees; one embed at a time may ask. */
  async ask(text) {
    const { onSubmit, title } = this.props();
    if (isAsking || !onSubmit || this.refusals >= MAX_REFUSALS) return;
    isAsking = true;
    try {
      const wanted = { title: t("render.askSend", { title }), text, verb: t("render.send") };
      if (await confirmDialog(wanted)) onSubmit(text);
      else this.refusals += 1;
    } finally {
      isAsking = false;
    }
  }
}
