/** The transcript of a chat: a window of its messages in the document, and the owner of the scrolled element. */
import { html, useEffect, useLayoutEffect, useRef, useSignal } from "#app/core/html";
import { t } from "#app/core/messages";
import { IconButton } from "#app/ui/index";
import { Message } from "#app/chat/message";
import { ScrollOwner } from "#app/chat/scroll_owner";
import { around, newer, newest, older, recounted, shifted } from "#app/chat/window";

const AHEAD = "800px 0px";

/**
 * The transcript.
 * @param {{store: object, commands: object, freshId: string | null, isRunning: boolean, soughtId?: string}} props
 *   `freshId` is the answer to the question that was just asked: it fills the view, so that the question stands at the
 *   top; `soughtId` is a message that is shown instead of the end
 */
export function Transcript({ store, commands, freshId, isRunning, soughtId }) {
  const scroller = useRef(null);
  const content = useRef(null);
  const owner = useRef(null);
  const ids = store.ids.value;
  const range = useRange(ids, owner);
  useLayoutEffect(() => {
    owner.current = new ScrollOwner(scroller.current, content.current);
    owner.current.toEnd();
    return () => owner.current.close();
  }, []);
  useLayoutEffect(() => {
    owner.current.isGliding = isRunning;
  }, [isRunning]);
  useLayoutEffect(() => {
    if (freshId !== null) owner.current.toEnd();
  }, [freshId]);
  useLayoutEffect(() => owner.current.keepPlace());
  useSought(ids, range, owner, soughtId);
  const edges = useEdges(store, range, owner, scroller);
  const shown = ids.slice(range.value.start, range.value.end);
  const toEnd = () => {
    range.value = newest(ids.length);
    requestAnimationFrame(() => owner.current?.toEnd());
  };
  return html`<div class="transcript-frame">
    <div class="transcript" ref=${scroller} tabindex="0" role="region" aria-label=${t("chat.transcript")}>
      <div class="transcript-content" ref=${content} role="log" aria-live="off" aria-label=${t("chat.messages")}>
        <div class="edge" ref=${edges.top}>${store.hasEarlier.value && range.value.start === 0 && t("chat.loadingEarlier")}</div>
        ${shown.map((id) => html`<${Message} key=${id} message=${store.message(id)} commands=${commands}
          isLeaf=${id === ids.at(-1)} isFresh=${id === freshId} isSought=${id === soughtId} />`)}
        <div class="edge" ref=${edges.bottom}></div>
      </div>
    </div>
    <${ToEnd} owner=${owner} isCut=${range.value.end < ids.length} toEnd=${toEnd} />
  </div>`;
}

/** Returns the signal of the shown range; it follows messages that come at either end. */
function useRange(ids, owner) {
  const range = useSignal(newest(ids.length));
  const before = useRef(ids);
  if (before.current !== ids) {
    const [old, now] = [before.current, ids];
    before.current = ids;
    const added = now.indexOf(old[0]);
    if (added > 0) {
      owner.current?.markPlace();
      range.value = older(shifted(range.peek(), added));
    } else if (added === 0) range.value = recounted(range.peek(), old.length, now.length);
    else range.value = newest(now.length);
  }
  return range;
}

/** Goes to a message as soon as it is loaded, once. */
function useSought(ids, range, owner, soughtId) {
  const found = useRef(null);
  const place = soughtId ? ids.indexOf(soughtId) : -1;
  useLayoutEffect(() => {
    if (place < 0 || found.current === soughtId) return;
    found.current = soughtId;
    range.value = around(place, ids.length);
    requestAnimationFrame(() => {
      owner.current?.toMessage(soughtId);
      point(soughtId);
    });
  }, [place, soughtId]);
}

/** Points to a message for screen readers and keyboards. */
function point(id) {
  const element = document.querySelector(`.transcript [data-id="${CSS.escape(id)}"]`);
  element?.setAttribute("tabindex", "-1");
  element?.focus({ preventScroll: true });
}

/** Shows more messages when an edge of the shown ones comes near. */
function useEdges(store, range, owner, scroller) {
  const top = useRef(null);
  const bottom = useRef(null);
  const isLoading = useRef(false);
  const state = useRef(null);
  state.current = { store, count: store.ids.value.length };
  useEffect(() => {
    const reached = async (entries) => {
      const isAt = (edge) => entries.some((entry) => entry.target === edge && entry.isIntersecting);
      const { count } = state.current;
      if (isAt(bottom.current) && range.peek().end < count) change(newer(range.peek(), count));
      else if (isAt(top.current) && range.peek().start > 0) change(older(range.peek()));
      else if (isAt(top.current) && !isLoading.current) await loadEarlier();
    };
    const change = (next) => {
      owner.current.markPlace();
      range.value = next;
      watch();
    };
    const loadEarlier = async () => {
      isLoading.current = true;
      try {
        await state.current.store.loadEarlier();
        watch();
      } catch (error) {
        // The reader scrolls again, or reloads; the messages that are shown stay.
        console.warn("earlier messages not loaded", error);
      } finally {
        isLoading.current = false;
      }
    };
    const observer = new IntersectionObserver(reached, { root: scroller.current, rootMargin: AHEAD });
    const watch = () => requestAnimationFrame(() => {
      for (const edge of [top.current, bottom.current].filter(Boolean)) {
        observer.unobserve(edge);
        observer.observe(edge);
      }
    });
    watch();
    return () => observer.disconnect();
  }, []);
  return { top, bottom };
}

function ToEnd({ owner, isCut, toEnd }) {
  const isMounted = useSignal(false);
  useEffect(() => {
    isMounted.value = true;
  }, []);
  if (!isMounted.value || !(isCut || owner.current?.isAway.value)) return null;
  return html`<${IconButton} class="to-end" icon="arrow-down" label=${t("chat.toEnd")} onClick=${toEnd} />`;
}
