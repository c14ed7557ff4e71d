/**
 * The window of a transcript: which of the loaded messages are in the document; pure.
 *
 * A range is `{start, end}` over the loaded messages, `end` excluded. At most MAX_SHOWN messages are shown.
 */

/** Maximum number of messages in the document. */
export const MAX_SHOWN = 120;

/** Number of messages that are added at once at either end. */
export const STEP = 40;

/**
 * A part of the loaded messages.
 * @typedef {{start: number, end: number}} Range
 */

/**
 * Return the range that is shown first: the newest messages, few enough to be there at once.
 * @param {number} count
 * @returns {Range}
 */
export function newest(count) {
  return { start: Math.max(0, count - STEP), end: count };
}

/**
 * Return the range after a step towards older messages; the far end is trimmed.
 * @param {Range} range
 * @returns {Range}
 */
export function older(range) {
  const start = Math.max(0, range.start - STEP);
  return { start, end: Math.min(range.end, start + MAX_SHOWN) };
}

/**
 * Return the range after a step towards newer messages; the far end is trimmed.
 * @param {Range} range
 * @param {number} count
 * @returns {Range}
 */
export function newer(range, count) {
  const end = Math.min(count, range.end + STEP);
  return { start: Math.max(range.start, end - MAX_SHOWN), end };
}

/**
 * Return a range that shows the same messages after some were put before them.
 * @param {Range} range
 * @param {number} added
 * @returns {Range}
 */
export function shifted(range, added) {
  return { start: range.start + added, end: range.end + added };
}

/**
 * Return the range after the number of messages changed at the end; a range that showed the end still does.
 * @param {Range} range
 * @param {number} before
 * @param {number} count
 * @returns {Range}
 */
export function recounted(range, before, count) {
  if (range.end < before && range.end <= count) return range;
  const start = range.start < count ? range.start : newest(count).start;
  return { start: Math.max(start, count - MAX_SHOWN), end: count };
}

/**
 * Return a range around a message.
 * @param {number} place
 * @param {number} count
 * @returns {Range}
 */
export function around(place, count) {
  const start = Math.max(0, Math.min(place - STEP, count - MAX_SHOWN));
  return { start, end: Math.min(count, start + MAX_SHOWN) };
}
