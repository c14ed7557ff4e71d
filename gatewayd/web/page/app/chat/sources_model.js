/** The sources of an answer as numbered chips; pure. */

const CODE_EXECUTION = "code_execution";

/**
 * A source with its number in the answer and its passages.
 * @typedef {{number: number, name: string, url: string, fileId: string,
 *   passages: {text: string, page: string, heading: string, distance: number|null, metadata: object}[]}} Numbered
 */

/**
 * Number sources as the gateway numbers them for the model: each distinct origin of a passage, as it comes.
 * @param {object[]} sources
 * @returns {Numbered[]}
 */
export function numberSources(sources) {
  const found = new Map();
  for (const source of sources ?? []) {
    if (source === null || typeof source !== "object" || source.type === CODE_EXECUTION) continue;
    const documents = Array.isArray(source.document) ? source.document : [];
    documents.forEach((text, place) => addPassage(found, source, text, place));
    if (documents.length === 0 && source.source) addPassage(found, source, "", 0);
  }
  return [...found.values()];
}

/**
 * Return the runs of code among sources.
 * @param {object[]} sources
 * @returns {object[]}
 */
export function codeRuns(sources) {
  return (sources ?? []).filter((source) => source?.type === CODE_EXECUTION);
}

function addPassage(found, source, text, place) {
  const metadata = source.metadata?.[place] ?? {};
  const own = source.source ?? {};
  const key = textOr(metadata.source, textOr(own.id, textOr(own.name, "N/A")));
  if (!found.has(key)) {
    const name = textOr(metadata.name, textOr(own.name, key));
    const url = [own.url, metadata.url, metadata.source].find((each) => /^https?:\/\//.test(textOr(each, ""))) ?? "";
    const fileId = textOr(metadata.file_id, own.type === "file" ? textOr(own.id, "") : "");
    found.set(key, { number: found.size + 1, name, url, fileId, passages: [] });
  }
  if (typeof text !== "string" || text === "") return;
  const distance = source.distances?.[place];
  found.get(key).passages.push({
    text,
    page: pageOf(metadata),
    heading: textOr(metadata.heading, Array.isArray(metadata.headings) ? metadata.headings.join(" › ") : ""),
    distance: typeof distance === "number" ? distance : null,
    metadata,
  });
}

/** Return the page of a passage as people count; `page` counts from 0. */
function pageOf(metadata) {
  return textOr(metadata.page_label, Number.isInteger(metadata.page) ? String(metadata.page + 1) : "");
}

function textOr(value, otherwise) {
  return typeof value === "string" && value !== "" ? value : otherwise;
}
