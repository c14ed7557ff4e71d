/**
 * Who moved the view, and whether it follows the answer; pure, no timers.
 *
 * Each write of the page is announced by its position. A scroll event at an announced position is the page's
 * own; one at the end that a shrinking content allows is the browser's; every other one is the reader's.
 */

/** Difference in pixels up to which two positions are the same. */
export const TOLERANCE = 1.5;

const MAX_PENDING = 4;
const UNPIN_DISTANCE = 3;
const REPIN_DISTANCE = 60;
const BUTTON_DISTANCE = 200;

/**
 * Measures of the scrolled element in pixels.
 * @typedef {{top: number, height: number, view: number}} Measures
 */

/** The state of one scrolled element. */
export class ScrollModel {
  constructor() {
    this.isPinned = true;
    this.isButtonShown = false;
    this._pending = [];
    this._last = { top: 0, height: 0, view: 0 };
  }

  /**
   * Announce a position that the page is about to write.
   * @param {number} top
   */
  announce(top) {
    this._pending.push(top);
    if (this._pending.length > MAX_PENDING) this._pending.shift();
  }

  /**
   * Take a scroll event and return who caused it.
   * @param {Measures} now
   * @returns {"page"|"browser"|"reader"}
   */
  scrolled(now) {
    const who = this._attribute(now);
    const moved = now.top - this._last.top;
    if (who === "reader") {
      if (moved < -UNPIN_DISTANCE) this.isPinned = false;
      else if (moved > 0 && distance(now) <= REPIN_DISTANCE) this.isPinned = true;
    }
    this._remember(now);
    return who;
  }

  /**
   * Take a wheel turn, a touch or a key that moves the view, before its scroll event.
   * @param {number} direction below 0 is up
   */
  intended(direction) {
    if (direction < 0) this.isPinned = false;
  }

  /**
   * Take a change of the size of the content or of the view; return the position to write, or null.
   * @param {Measures} now
   * @returns {number|null}
   */
  resized(now) {
    this._remember(now);
    if (!this.isPinned) return null;
    const end = Math.max(0, now.height - now.view);
    return Math.abs(end - now.top) <= TOLERANCE ? null : end;
  }

  /** Follow the answer from now on. */
  pin() {
    this.isPinned = true;
  }

  _attribute(now) {
    const place = this._pending.findIndex((top) => Math.abs(top - now.top) <= TOLERANCE);
    if (place >= 0) {
      this._pending.splice(0, place + 1);
      return "page";
    }
    const end = Math.max(0, now.height - now.view);
    const isShrunk = now.height < this._last.height || now.view > this._last.view;
    return isShrunk && Math.abs(now.top - end) <= TOLERANCE && now.top < this._last.top ? "browser" : "reader";
  }

  _remember(now) {
    this._last = now;
    const far = distance(now);
    if (far >= BUTTON_DISTANCE) this.isButtonShown = true;
    else if (far <= REPIN_DISTANCE) this.isButtonShown = false;
  }
}

function distance(now) {
  return now.height - now.view - now.top;
}
