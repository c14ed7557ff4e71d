/**
 * The one place that the modules of the page take their elements, hooks and signals from.
 */
import { h } from "preact";
import htm from "htm";

export { Fragment, h, render } from "preact";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";

/** Template tag that makes elements: html`<p>${text}</p>`. Texts in it become text nodes, never markup. */
export const html = htm.bind(h);
