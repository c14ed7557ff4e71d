/**
 * The field for the question. Its text is its own: typing renders neither the transcript nor the rest of the view.
 */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal } from "#app/core/html";
import { isComposing } from "#app/core/composing";
import { formatBytes, t } from "#app/core/messages";
import { hasSignedOut, me } from "#app/core/session";
import { shortcut } from "#app/core/shortcuts";
import { Chip, ErrorNote, IconButton, Progress } from "#app/ui/index";
import { ComposerOptions, chosenNames, toggleId } from "#app/chat/composer_options";
import { KeptRecord } from "#app/chat/drafts";
import { takesImages } from "#app/chat/models";

const drafts = new KeptRecord(localStorage, "gatewayd-drafts");
const DRAFT_PAUSE_MS = 300;
const COARSE = matchMedia("(pointer: coarse)");

let unkept = null;

/**
 * The composer of a chat.
 * @param {{draftKey: string, model: object, attachments: import("#app/chat/attachments").Attachments, chosen: object,
 *   isRunning: boolean, field: {current: HTMLTextAreaElement | null}, onSend: (draft: object) => Promise<void>,
 *   onStop: () => Promise<void>, onEditLast: () => void}} props
 */
export function Composer({ draftKey: place, ...given }) {
  // A draft belongs to the account that wrote it.
  const draftKey = useMemo(() => `${me.peek()?.id} ${place}`, [place]);
  const props = { ...given, draftKey };
  const { model, attachments, chosen, isRunning, field, onStop } = props;
  const isEmpty = useSignal(true);
  const error = useSignal(null);
  const files = useRef(null);
  const send = useSender(props, isEmpty, error);
  useDraft(field, draftKey, isEmpty);
  useEffect(() => shortcut("shift+escape", () => field.current?.focus(), "chat.focusComposer"), []);
  const stopRun = () => onStop().catch((failure) => (error.value = failure));
  const canSend = model !== undefined && !attachments.isBusy() && (!isEmpty.value || attachments.items.value.length > 0);
  return html`<form class="composer" onSubmit=${(event) => {
    event.preventDefault();
    send();
  }}>
    ${error.value?.notice && html`<p class="field-error" role="alert">${error.value.notice}</p>`}
    ${error.value && !error.value.notice && html`<${ErrorNote} error=${error.value} />`}
    <${ChosenChips} model=${model} attachments=${attachments} chosen=${chosen} />
    <textarea ref=${field} rows="1" dir="auto" class="composer-text" aria-label=${t("chat.question")}
      placeholder=${t("chat.questionHint")} enterkeyhint=${COARSE.matches ? "enter" : "send"}
      onInput=${(event) => typed(event.target, draftKey, isEmpty)}
      onKeyDown=${(event) => pressed(event, send, props)} onPaste=${(event) => pasted(event, attachments)}></textarea>
    <div class="composer-row">
      <${ComposerOptions} model=${model} attachments=${attachments} chosen=${chosen} onAttach=${() => files.current.click()} />
      <input ref=${files} type="file" multiple hidden aria-label=${t("chat.attachFiles")} tabindex="-1" onChange=${(event) => {
        attachments.add(event.target.files);
        event.target.value = "";
      }} />
      ${isRunning
        ? html`<${IconButton} class="send" icon="square" label=${t("chat.stop")} onClick=${stopRun} />`
        : html`<${IconButton} class="send" icon="arrow-up" type="submit" label=${t("chat.send")} disabled=${!canSend} />`}
    </div>
  </form>`;
}

/** Returns what sends the question; a question that cannot be sent comes back into the field. */
function useSender({ draftKey, model, attachments, isRunning, field, onSend }, isEmpty, error) {
  return async () => {
    const text = field.current.value.trim();
    if (isRunning || model === undefined || attachments.isBusy()) return;
    const files = attachments.references();
    if (text === "" && files.length === 0) return;
    if (files.some((file) => file.type === "image") && !takesImages(model)) {
      error.value = { notice: t("chat.noImages", { name: model.name }) };
      return;
    }
    error.value = null;
    attachments.take();
    setText(field.current, "", draftKey, isEmpty);
    try {
      await onSend({ text, files });
    } catch (failure) {
      error.value = failure;
      attachments.restore(files);
      if (field.current?.value === "") setText(field.current, text, draftKey, isEmpty);
    }
  };
}

function useDraft(field, draftKey, isEmpty) {
  useLayoutEffect(() => {
    flushDraft();
    setText(field.current, drafts.get(draftKey), null, isEmpty);
    // On a phone the keyboard would cover the chat.
    if (!COARSE.matches) field.current.focus({ preventScroll: true });
  }, [draftKey]);
}

/**
 * Puts a text into the composer.
 * @param {HTMLTextAreaElement} field
 * @param {string} text
 * @param {string | null} draftKey
 * @param {{value: boolean}} isEmpty
 */
function setText(field, text, draftKey, isEmpty) {
  field.value = text;
  grow(field);
  isEmpty.value = text.trim() === "";
  if (draftKey === null) return;
  keepDraft(draftKey, text);
  flushDraft();
}

function typed(field, draftKey, isEmpty) {
  grow(field);
  const isNowEmpty = field.value.trim() === "";
  if (isNowEmpty !== isEmpty.peek()) isEmpty.value = isNowEmpty;
  keepDraft(draftKey, field.value);
}

/** Keeps a draft a moment later: each key press would write all drafts. */
function keepDraft(draftKey, text) {
  if (unkept !== null && unkept.draftKey !== draftKey) flushDraft();
  if (unkept !== null) clearTimeout(unkept.timer);
  unkept = { draftKey, text, timer: setTimeout(flushDraft, DRAFT_PAUSE_MS) };
}

function flushDraft() {
  if (unkept === null) return;
  clearTimeout(unkept.timer);
  // Nothing is kept of who signed out on purpose; after a session that ended, the text waits for its author.
  if (!hasSignedOut.peek()) drafts.set(unkept.draftKey, unkept.text);
  unkept = null;
}

addEventListener("pagehide", flushDraft);

function grow(field) {
  if (CSS.supports("field-sizing", "content")) return;
  field.style.blockSize = "auto";
  field.style.blockSize = `${field.scrollHeight}px`;
}

function pressed(event, send, { field, isRunning, onEditLast, onStop }) {
  if (isComposing(event)) return;
  const hasMod = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && (hasMod || !(event.shiftKey || event.altKey || COARSE.matches))) {
    event.preventDefault();
    send();
  } else if (event.key === "ArrowUp" && field.current.value === "" && !event.shiftKey && !hasMod) {
    event.preventDefault();
    onEditLast();
  } else if (event.key === "Escape" && !event.shiftKey && isRunning) {
    event.preventDefault();
    onStop();
  }
}

function pasted(event, attachments) {
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length === 0) return;
  event.preventDefault();
  attachments.add(files);
}

function ChosenChips({ model, attachments, chosen }) {
  const items = attachments.items.value;
  const names = chosenNames(model, chosen);
  if (items.length + names.length === 0) return null;
  return html`<ul class="composer-chips" aria-label=${t("chat.chosen")}>
    ${items.map((item) => html`<li key=${item.key}><${AttachmentChip} item=${item} remove=${() => attachments.remove(item.key)} /></li>`)}
    ${names.map((each) => html`<li key=${each.id}><${Chip} icon=${each.icon} onRemove=${() => toggleId(each.ids, each.id)}
      removeLabel=${t("chat.switchOff", { name: each.name ?? each.id })}>${each.name ?? each.id}<//></li>`)}
  </ul>`;
}

function AttachmentChip({ item, remove }) {
  const icon = { image: "image", collection: "library" }[item.type] ?? "file-text";
  const label = t("chat.removeFile", { name: item.name });
  return html`<${Chip} icon=${icon} kind=${item.state} onRemove=${remove} removeLabel=${label}>
    ${item.name}${item.size > 0 && html` <span class="help">${formatBytes(item.size)}</span>`}
    ${item.state === "uploading" && html` <${Progress} label=${t("chat.uploading", { name: item.name })} value=${item.share} />`}
    ${item.state === "processing" && html` <${Progress} label=${t("chat.processing", { name: item.name })} />`}
    ${item.state === "failed" && html` <span class="field-error" role="alert">${t("chat.fileFailed")} <span dir="auto">${item.error}</span></span>`}
  <//>`;
}
