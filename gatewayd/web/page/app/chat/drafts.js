/**
 * Drafts of the composer and the place in each fork, kept in the browser.
 *
 * A record is one JSON object under one key, with at most MAX_KEPT entries; the oldest go first.
 */

/** Maximum number of drafts, and of places. */
export const MAX_KEPT = 200;

/** Maximum length of a kept draft in characters. */
export const MAX_DRAFT_CHARACTERS = 100_000;

/**
 * A small record in a storage, such as `localStorage`.
 */
export class KeptRecord {
  /**
   * @param {Pick<Storage, "getItem"|"setItem">} storage
   * @param {string} key
   */
  constructor(storage, key) {
    this._storage = storage;
    this._key = key;
  }

  /**
   * Return a kept text, "" if there is none.
   * @param {string} name
   * @returns {string}
   */
  get(name) {
    const value = new Map(this._read()).get(name);
    return typeof value === "string" ? value : "";
  }

  /**
   * Keep a text, or forget it if it is empty.
   * @param {string} name
   * @param {string} value
   */
  set(name, value) {
    const kept = this._read().filter(([each]) => each !== name);
    if (value) kept.push([name, value.slice(0, MAX_DRAFT_CHARACTERS)]);
    try {
      this._storage.setItem(this._key, JSON.stringify(kept.slice(-MAX_KEPT)));
    } catch (error) {
      // A full or forbidden storage loses drafts, nothing else.
      console.info("draft not kept", error);
    }
  }

  _read() {
    try {
      const kept = JSON.parse(this._storage.getItem(this._key) ?? "[]");
      return Array.isArray(kept) ? kept.filter((each) => Array.isArray(each) && each.length === 2) : [];
    } catch (error) {
      console.info("drafts not readable", error);
      return [];
    }
  }
}
