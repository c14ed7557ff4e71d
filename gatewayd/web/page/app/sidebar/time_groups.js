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
    const key = keyOf(chat.updated_at, today);
    if (parts.at(-1)?.key === key) parts.at(-1).chats.push(chat);
    else parts.push({ key, label: labelOf(key, chat.updated_at), chats: [chat] });
  }
  return parts;
}

const KEYS = { today: "sidebar.today", yesterday: "sidebar.yesterday", week: "sidebar.lastWeek", month: "sidebar.lastMonth" };

function keyOf(seconds, today) {
  if (seconds >= today) return "today";
  if (seconds >= today - DAY) return "yesterday";
  if (seconds >= today - 7 * DAY) return "week";
  if (seconds >= today - 30 * DAY) return "month";
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${date.getMonth()}`;
}

function labelOf(key, seconds) {
  if (key in KEYS) return t(KEYS[key]);
  return new Intl.DateTimeFormat(language.value, { year: "numeric", month: "long" }).format(new Date(seconds * 1000));
}
