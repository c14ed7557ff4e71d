/**
 * The parts of a list of chats by the time of their last change.
 */
import { language, t } from "#app/core/messages";

const DAY = 86400;

/**
 * Returns the chats in parts: {key, label, chats}. Their order stays.
 * @param {{updated_at: number}[]} chats the newest first
 * @param {number} [now] seconds
 */
export function groupByTime(chats, now = Date.now() / 1000) {
  const day = new Date(now * 1000);
  day.setHours(0, 0, 0, 0);
  const today = day.getTime() / 1000;
  const parts = [];
  for (const chat of chats) {
    const { key, label } = partOf(chat.updated_at, today);
    if (parts.at(-1)?.key === key) parts.at(-1).chats.push(chat);
    else parts.push({ key, label, chats: [chat] });
  }
  return parts;
}

function partOf(seconds, today) {
  if (seconds >= today) return { key: "today", label: t("sidebar.today") };
  if (seconds >= today - DAY) return { key: "yesterday", label: t("sidebar.yesterday") };
  if (seconds >= today - 7 * DAY) return { key: "week", label: t("sidebar.lastWeek") };
  if (seconds >= today - 30 * DAY) return { key: "month", label: t("sidebar.lastMonth") };
  const date = new Date(seconds * 1000);
  const format = new Intl.DateTimeFormat(language.value, { year: "numeric", month: "long" });
  return { key: `${date.getFullYear()}-${date.getMonth()}`, label: format.format(date) };
}
