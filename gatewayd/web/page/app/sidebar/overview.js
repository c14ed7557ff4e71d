/**
 * The overview of favourite messages of all chats.
 */
import { get, post } from "#app/core/api";
import { onEvent } from "#app/core/events";
import { html, useEffect, useState } from "#app/core/html";
import { formatRelative, formatTime, t } from "#app/core/messages";
import { Link } from "#app/core/router";
import { useTitle } from "#app/core/title";
import { attempt } from "#app/sidebar/changes";
import { PAGE_SIZE } from "#app/sidebar/state";
import { Button, Icon } from "#app/ui/controls";
import { EmptyState, ErrorNote, Skeleton } from "#app/ui/states";

const REFRESH_MS = 250;

/** The view of `/overview`. */
export default function Overview() {
  const [list, setList] = useState({ items: null, isDone: true, error: null });
  const load = async (page) => {
    try {
      const found = await get(`/api/v1/chats/favorites?page=${page}`);
      setList((before) => ({
        items: page === 1 ? found : [...before.items, ...found],
        isDone: found.length < PAGE_SIZE,
        error: null,
      }));
    } catch (error) {
      setList((before) => ({ ...before, error }));
    }
  };
  useEffect(() => {
    void load(1);
    let timer = 0;
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(() => load(1), REFRESH_MS);
    };
    const removers = ["chat:message:favorite", "chat:list"].map((type) => onEvent(soon, { type }));
    return () => {
      clearTimeout(timer);
      removers.forEach((remove) => remove());
    };
  }, []);
  useTitle(t("sidebar.favourites"));
  return html`<div class="view overview">
    <div class="view-head"><h1>${t("sidebar.favourites")}</h1></div>
    <${ErrorNote} error=${list.error} retry=${() => load(1)} />
    ${list.items === null && !list.error && html`<${Skeleton} />`}
    ${list.items?.length === 0 && html`<${EmptyState} icon="heart" title=${t("sidebar.noFavourites")} text=${t("sidebar.favouritesHelp")} />`}
    <ul class="favourites">${list.items?.map((one) => html`<${Favourite} key="${one.chat_id} ${one.message_id}" favourite=${one}
      reload=${() => load(1)} />`)}</ul>
    ${!list.isDone && html`<${Button} onClick=${() => load(Math.floor(list.items.length / PAGE_SIZE) + 1)}>${t("sidebar.showMore")}<//>`}
  </div>`;
}

function Favourite({ favourite, reload }) {
  const { chat_id: chatId, message_id: messageId, title, content, model, timestamp } = favourite;
  const href = `/c/${encodeURIComponent(chatId)}?message=${encodeURIComponent(messageId)}`;
  const remove = async () => {
    const messages = { [messageId]: { favorite: false } };
    const path = `/api/v1/chats/${encodeURIComponent(chatId)}/branch`;
    if (await attempt(() => post(path, { chat: { history: { messages } } }))) reload();
  };
  const label = t("sidebar.removeFavourite", { title });
  return html`<li class="card favourite">
    <div class="favourite-head">
      <${Link} href=${href} class="favourite-title" dir="auto">${title || t("sidebar.untitled")}<//>
      <button type="button" class="icon-button" aria-label=${label} title=${label} aria-pressed="true" onClick=${remove}>
        <${Icon} name="heart" class="filled" /></button>
    </div>
    <p class="favourite-text" dir="auto">${content}</p>
    <p class="help"><span dir="auto">${model}</span> <time title=${formatTime(timestamp)}>${formatRelative(timestamp)}</time></p>
  </li>`;
}
