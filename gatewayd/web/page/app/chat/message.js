/** One message of the transcript. It listens to its own signal, so that a piece of an answer renders it alone. */
import { html, useMemo, useRef, useSignal, useEffect } from "#app/core/html";
import { isComposing } from "#app/core/composing";
import { t } from "#app/core/messages";
import { Button, ErrorNote, Icon } from "#app/ui/index";
import { partsOf, plainText } from "#app/chat/content";
import { CodeRun, Reasoning, Speed, StatusHistory, ToolCall } from "#app/chat/folded";
import { MessageActions } from "#app/chat/message_actions";
import { MessageFiles } from "#app/chat/message_files";
import { errorText } from "#app/chat/message_state";
import { findModel } from "#app/chat/models";
import { EmbedFrame, Prose } from "#app/chat/rendering";
import { PassagePanel, SourceChips } from "#app/chat/sources";
import { codeRuns, numberSources } from "#app/chat/sources_model";
import { SpeedMeter, reportedRate } from "#app/chat/speed";

/**
 * A message.
 * @param {{message: {value: object}, commands: object, isLeaf: boolean, isFresh: boolean, isSought?: boolean}} props `commands` do what the
 *   buttons say; a view to read has none but `switchTo`
 */
export function Message({ message, commands, isLeaf, isFresh, isSought }) {
  const shown = message.value;
  const isAnswer = shown.role !== "user";
  const label = isAnswer ? t("chat.answerOf", { name: nameOf(shown) }) : t("chat.yourMessage");
  const classes = `message ${isAnswer ? "answer" : "question"} ${isFresh ? "fresh" : ""} ${isSought ? "sought" : ""}`;
  return html`<article class=${classes} data-id=${shown.id} aria-label=${label}>
    ${isAnswer
      ? html`<${Answer} shown=${shown} commands=${commands} isLeaf=${isLeaf} />`
      : html`<${Question} shown=${shown} commands=${commands} isLeaf=${isLeaf} />`}
  </article>`;
}

/** Returns the name of the model of an answer. @param {object} message */
export function nameOf(message) {
  return [findModel(message.model)?.name, message.modelName, message.selectedModelId, message.model].find((name) => typeof name === "string" && name) ?? t("chat.assistant");
}

function Question({ shown, commands, isLeaf }) {
  const isEditing = useSignal(false);
  if (isEditing.value) {
    const close = () => (isEditing.value = false);
    return html`<${Editor} text=${plainText(shown.content)} verb=${t("chat.sendAgain")} close=${close}
      save=${(text) => commands.edit(shown, text)} />`;
  }
  return html`<div class="bubble">
      <${MessageFiles} files=${shown.files} />
      <div class="question-text" dir="auto">${plainText(shown.content)}</div>
    </div>
    <${MessageActions} shown=${shown} commands=${commands} isLeaf=${isLeaf} edit=${() => (isEditing.value = true)} />`;
}

function Answer({ shown, commands, isLeaf }) {
  const isEditing = useSignal(false);
  const opened = useSignal(null);
  const isRunning = shown.done === false;
  const sources = useMemo(() => numberSources(shown.sources), [shown.sources]);
  const openSource = (number) => (opened.value = sources.find((source) => source.number === number) ?? null);
  return html`<h2 class="message-name" dir="auto">${nameOf(shown)}</h2>
    <${StatusHistory} history=${shown.statusHistory} isRunning=${isRunning} />
    ${isEditing.value
      ? html`<${Editor} text=${plainText(shown.content)} verb=${t("common.save")} close=${() => (isEditing.value = false)}
          save=${(text) => commands.rewrite(shown, text)} />`
      : html`<${AnswerParts} shown=${shown} sources=${sources} isRunning=${isRunning} onSource=${openSource} />`}
    ${codeRuns(shown.sources).map((run, place) => html`<${CodeRun} key=${run.id ?? place} run=${run} />`)}
    <${MessageFiles} files=${shown.files} />
    <${Embeds} shown=${shown} commands=${commands} />
    <${AnswerError} shown=${shown} commands=${commands} />
    <${SourceChips} sources=${sources} onOpen=${openSource} />
    <${MessageActions} shown=${shown} commands=${commands} isLeaf=${isLeaf} edit=${() => (isEditing.value = true)}>
      <${AnswerSpeed} shown=${shown} isRunning=${isRunning} />
    <//>
    ${isLeaf && !isRunning && html`<${FollowUps} questions=${shown.followUps} commands=${commands} />`}
    ${opened.value && html`<${PassagePanel} source=${opened.value} onClose=${() => (opened.value = null)} />`}`;
}

function AnswerParts({ shown, sources, isRunning, onSource }) {
  const parts = useMemo(() => partsOf(shown.content), [shown.content]);
  if (parts.length === 0 && isRunning && !shown.statusHistory?.length) {
    return html`<p class="status-line pulse">${t("chat.waiting")}</p>`;
  }
  return parts.map((part, place) => {
    const isOpen = isRunning && place === parts.length - 1;
    if (part.kind === "reasoning") return html`<${Reasoning} key=${place} part=${part} isRunning=${isOpen} />`;
    if (part.kind === "tool") return html`<${ToolCall} key=${place} part=${part} isRunning=${isOpen} />`;
    return html`<${Prose} key=${place} text=${part.text} streaming=${isOpen} sources=${sources} onSource=${onSource} />`;
  });
}

function AnswerSpeed({ shown, isRunning }) {
  const meter = useRef(null);
  if (!isRunning) return html`<${Speed} rate=${reportedRate(shown.usage)} isEstimated=${false} />`;
  meter.current ??= new SpeedMeter();
  meter.current.add(plainText(shown.content).length, performance.now());
  return html`<${Speed} rate=${meter.current.rate()} isEstimated=${true} />`;
}

function AnswerError({ shown, commands }) {
  if (!shown.error) return null;
  const error = { message: errorText(shown.error) || t("chat.failed"), requestId: shown.error.requestId };
  return html`<${AnswerFailure} error=${error} retry=${commands.regenerate && (() => commands.regenerate(shown))} />`;
}

function AnswerFailure({ error, retry }) {
  return html`<div class="error-note" role="alert">
    <${Icon} name="circle-alert" />
    <div><p>${t("chat.answerFailed")}</p><p class="help" dir="auto">${error.message}</p></div>
    ${retry && html`<${Button} onClick=${retry}>${t("common.tryAgain")}<//>`}
  </div>`;
}

function Embeds({ shown, commands }) {
  const embeds = (Array.isArray(shown.embeds) ? shown.embeds : []).filter((embed) => typeof embed === "string");
  return embeds.map((embed, place) => {
    const content = /^https?:\/\//.test(embed.trim()) ? { url: embed.trim() } : { html: embed };
    return html`<${EmbedFrame} key=${place} ...${content} title=${t("chat.embed", { number: place + 1 })}
      onPrompt=${commands.fill} onSubmit=${commands.submit} />`;
  });
}

function FollowUps({ questions, commands }) {
  const known = (Array.isArray(questions) ? questions : []).filter((question) => typeof question === "string" && question);
  if (known.length === 0 || !commands.submit) return null;
  return html`<section class="follow-ups"><h3>${t("chat.followUps")}</h3>
    <ul>${known.map((question) => html`<li key=${question}>
      <button type="button" class="follow-up" dir="auto" onClick=${() => commands.submit(question)}>${question}</button></li>`)}</ul>
  </section>`;
}

function Editor({ text, verb, save, close }) {
  const field = useRef(null);
  const error = useSignal(null);
  const isSaving = useSignal(false);
  useEffect(() => {
    field.current.focus();
    field.current.setSelectionRange(text.length, text.length);
  }, []);
  const submit = async () => {
    isSaving.value = true;
    try {
      await save(field.current.value);
      close();
    } catch (failure) {
      error.value = failure;
    } finally {
      isSaving.value = false;
    }
  };
  const onKeyDown = (event) => {
    if (isComposing(event)) return;
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="editor">
    <textarea ref=${field} class="composer-text" dir="auto" rows="3" aria-label=${t("chat.editText")} onKeyDown=${onKeyDown}>${text}</textarea>
    <${ErrorNote} error=${error.value} />
    <div class="dialog-buttons">
      <${Button} onClick=${close}>${t("common.cancel")}<//>
      <${Button} kind="primary" busy=${isSaving.value} onClick=${submit}>${verb}<//>
    </div>
  </div>`;
}
