/** The speed of an answer in tokens a second, estimated while it streams; pure. */

const CHARACTERS_PER_TOKEN = 4;
const WINDOW_MS = 3000;
const LEAST_MS = 300;

/** Measures the growth of a text over the last three seconds. */
export class SpeedMeter {
  constructor() {
    this._samples = [];
  }

  /**
   * Take the length of the text at a time.
   * @param {number} length in characters
   * @param {number} now in milliseconds
   */
  add(length, now) {
    const last = this._samples.at(-1);
    if (last !== undefined && length < last.length) this._samples = [];
    this._samples.push({ length, now });
    while (this._samples.length > 2 && now - this._samples[0].now > WINDOW_MS) this._samples.shift();
  }

  /**
   * Return the estimated tokens a second, or null before there is enough to tell.
   * @returns {number|null}
   */
  rate() {
    const first = this._samples[0];
    const last = this._samples.at(-1);
    if (first === undefined || last.now - first.now < LEAST_MS) return null;
    return ((last.length - first.length) / CHARACTERS_PER_TOKEN / (last.now - first.now)) * 1000;
  }
}

/**
 * Return the tokens a second that a finished answer reports, or null.
 * @param {object|undefined} usage
 * @returns {number|null}
 */
export function reportedRate(usage) {
  const told = usage?.["response_token/s"] ?? usage?.tokens_per_second;
  if (typeof told === "number") return told;
  const { eval_count: count, eval_duration: nanoseconds } = usage ?? {};
  return typeof count === "number" && nanoseconds > 0 ? (count / nanoseconds) * 1e9 : null;
}
