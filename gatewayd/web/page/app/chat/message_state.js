/**
 * The effect of an event on a message (gatewayd-plugins(7), EVENTS); pure.
 *
 * `reduceMessage` returns a changed copy, or the message itself if the event does not concern it.
 */

/** Maximum number of values in one list of a message on the page; the newest stay. */
export const MAX_LIST_VALUES = 5000;

const CODE_EXECUTION = "code_execution";

/**
 * Return a message after an event.
 * @param {object} message
 * @param {string} type
 * @param {any} data
 * @returns {object}
 */
export function reduceMessage(message, type, data) {
  const effect = Object.hasOwn(EFFECTS, type) ? EFFECTS[type] : undefined;
  if (effect === undefined || data === null || typeof data !== "object") return message;
  return effect(message, data);
}

/**
 * Tell whether the gateway stores the effect of an event before it sends it.
 * @param {string} type
 * @returns {boolean}
 */
export function isStored(type) {
  return Object.hasOwn(EFFECTS, type) && !type.startsWith("chat:");
}

const EFFECTS = {
  status: (message, data) => ({ ...message, statusHistory: added(message.statusHistory, data) }),
  "chat:completion": completed,
  "chat:message:delta": appended,
  message: appended,
  "chat:message": replaced,
  replace: replaced,
  "chat:message:files": (message, data) => withList(message, "files", data.files),
  files: (message, data) => withList(message, "files", data.files),
  source: withSource,
  citation: withSource,
  "chat:message:favorite": (message, data) => ({ ...message, favorite: data.favorite === true }),
  "chat:message:embeds": (message, data) => withList(message, "embeds", data.embeds),
  embeds: (message, data) => withList(message, "embeds", data.embeds),
  "chat:message:error": (message, data) => ({ ...message, error: data.error ?? true, done: true }),
  "chat:message:follow_ups": (message, data) => withList(message, "followUps", data.follow_ups),
  "chat:tasks:cancel": (message) => ({ ...message, done: true }),
};

function completed(message, data) {
  let next = message;
  const piece = data.choices?.[0];
  const pieceText = piece?.delta?.content ?? piece?.message?.content;
  if (typeof pieceText === "string") next = { ...next, content: textOf(next.content) + pieceText };
  else if (typeof data.content === "string" && data.content !== next.content && !(data.content === "" && data.done)) {
    next = { ...next, content: data.content };
  }
  for (const source of Array.isArray(data.sources) ? data.sources : []) next = withSource(next, source);
  if (data.usage && typeof data.usage === "object") next = { ...next, usage: data.usage };
  if (typeof data.selected_model_id === "string") next = { ...next, selectedModelId: data.selected_model_id };
  if (data.error) next = { ...next, error: data.error };
  if (data.done === true) next = { ...next, done: true };
  return next;
}

function appended(message, data) {
  if (typeof data.content !== "string") return message;
  return { ...message, content: textOf(message.content) + data.content };
}

function replaced(message, data) {
  if (typeof data.content !== "string" && !Array.isArray(data.content)) return message;
  return { ...message, content: data.content };
}

function withList(message, name, values) {
  return Array.isArray(values) ? { ...message, [name]: values.slice(-MAX_LIST_VALUES) } : message;
}

/** The texts of the sources of a list, so that a further source is compared with all of them at once. */
const knownTexts = new WeakMap();

function withSource(message, source) {
  if (source === null || typeof source !== "object") return message;
  const sources = message.sources ?? [];
  if (source.type === CODE_EXECUTION && typeof source.id === "string") {
    const place = sources.findIndex((each) => each?.type === CODE_EXECUTION && each.id === source.id);
    return { ...message, sources: place < 0 ? added(sources, source) : sources.with(place, source) };
  }
  const text = JSON.stringify(source);
  const known = knownTexts.get(sources) ?? new Set(sources.map((each) => JSON.stringify(each)));
  if (known.has(text)) {
    knownTexts.set(sources, known);
    return message;
  }
  const next = added(sources, source);
  if (sources.length >= MAX_LIST_VALUES) known.delete(JSON.stringify(sources[0]));
  // The texts go with the longer list; the former one would have to be read anew.
  knownTexts.delete(sources);
  knownTexts.set(next, known.add(text));
  return { ...message, sources: next };
}

function added(values, value) {
  return [...(values ?? []), value].slice(-MAX_LIST_VALUES);
}

function textOf(content) {
  return typeof content === "string" ? content : "";
}

/**
 * Tell whether an event came after a position of the event stream; ids are `boot-number`.
 *
 * An id of another process, or none, counts as later.
 * @param {string|undefined} id
 * @param {string|undefined} position
 * @returns {boolean}
 */
export function isAfter(id, position) {
  const [boot, number] = split(id);
  const [seenBoot, seenNumber] = split(position);
  return boot === "" || boot !== seenBoot || number > seenNumber;
}

function split(id) {
  const text = id ?? "";
  const place = text.lastIndexOf("-");
  return place < 0 ? ["", 0] : [text.slice(0, place), Number(text.slice(place + 1))];
}

/**
 * Return the text of an error of a message, "" if it has none that is a text.
 * @param {any} error
 * @returns {string}
 */
export function errorText(error) {
  const content = error?.content ?? error?.message ?? error;
  if (typeof content === "string") return content;
  if (content !== null && typeof content === "object") return errorText(content.message ?? content.detail ?? "");
  return "";
}
