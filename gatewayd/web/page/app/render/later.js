/**
 * Work that goes on after a text is shown: colours and formulas, whose libraries are loaded when they are needed.
 */
const running = new Set();

/** Keeps a promise until it is done; its failure is reported as that of any other. @param {Promise<void>} work */
export function later(work) {
  const done = work.finally(() => running.delete(done));
  running.add(done);
}

/** Waits until nothing is left to be done, for what measures or prints a text. */
export async function settled() {
  while (running.size > 0) await Promise.allSettled(running);
}

/**
 * Returns a function that loads something once; after a failure its next call loads again.
 * @template T
 * @param {() => Promise<T>} load
 * @returns {() => Promise<T>}
 */
export function once(load) {
  let loaded;
  return () => {
    loaded ??= load().catch((error) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}
