/**
 * Questions of plugins to the reader, and code that they run: each call is answered once, by one tab.
 *
 * Calls come by the event stream, and those that wait are listed when it opens, so that a reload still asks. A tab
 * that is hidden does not ask; it looks again when it is shown.
 */
import { ApiError, get, post } from "#app/core/api";
import { onEvent } from "#app/core/events";
import { signal } from "#app/core/html";
import { openDialog } from "#app/core/dialogs";
import { t } from "#app/core/messages";
import { location } from "#app/core/router";
import { me } from "#app/core/session";
import { hasNews } from "#app/core/title";
import { toast } from "#app/core/toasts";
import { CallDialog } from "#app/chat/call_dialog";
import { execute, mayExecute } from "#app/chat/execution";
import { announceAnswer, onAnswer } from "#app/chat/tabs";

const PATH = "/api/v1/events/calls";
const OTHER_TAB_MS = 200;

const seen = new Map();
let queue = Promise.resolve();

/** Starts to answer calls. */
export function startCalls() {
  for (const type of ["confirmation", "input"]) onEvent((event) => event.call_id && take(event), { type });
  onEvent(runCode, { type: "execute" });
  onEvent(() => list(), { type: "stream:opened" });
  onAnswer((id) => seen.get(id) && (seen.get(id).value = true));
  document.addEventListener("visibilitychange", () => document.hidden || list());
  list();
}

async function list() {
  if (me.peek() === null) return;
  try {
    const { calls } = await get(PATH);
    for (const call of calls) {
      const event = { ...call, type: call.data.type, data: call.data.data };
      if (event.type === "execute") runCode(event);
      else take(event);
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Without a connection the stream opens later, and the calls are listed then.
    console.info("calls not listed", error);
  }
}

/** Puts a question to the reader after those that were asked before it. */
function take(event) {
  if (document.hidden) {
    hasNews.value = true;
    return;
  }
  if (seen.has(event.call_id)) return;
  const isAnswered = signal(false);
  seen.set(event.call_id, isAnswered);
  queue = queue.then(() => put(event, isAnswered));
}

async function put(event, isAnswered) {
  if (isAnswered.peek()) return;
  const isThere = () => me.peek() !== null;
  const question = { type: event.type, data: event.data ?? {}, isAnswered };
  const answer = isThere() ? await openDialog(CallDialog, question) : undefined;
  if (isAnswered.peek()) return;
  if (!isThere()) {
    // Who has left is asked again when they come back, and nobody else.
    seen.delete(event.call_id);
    return;
  }
  await send(event.call_id, { result: answer ?? false });
}

/** Runs code in one tab: the one that shows the chat, else any. Code without a call has no answer. */
async function runCode(event) {
  if (seen.has(event.call_id ?? event.id)) return;
  seen.set(event.call_id ?? event.id, signal(false));
  if (location.peek().path !== `/c/${event.chat_id}`) await new Promise((resolve) => setTimeout(resolve, OTHER_TAB_MS));
  const name = `gatewayd-call-${event.call_id ?? event.id}`;
  await navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
    if (lock === null || seen.get(event.call_id ?? event.id).peek()) return;
    announceAnswer(event.call_id ?? event.id);
    const outcome = await outcomeOf(event.data?.code);
    if (event.call_id) await send(event.call_id, outcome);
    else if (outcome.error) console.warn("code of a plugin:", outcome.error);
  });
}

async function outcomeOf(code) {
  if (!mayExecute()) return { error: t("chat.executeOff") };
  try {
    return { result: await execute(String(code)) };
  } catch (error) {
    return { error: String(error?.message ?? error) };
  }
}

async function send(callId, answer) {
  announceAnswer(callId);
  try {
    await post(`${PATH}/${encodeURIComponent(callId)}`, answer);
  } catch (error) {
    const key = { 404: "chat.callExpired", 409: "chat.callAnswered" }[error.status];
    toast(key ? "info" : "error", key ? t(key) : t("chat.callFailed", { reason: error.message }));
  }
}
