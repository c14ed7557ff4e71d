/**
 * What shows texts and embedded pages of answers.
 */
export { EmbedFrame, Prose } from "#app/render/index";
