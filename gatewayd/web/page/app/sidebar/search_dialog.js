/**
 * The search in all chats, which shows the passage that matched.
 */
import { get } from "#app/core/api";
import { isComposing } from "#app/core/composing";
import { html, useEffect, useRef, useState } from "#app/core/html";
import { formatRelative, formatTime, t } from "#app/core/messages";
import { navigate } from "#app/core/router";
import { PAGE_SIZE } from "#app/sidebar/state";
import { Button, Icon } from "#app/ui/controls";
import { SearchField } from "#app/ui/fields";
import { ErrorNote, Skeleton } from "#app/ui/states";

const PAUSE_MS = 200;
const TOKEN = /^(tag|folder|pinned|archived|shared):/;
const START = { items: null, isDone: true, error: null };

/** The content of the dialog. @param {{titleId: string, close: () => void}} props */
export function SearchDialog({ titleId, close }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState(START);
  const list = useRef(null);
  const current = useRef(null);
  const load = async (query, page) => {
    current.current?.abort();
    const { signal } = (current.current = new AbortController());
    try {
      const path = `/api/v1/chats/search?text=${encodeURIComponent(query)}&page=${page}`;
      const items = await get(path, { signal });
      setFound((before) => ({
        items: page === 1 ? items : [...before.items, ...items],
        isDone: items.length < PAGE_SIZE,
        error: null,
      }));
    } catch (error) {
      if (error.name !== "AbortError") setFound({ ...START, error });
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => load(text, 1), text ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => () => current.current?.abort(), []);
  const go = (event, chat) => {
    if (event.button > 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    close();
    navigate(addressOf(chat));
  };
  const onKeyDown = (event) => !isComposing(event) && moveInResults(event, list.current);
  return html`<div class="search-dialog" onKeyDown=${onKeyDown}>
    <h2 id=${titleId} class="hidden">${t("sidebar.searchChats")}</h2>
    <${SearchField} label=${t("sidebar.searchChats")} value=${text} onInput=${setText} autofocus maxlength="1000" />
    <p class="help">${t("sidebar.searchHelp")}</p>
    <p class="hidden" role="status">${found.items?.length === 0 ? t("sidebar.nothingFound") : ""}</p>
    <${ErrorNote} error=${found.error} retry=${() => load(text, 1)} />
    ${found.items === null && !found.error && html`<${Skeleton} />`}
    ${found.items?.length === 0 && html`<p class="search-nothing" aria-hidden="true">${t("sidebar.nothingFound")}</p>`}
    <ul class="search-results" ref=${list} tabindex=${found.items?.length ? 0 : undefined} aria-label=${t("sidebar.results")}>
      ${found.items?.map((chat) => html`<${Result} key=${chat.id} chat=${chat} text=${text} onClick=${(event) => go(event, chat)} />`)}
      ${!found.isDone && html`<li><${Button} class="more" onClick=${() => load(text, Math.floor(found.items.length / PAGE_SIZE) + 1)}>
        ${t("sidebar.showMore")}<//></li>`}
    </ul>
  </div>`;
}

/** Returns the address of a chat, at the message that matched. */
function addressOf(chat) {
  const path = `/c/${encodeURIComponent(chat.id)}`;
  return chat.message_id ? `${path}?message=${encodeURIComponent(chat.message_id)}` : path;
}

function Result({ chat, text, onClick }) {
  return html`<li><a href=${addressOf(chat)} class="search-result" onClick=${onClick}>
    <${Icon} name="message-square" />
    <span class="search-title" dir="auto">${marked(chat.title, text)}</span>
    <time class="help" title=${formatTime(chat.updated_at)}>${formatRelative(chat.updated_at)}</time>
    ${chat.snippet && html`<span class="search-snippet" dir="auto">${marked(chat.snippet, text)}</span>`}
  </a></li>`;
}

/** Returns a text with the searched words marked. */
export function marked(text, query) {
  const wanted = query.trim().split(/\s+/).filter((word) => !TOKEN.test(word)).join(" ");
  if (!wanted) return text;
  const pattern = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(end, match.index), html`<mark>${match[0]}</mark>`);
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

function moveInResults(event, list) {
  const links = [...list.querySelectorAll("a, button")];
  const at = links.indexOf(document.activeElement);
  const isTyping = event.target.matches("input");
  if (event.key === "Enter" && isTyping && links.length > 0) links[0].click();
  else if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp" && !isTyping) {
    if (at > 0) links[at - 1].focus();
    else list.closest(".search-dialog").querySelector("input").focus();
  } else return;
  event.preventDefault();
}
