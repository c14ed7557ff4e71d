/** The row of buttons under a message: the place among its siblings, copy, edit, again, heart, and those of plugins. */
import { html, useSignal } from "#app/core/html";
import { formatNumber, formatRelative, formatTime, t } from "#app/core/messages";
import { CopyButton, IconButton } from "#app/ui/index";
import { readableText } from "#app/chat/content";
import { findModel } from "#app/chat/models";
import { neighbour } from "#app/chat/tree";

/**
 * The buttons.
 * @param {{shown: object, commands: object, isLeaf: boolean, edit: () => void}} props
 */
export function MessageActions({ shown, commands, isLeaf, edit, children }) {
  const isAnswer = shown.role !== "user";
  const isDone = shown.done !== false;
  return html`<div class="message-actions">
    <${Siblings} shown=${shown} commands=${commands} />
    <${CopyButton} label=${t("chat.copy")} text=${() => readableText(shown.content)} />
    ${commands.edit && isDone && html`<${IconButton} class="edit" icon="pencil" label=${t("chat.edit")} onClick=${edit} />`}
    ${commands.regenerate && isAnswer && isDone && html`<${IconButton} icon="refresh-cw" label=${t("chat.regenerate")}
      onClick=${() => commands.regenerate(shown)} />`}
    ${commands.continueAnswer && isAnswer && isLeaf && isDone && html`<${IconButton} icon="play" label=${t("chat.continue")}
      onClick=${() => commands.continueAnswer(shown)} />`}
    ${commands.favourite && html`<${IconButton} icon="heart" class=${shown.favorite ? "filled" : ""}
      pressed=${String(shown.favorite === true)} label=${t("chat.favourite")} onClick=${() => commands.favourite(shown)} />`}
    ${commands.remove && isDone && html`<${IconButton} icon="trash-2" label=${t("chat.delete")} onClick=${() => commands.remove(shown)} />`}
    ${commands.runAction && isAnswer && isDone && html`<${PluginActions} shown=${shown} run=${commands.runAction} />`}
    ${children}
    ${shown.timestamp > 0 && html`<time class="help" datetime=${new Date(shown.timestamp * 1000).toISOString()}
      title=${formatTime(shown.timestamp)}>${formatRelative(shown.timestamp)}</time>`}
  </div>`;
}

function Siblings({ shown, commands }) {
  const siblings = shown.siblingIds ?? [];
  if (siblings.length < 2 || !commands.switchTo) return null;
  const [before, after] = [neighbour(siblings, shown.id, -1), neighbour(siblings, shown.id, 1)];
  const place = formatNumber(siblings.indexOf(shown.id) + 1);
  return html`<span class="siblings" role="group" aria-label=${t("chat.branches")}>
    <${IconButton} class="mirrored" icon="chevron-left" label=${t("chat.previousBranch")} disabled=${before === null}
      onClick=${() => commands.switchTo(before)} />
    <span class="tabular">${place}/${formatNumber(siblings.length)}</span>
    <${IconButton} class="mirrored" icon="chevron-right" label=${t("chat.nextBranch")} disabled=${after === null}
      onClick=${() => commands.switchTo(after)} />
  </span>`;
}

function PluginActions({ shown, run }) {
  const busy = useSignal("");
  const actions = findModel(shown.model)?.actions ?? [];
  const start = async (action) => {
    busy.value = action.id;
    try {
      await run(shown, action);
    } finally {
      busy.value = "";
    }
  };
  return actions.map((action) => html`<button type="button" key=${action.id} class="button plain plugin-action"
    title=${action.description || action.name} disabled=${busy.value !== ""} aria-busy=${String(busy.value === action.id)}
    onClick=${() => start(action)}>
    ${isPicture(action.icon) && html`<img src=${action.icon} alt="" width="16" height="16" />`}
    <span dir="auto">${action.name}</span></button>`);
}

/** Whether an icon is a picture that comes with the answer itself; others would be loaded from elsewhere. */
function isPicture(icon) {
  return typeof icon === "string" && /^data:image\/(?:png|jpeg|webp|gif|svg\+xml)[;,]/.test(icon);
}
