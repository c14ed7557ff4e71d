/**
 * The archived chats, each with the ways back and out.
 */
import { get } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { formatRelative, t } from "#app/core/messages";
import { Link } from "#app/core/router";
import { can } from "#app/core/session";
import { removeChat, toggleArchived } from "#app/sidebar/changes";
import { PAGE_SIZE } from "#app/sidebar/state";
import { Button, IconButton } from "#app/ui/controls";
import { SearchField } from "#app/ui/fields";
import { EmptyState, ErrorNote, Skeleton } from "#app/ui/states";

const PAUSE_MS = 200;

/** The content of the dialog. @param {{titleId: string, close: () => void}} props */
export function ArchiveDialog({ titleId, close }) {
  const [text, setText] = useState("");
  const [list, setList] = useState({ items: null, isDone: true, error: null });
  const load = async (page, isCurrent = () => true) => {
    try {
      const found = await get(`/api/v1/chats/archived?page=${page}&query=${encodeURIComponent(text)}`);
      if (!isCurrent()) return;
      setList((before) => ({
        items: page === 1 ? found : [...before.items, ...found],
        isDone: found.length < PAGE_SIZE,
        error: null,
      }));
    } catch (error) {
      setList({ items: null, isDone: true, error });
    }
  };
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(() => load(1, () => isCurrent), text ? PAUSE_MS : 0);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  const drop = (chat) => setList((before) => ({ ...before, items: before.items.filter((one) => one.id !== chat.id) }));
  const restore = async (chat) => {
    await toggleArchived(chat, { isArchived: true });
    drop(chat);
  };
  const remove = async (chat) => {
    if (await removeChat(chat)) drop(chat);
  };
  return html`<h2 id=${titleId}>${t("sidebar.archivedChats")}</h2>
    <${SearchField} label=${t("sidebar.searchArchived")} value=${text} onInput=${setText} autofocus maxlength="1000" />
    <${ErrorNote} error=${list.error} retry=${() => load(1)} />
    ${list.items === null && !list.error && html`<${Skeleton} />`}
    ${list.items?.length === 0 && html`<${EmptyState} icon="archive" title=${t("sidebar.nothingArchived")} />`}
    <ul class="plain-list">${list.items?.map((chat) => html`<li key=${chat.id} class="archive-row">
      <${Link} href="/c/${chat.id}" onClick=${() => close()} dir="auto">${chat.title}<//>
      <span class="help">${formatRelative(chat.updated_at)}</span>
      <${IconButton} icon="archive-restore" label=${t("sidebar.restoreChat", { title: chat.title })} onClick=${() => restore(chat)} />
      ${can("chat.delete") && html`<${IconButton} icon="trash-2" label=${t("sidebar.deleteNamed", { title: chat.title })}
        onClick=${() => remove(chat)} />`}
    </li>`)}</ul>
    ${!list.isDone && html`<${Button} onClick=${() => load(Math.floor(list.items.length / PAGE_SIZE) + 1)}>${t("sidebar.showMore")}<//>`}
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//></div>`;
}
