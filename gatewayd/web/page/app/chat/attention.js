/** What events ask of the reader wherever they are in the page: notices and calls. */
import { onEvent } from "#app/core/events";
import { toast } from "#app/core/toasts";
import { startCalls } from "#app/chat/calls";

const KINDS = new Set(["info", "success", "warning", "error"]);
const MAX_WAITING = 4;

let waiting = [];

/** Starts to show notices and to answer calls; called once. */
export function startAttention() {
  onEvent(({ data }) => notice(data), { type: "notification" });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    const shown = waiting;
    waiting = [];
    for (const [kind, text] of shown) toast(kind, text);
  });
  startCalls();
}

/** Shows a notice, in a hidden tab as soon as somebody looks at it. */
function notice(data) {
  if (typeof data?.content !== "string" || data.content === "") return;
  const kind = KINDS.has(data.type) ? data.type : "info";
  if (document.hidden) waiting = [...waiting, [kind, data.content]].slice(-MAX_WAITING);
  else toast(kind, data.content);
}
