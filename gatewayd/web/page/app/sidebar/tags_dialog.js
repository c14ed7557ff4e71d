/**
 * The tags of a chat.
 */
import { api, get, post } from "#app/core/api";
import { isComposing } from "#app/core/composing";
import { onEvent } from "#app/core/events";
import { html, useEffect, useId, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Button } from "#app/ui/controls";
import { TextField } from "#app/ui/fields";
import { Chip, ErrorNote } from "#app/ui/states";

/** Adds and removes tags at once. @param {{chat: {id: string, title: string}}} props */
export function TagsDialog({ chat, titleId, close }) {
  const [tags, setTags] = useState([]);
  const [known, setKnown] = useState([]);
  const [name, setName] = useState("");
  const [error, setError] = useState(null);
  const suggestions = useId();
  const path = `/api/v1/chats/${encodeURIComponent(chat.id)}/tags`;
  const take = (reply) => reply.then((found) => {
    setTags(found);
    setError(null);
  }, setError);
  useEffect(() => {
    take(get(path));
    get("/api/v1/chats/all/tags").then(setKnown, () => setKnown([]));
    return onEvent(() => take(get(path)), { type: "chat:tags", chatId: chat.id });
  }, []);
  const add = (event) => {
    event.preventDefault();
    if (!name.trim()) return;
    take(post(path, { name: name.trim() }));
    setName("");
  };
  const remove = (tag) => take(api("DELETE", path, { name: tag.name }));
  return html`<h2 id=${titleId} dir="auto">${t("sidebar.tagsTitle", { title: chat.title })}</h2>
    <ul class="tag-list" aria-label=${t("sidebar.tags")}>
      ${tags.map((tag) => html`<li key=${tag.id}><${Chip} icon="tag" onRemove=${() => remove(tag)}
        removeLabel=${t("sidebar.removeTag", { name: tag.name })}>${tag.name}<//></li>`)}
    </ul>
    ${tags.length === 0 && !error && html`<p class="help">${t("sidebar.noTags")}</p>`}
    <${ErrorNote} error=${error} />
    <form class="tag-form" onSubmit=${add} onKeyDown=${(event) => event.key === "Enter" && isComposing(event) && event.preventDefault()}>
      <${TextField} label=${t("sidebar.newTag")} value=${name} onInput=${setName} list=${suggestions} maxlength="255" autofocus />
      <datalist id=${suggestions}>${known.slice(0, 200).map((tag) => html`<option key=${tag.id} value=${tag.name} />`)}</datalist>
      <${Button} type="submit" icon="plus">${t("sidebar.addTag")}<//>
    </form>
    <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//></div>`;
}
