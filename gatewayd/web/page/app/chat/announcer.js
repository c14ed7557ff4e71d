/** What screen readers hear of an answer: that it begins, that it goes on, and its text once at its end. */
import { html, useEffect, useSignal } from "#app/core/html";
import { t } from "#app/core/messages";
import { hasNews } from "#app/core/title";
import { readableText } from "#app/chat/content";

const AGAIN_MS = 7000;
const MAX_SPOKEN_CHARACTERS = 3000;

/** The one status region of a chat. @param {{store: object, isRunning: boolean}} props */
export function Announcer({ store, isRunning }) {
  const said = useSignal("");
  const wasRunning = useSignal(false);
  useEffect(() => {
    if (!isRunning) {
      if (wasRunning.peek()) {
        said.value = readableText(store.leaf()?.content).slice(0, MAX_SPOKEN_CHARACTERS);
        if (document.hidden) hasNews.value = true;
      }
      wasRunning.value = false;
      return undefined;
    }
    wasRunning.value = true;
    said.value = t("chat.answering");
    const repeat = setInterval(() => (said.value = t("chat.stillAnswering")), AGAIN_MS);
    return () => clearInterval(repeat);
  }, [isRunning, store]);
  return html`<div class="hidden" role="status" aria-label=${t("chat.progress")}>${said.value}</div>`;
}
