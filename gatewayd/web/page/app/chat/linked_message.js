/** The message that the address names, `/c/{id}?message={id}`, as the search and the overview link to it. */
import { get } from "#app/core/api";
import { useLayoutEffect, useRef } from "#app/core/html";
import { t } from "#app/core/messages";
import { location } from "#app/core/router";
import { toast } from "#app/core/toasts";
import { around } from "#app/chat/window";

/**
 * Show the message once it is loaded, and load it when it is not.
 * @param {object} store
 * @param {{value: object}} range signal of the shown range
 * @param {{current: object}} owner the owner of the scrolled element
 */
export function useLinkedMessage(store, range, owner) {
  const wanted = location.value.query.message ?? null;
  const begun = useRef(null);
  const shown = useRef(null);
  const ids = store.ids.value;
  useLayoutEffect(() => {
    if (wanted === null || shown.current === wanted) return;
    const place = ids.indexOf(wanted);
    if (place >= 0) {
      shown.current = wanted;
      range.value = around(place, ids.length);
      requestAnimationFrame(() => point(owner.current, wanted));
    } else if (begun.current !== wanted) {
      begun.current = wanted;
      void find(store, wanted);
    }
  }, [wanted, ids]);
}

/** Point to a message, for the eyes and for screen readers. */
function point(owner, id) {
  owner?.toMessage(id);
  const element = document.querySelector(`.transcript [data-id="${CSS.escape(id)}"]`);
  if (!element) return;
  element.setAttribute("tabindex", "-1");
  element.focus({ preventScroll: true });
}

/** Load the branch of the message, unless it is the shown one, and earlier messages until the message is there. */
async function find(store, id) {
  try {
    // A message that is gone must not replace the chat by an error.
    const path = `/api/v1/chats/${encodeURIComponent(store.id)}/branch?limit=1&through=${encodeURIComponent(id)}`;
    const { leaf_id: leaf } = await get(path);
    if (leaf !== store.ids.peek().at(-1)) await store.load(id);
    while (!store.ids.peek().includes(id) && store.hasEarlier.peek()) {
      if ((await store.loadEarlier()) === 0) return;
    }
  } catch (error) {
    toast("info", error.status === 404 ? t("sidebar.messageGone") : t("sidebar.messageNotLoaded"));
  }
}
