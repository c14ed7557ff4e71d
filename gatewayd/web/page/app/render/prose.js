/**
 * Texts as components.
 */
import { html, useLayoutEffect, useRef } from "#app/core/html";
import { setDirection } from "#app/render/direction";
import { createRenderer } from "#app/render/renderer";

/**
 * A Markdown text, which may grow.
 * @param {{text: string, streaming?: boolean, sources?: object[] | number, onSource?: (number: number) => void}} props
 *   `onSource` gets the number of a source mark, from 1
 */
export function Prose({ text, streaming = false, sources, onSource, class: more = "" }) {
  const place = useRef(null);
  const renderer = useRef(null);
  const latest = useRef(onSource);
  latest.current = onSource;
  useLayoutEffect(() => {
    renderer.current = createRenderer(place.current, { sources, onSource: (number) => latest.current?.(number) });
    return () => renderer.current.destroy();
  }, []);
  useLayoutEffect(() => renderer.current.update(text, { streaming, sources }), [text, streaming, sources]);
  return html`<div class="prose ${more}" ref=${place}></div>`;
}

/**
 * Shows a text as it was written, in its own direction.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function renderPlain(element, text) {
  element.classList.add("as-written");
  setDirection(element, text);
  element.replaceChildren(text);
}
