/**
 * The choice of a tag whose chats the sidebar lists alone.
 */
import { get } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { chosenTag, filterByTag } from "#app/sidebar/state";
import { Button, Icon } from "#app/ui/controls";
import { SearchField } from "#app/ui/fields";
import { ErrorNote, Skeleton } from "#app/ui/states";

/** Number of tags that are shown at once; the search finds the others. */
const MAX_SHOWN = 100;

/** The content of the dialog. @param {{titleId: string, close: () => void}} props */
export function TagFilterDialog({ titleId, close }) {
  const [tags, setTags] = useState(null);
  const [error, setError] = useState(null);
  const [text, setText] = useState("");
  useEffect(() => void get("/api/v1/chats/all/tags").then(setTags, setError), []);
  const wanted = text.trim().toLowerCase();
  const found = (tags ?? []).filter((tag) => tag.name.toLowerCase().includes(wanted));
  const choose = (tag) => {
    filterByTag(tag);
    close();
  };
  return html`<h2 id=${titleId}>${t("sidebar.filterByTag")}</h2>
    <${ErrorNote} error=${error} />
    ${!tags && !error && html`<${Skeleton} />`}
    ${tags?.length > 10 && html`<${SearchField} value=${text} onInput=${setText} />`}
    ${tags && found.length === 0 && html`<p class="help">${t(tags.length ? "sidebar.nothingFound" : "sidebar.noTags")}</p>`}
    <ul class="tag-list" aria-label=${t("sidebar.tags")}>${found.slice(0, MAX_SHOWN).map((tag) => html`<li key=${tag.id}>
      <button type="button" class="button" aria-pressed=${tag.id === chosenTag.value?.id} onClick=${() => choose(tag)}>
        <${Icon} name="tag" size=${14} /><bdi>${tag.name}</bdi></button></li>`)}
    </ul>
    <div class="dialog-buttons">
      ${chosenTag.value && html`<${Button} onClick=${() => choose(null)}>${t("sidebar.allChats")}<//>`}
      <${Button} onClick=${() => close()}>${t("common.close")}<//>
    </div>`;
}
