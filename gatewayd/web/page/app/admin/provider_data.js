/**
 * The providers and runtimes between the gateway's parallel lists and one object each.
 */
import { get, post } from "#app/core/api";
import { MASK } from "#app/admin/forms";

/** The two lists: hosted providers, and local runtimes. */
export const FAMILIES = {
  openai: {
    path: "/openai",
    enable: "ENABLE_OPENAI_API",
    urls: "OPENAI_API_BASE_URLS",
    keys: "OPENAI_API_KEYS",
    options: "OPENAI_API_CONFIGS",
  },
  ollama: {
    path: "/ollama",
    enable: "ENABLE_OLLAMA_API",
    urls: "OLLAMA_BASE_URLS",
    keys: null,
    options: "OLLAMA_API_CONFIGS",
  },
};

/** Reads a list. @param {"openai" | "ollama"} family */
export async function readProviders(family) {
  const names = FAMILIES[family];
  const sent = await get(`${names.path}/config`);
  return fromConfig(family, sent);
}

/** Returns the list of an answer as objects. @param {"openai" | "ollama"} family @param {object} sent */
export function fromConfig(family, sent) {
  const names = FAMILIES[family];
  const entries = sent[names.urls].map((url, place) => {
    const options = sent[names.options][String(place)] ?? {};
    return { ...options, url, key: names.keys ? sent[names.keys][place] : options.key };
  });
  return { entries, isEnabled: sent[names.enable], revision: sent.revision };
}

/**
 * Replaces a list, unless somebody else has changed it.
 * @param {"openai" | "ollama"} family
 * @param {{entries: object[], isEnabled: boolean, revision: number}} list
 */
export async function writeProviders(family, { entries, isEnabled, revision }) {
  const names = FAMILIES[family];
  const body = {
    [names.enable]: isEnabled,
    [names.urls]: entries.map((one) => one.url),
    [names.options]: Object.fromEntries(entries.map((one, place) => [place, optionsOf(family, one)])),
    revision,
  };
  if (names.keys) body[names.keys] = entries.map((one) => one.key ?? "");
  return fromConfig(family, await post(`${names.path}/config/update`, body));
}

/** Asks a provider for its models now. @returns {Promise<{data: {id: string}[], version?: string}>} */
export function testProvider(family, entry, options) {
  const key = entry.key ?? "";
  return post(`${FAMILIES[family].path}/verify`, { url: entry.url, key, config: optionsOf(family, entry) }, options);
}

function optionsOf(family, { id, name, enable, prefix_id, model_ids, connection_type, provider, key }) {
  const options = { id, name, enable, prefix_id, model_ids, connection_type, provider };
  return family === "ollama" ? { ...options, key } : options;
}

/** Returns whether an entry has a stored key. @param {{key?: string}} entry */
export const hasKey = (entry) => entry.key === MASK;
