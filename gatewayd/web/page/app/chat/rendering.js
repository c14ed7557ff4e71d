/**
 * What shows texts and embedded pages of answers: a plain text, until the renderer is there.
 */
import { html } from "#app/core/html";

/** A text of an answer. @param {{text: string, streaming?: boolean}} props */
export function Prose({ text }) {
  return html`<div class="prose plain" dir="auto">${text}</div>`;
}

/** A page that an answer embeds. @param {{title: string}} props */
export function EmbedFrame({ title }) {
  return html`<p class="help">${title}</p>`;
}
