/**
 * Code that plugins run in the page, when the administrator allows it.
 *
 * The policy of the page then lets modules come from `blob:` addresses; else nothing here can run.
 */

/** Whether the administrator allows plugins to run code in this page. */
export function mayExecute() {
  return document.documentElement.dataset.execute === "true";
}

/**
 * Runs code as the body of an async function and returns its result, a JSON value.
 * @param {string} code
 * @returns {Promise<any>}
 */
export async function execute(code) {
  const source = `export default async function () {\n${code}\n}\n`;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    const module = await import(address);
    const result = await module.default();
    return result === undefined ? null : JSON.parse(JSON.stringify(result));
  } finally {
    URL.revokeObjectURL(address);
  }
}
