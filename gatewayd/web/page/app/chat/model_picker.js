/** The choice of a model: search, favourites and what each can do. */
import { html, useEffect, useId, useLayoutEffect, useRef, useSignal } from "#app/core/html";
import { isComposing } from "#app/core/composing";
import { t } from "#app/core/messages";
import { favouriteModels } from "#app/core/preferences";
import { shortcut } from "#app/core/shortcuts";
import { Button, Chip, ErrorNote, Icon, IconButton, SearchField, placeBeside } from "#app/ui/index";
import { capabilitiesOf, loadModels, models, modelsError, orderedModels, toggleFavourite } from "#app/chat/models";

const MAX_LISTED = 200;

/**
 * A button with the name of the model, and the list behind it.
 * @param {{model: object | undefined, onChoose: (id: string) => void}} props
 */
export function ModelPicker({ model, onChoose }) {
  const isOpen = useSignal(false);
  const anchor = useRef(null);
  const toggle = () => {
    isOpen.value = !isOpen.peek();
  };
  useEffect(() => shortcut("mod+shift+m", toggle, "chat.chooseModel"), []);
  const close = () => {
    isOpen.value = false;
    anchor.current?.querySelector("button").focus();
  };
  const name = model?.name ?? (models.value === null ? t("common.loading") : t("chat.noModel"));
  return html`<span class="model-picker" ref=${anchor}>
    <${Button} kind="plain" class="model-button" aria-haspopup="dialog" aria-expanded=${String(isOpen.value)}
      aria-label=${t("chat.modelIs", { name })} onClick=${toggle}>
      <span class="model-name" dir="auto">${name}</span><${Icon} name="chevron-down" size=${14} /><//>
    ${isOpen.value && html`<${ModelList} anchor=${anchor} chosen=${model?.id} close=${close}
      leave=${() => (isOpen.value = false)} choose=${(id) => {
        onChoose(id);
        close();
      }} />`}
  </span>`;
}

function ModelList({ anchor, chosen, choose, close, leave }) {
  const panel = useRef(null);
  const query = useSignal("");
  const titleId = useId();
  useLayoutEffect(() => {
    panel.current.showPopover();
    placeBeside(panel.current, anchor.current);
    panel.current.querySelector("input").focus();
  }, []);
  useEffect(() => {
    const onOutside = (event) => anchor.current?.contains(event.target) || leave();
    document.addEventListener("pointerdown", onOutside);
    return () => document.removeEventListener("pointerdown", onOutside);
  }, []);
  const found = matching(orderedModels.value, query.value);
  return html`<div class="model-list" role="dialog" aria-labelledby=${titleId} popover="manual" ref=${panel}
    onKeyDown=${(event) => press(event, panel.current, found, choose, close)}>
    <h2 class="hidden" id=${titleId}>${t("chat.chooseModel")}</h2>
    <${SearchField} label=${t("chat.searchModels")} value=${query.value} onInput=${(value) => (query.value = value)} />
    ${modelsError.value && html`<${ErrorNote} error=${modelsError.value} retry=${loadModels} />`}
    <ul>${found.map((model) => html`<${ModelRow} key=${model.id} model=${model} isChosen=${model.id === chosen} choose=${choose} />`)}</ul>
    ${found.length === 0 && models.value && html`<p class="help">${t(models.value.length ? "chat.noModelFound" : "chat.noModels")}</p>`}
  </div>`;
}

function ModelRow({ model, isChosen, choose }) {
  const isFavourite = favouriteModels.value.includes(model.id);
  const about = model.info?.meta?.description;
  return html`<li class="model-row">
    <button type="button" class="model-choice" aria-current=${isChosen ? "true" : undefined} onClick=${() => choose(model.id)}>
      <span class="model-title"><span dir="auto">${model.name ?? model.id}</span>
        ${isChosen && html`<${Icon} name="check" size=${14} />`}</span>
      ${typeof about === "string" && about && html`<span class="help" dir="auto">${about}</span>`}
      <span class="badges">
        <${Chip}>${model.owned_by}<//>
        ${capabilitiesOf(model).map((name) => html`<${Chip} key=${name}>${t(`chat.capability.${name}`)}<//>`)}
      </span>
    </button>
    <${IconButton} icon="star" class=${isFavourite ? "filled" : ""} pressed=${String(isFavourite)}
      label=${t("chat.favouriteModel", { name: model.name ?? model.id })} onClick=${() => toggleFavourite(model.id)} />
  </li>`;
}

function matching(all, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (model) => {
    const text = `${model.name ?? ""} ${model.id} ${model.owned_by ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return all.filter(fits).slice(0, MAX_LISTED);
}

function press(event, panel, found, choose, close) {
  if (isComposing(event)) return;
  const choices = [...panel.querySelectorAll(".model-choice")];
  const at = choices.indexOf(document.activeElement);
  if (event.key === "Escape") close();
  else if (event.key === "Enter" && event.target.tagName === "INPUT" && found.length > 0) choose(found[0].id);
  else if (event.key === "ArrowDown") choices[Math.min(at + 1, choices.length - 1)]?.focus();
  else if (event.key === "ArrowUp" && at > 0) choices[at - 1].focus();
  else if (event.key === "ArrowUp" && at === 0) panel.querySelector("input").focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
