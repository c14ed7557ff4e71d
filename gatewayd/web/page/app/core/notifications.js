/**
 * Notices of the browser itself: something new waits while the page is hidden.
 */
import { effect } from "#app/core/html";
import { t } from "#app/core/messages";
import { notifications } from "#app/core/preferences";
import { config } from "#app/core/session";
import { hasNews } from "#app/core/title";

const TAG = "gatewayd";

/** Tells of news from now on, where the reader has switched that on and the browser permits it. */
export function watchNews() {
  return effect(() => {
    if (!hasNews.value || !document.hidden || !notifications.peek()) return;
    if (!("Notification" in window) || Notification.permission !== "granted") return;
    show(config.peek().name, { body: t("account.interface.news"), tag: TAG });
  });
}

async function show(title, options) {
  try {
    const notice = new Notification(title, options);
    notice.onclick = () => {
      window.focus();
      notice.close();
    };
  } catch (error) {
    // Phones show notices of the service worker alone.
    const worker = await navigator.serviceWorker?.getRegistration();
    if (!(error instanceof TypeError) || !worker) throw error;
    await worker.showNotification(title, options);
  }
}
