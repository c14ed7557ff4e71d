/**
 * The one owner of the scrolled transcript: it listens, follows the answer and keeps the reader's place.
 *
 * Following writes the position in a frame loop; reading keeps the first visible message where it is when the
 * content above it changes. See `scroll_model.js` for who is taken to have moved the view.
 */
import { signal } from "#app/core/html";
import { ScrollModel, TOLERANCE } from "#app/chat/scroll_model";

const GLIDE_MS = 80;
const MAX_FRAME_MS = 100;
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/** Owns one scrolled element with one growing child. */
export class ScrollOwner {
  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} content its children are the messages, each with `data-id`
   */
  constructor(scroller, content) {
    this.isAway = signal(false);
    /** Whether following glides, as it does while an answer streams, instead of jumping. */
    this.isGliding = false;
    this._scroller = scroller;
    this._content = content;
    this._model = new ScrollModel();
    this._anchor = null;
    this._frame = 0;
    this._frameAt = 0;
    this._touchY = 0;
    this._ended = new AbortController();
    this._listen();
  }

  /** Stop listening. */
  close() {
    this._ended.abort();
    this._observer.disconnect();
    cancelAnimationFrame(this._frame);
  }

  /** Whether the view follows the answer. */
  get isPinned() {
    return this._model.isPinned;
  }

  /** Follow the answer from now on, at its end at once. */
  toEnd() {
    this._model.pin();
    this._write(this._end());
    this._show();
  }

  /** Remember the first visible message; call `keepPlace` after the content was changed. */
  markPlace() {
    this._anchor = this._findAnchor();
  }

  /** Put the remembered message where it was. */
  keepPlace() {
    const anchor = this._anchor;
    if (anchor === null || this._model.isPinned) return;
    const element = this._content.querySelector(`:scope > [data-id="${CSS.escape(anchor.id)}"]`);
    if (element === null) return;
    const moved = element.offsetTop - this._scroller.scrollTop - anchor.offset;
    if (Math.abs(moved) > TOLERANCE) this._write(this._scroller.scrollTop + moved);
  }

  /**
   * Show a message at the top.
   * @param {string} id
   */
  toMessage(id) {
    const element = this._content.querySelector(`:scope > [data-id="${CSS.escape(id)}"]`);
    if (element === null) return;
    this._model.intended(-1);
    this._write(Math.min(element.offsetTop, this._end()));
    this.markPlace();
  }

  _listen() {
    const options = { passive: true, signal: this._ended.signal };
    const scroller = this._scroller;
    scroller.addEventListener("scroll", () => this._scrolled(), options);
    scroller.addEventListener("wheel", (event) => event.ctrlKey || this._intend(event, event.deltaY), options);
    scroller.addEventListener("touchstart", (event) => (this._touchY = event.touches[0]?.clientY ?? 0), options);
    scroller.addEventListener("touchmove", (event) => this._intend(event, this._touchY - (event.touches[0]?.clientY ?? 0)), options);
    scroller.addEventListener("keydown", (event) => this._pressed(event), options);
    window.visualViewport?.addEventListener("resize", () => this._resized(), options);
    this._observer = new ResizeObserver(() => this._resized());
    this._observer.observe(this._content);
    this._observer.observe(scroller);
  }

  _pressed(event) {
    const isField = event.target.closest("input, textarea, select, [contenteditable]") !== null;
    if (!isField && !event.defaultPrevented && UP_KEYS.has(event.key)) this._model.intended(-1);
  }

  _intend(event, direction) {
    const inner = event.target.closest?.("pre, .table-frame, textarea");
    if (inner && inner.scrollHeight > inner.clientHeight && inner.scrollTop > 0) return;
    if (this._scroller.scrollTop > 0) this._model.intended(direction);
    if (direction < 0) cancelAnimationFrame(this._frame);
  }

  _scrolled() {
    if (this._model.scrolled(this._measures()) === "reader" || !this._model.isPinned) this.markPlace();
    this._show();
  }

  _resized() {
    const wanted = this._model.resized(this._measures());
    if (wanted !== null) this._follow();
    else if (!this._model.isPinned) this.keepPlace();
    this._show();
  }

  _follow() {
    if (!this.isGliding || STILL.matches || document.hidden) {
      this._write(this._end());
      return;
    }
    cancelAnimationFrame(this._frame);
    this._frameAt = performance.now();
    this._frame = requestAnimationFrame((now) => this._glide(now));
  }

  _glide(now) {
    if (!this._model.isPinned) return;
    const rest = this._end() - this._scroller.scrollTop;
    const elapsed = Math.min(Math.max(now - this._frameAt, 0), MAX_FRAME_MS);
    this._frameAt = now;
    if (Math.abs(rest) <= TOLERANCE) return;
    this._write(this._scroller.scrollTop + Math.max(1, rest * (1 - Math.exp(-elapsed / GLIDE_MS))));
    this._frame = requestAnimationFrame((next) => this._glide(next));
  }

  _write(top) {
    const wanted = Math.max(0, Math.min(top, this._end()));
    if (Math.abs(wanted - this._scroller.scrollTop) < 0.5) return;
    this._scroller.scrollTop = wanted;
    // The browser rounds what it is given.
    this._model.announce(this._scroller.scrollTop);
  }

  _end() {
    return this._scroller.scrollHeight - this._scroller.clientHeight;
  }

  _measures() {
    const { scrollTop: top, scrollHeight: height, clientHeight: view } = this._scroller;
    return { top, height, view };
  }

  _show() {
    this.isAway.value = this._model.isButtonShown;
  }

  /** Find the first visible message by halving. */
  _findAnchor() {
    const rows = this._content.children;
    const top = this._scroller.scrollTop;
    let [low, high] = [0, rows.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].offsetTop + rows[middle].offsetHeight <= top) low = middle + 1;
      else high = middle;
    }
    while (rows[low] && !rows[low].dataset.id) low += 1;
    return rows[low] ? { id: rows[low].dataset.id, offset: rows[low].offsetTop - top } : null;
  }
}
