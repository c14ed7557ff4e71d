/**
 * The title of the tab.
 */
import { effect, signal, useEffect } from "#app/core/html";
import { config } from "#app/core/session";

const title = signal("");
/** Whether something new waits for the reader, which a mark before the title shows while the tab is hidden. */
export const hasNews = signal(false);

effect(() => {
  const name = config.value.name || document.title;
  const mark = hasNews.value ? "● " : "";
  document.title = mark + (title.value ? `${title.value} – ${name}` : name);
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) hasNews.value = false;
});

/** Gives the tab a title for as long as a view is shown. @param {string} text */
export function useTitle(text) {
  useEffect(() => {
    title.value = text;
    return () => {
      title.value = "";
    };
  }, [text]);
}
