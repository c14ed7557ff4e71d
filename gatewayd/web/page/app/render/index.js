/**
 * What shows texts and embeds of others: the only place where they become elements.
 */
export { EmbedFrame } from "#app/render/embed";
export { settled } from "#app/render/later";
export { safeLink, sanitiseImage } from "#app/render/links";
export { Prose, renderPlain } from "#app/render/prose";
export { createRenderer, renderMessage } from "#app/render/renderer";
