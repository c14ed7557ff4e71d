/** The dialog of a question that a plugin asks: yes or no, or a text, which may be masked. */
import { html, useEffect, useSignal } from "#app/core/html";
import { isComposing } from "#app/core/composing";
import { t } from "#app/core/messages";
import { Button } from "#app/ui/index";

/**
 * The question.
 * @param {{type: string, data: object, isAnswered: {value: boolean}, titleId: string, close: (answer: any) => void}} props
 *   `isAnswered` becomes true when another tab has answered
 */
export function CallDialog({ type, data, isAnswered, titleId, close }) {
  const typed = useSignal(textOf(data.value));
  useEffect(() => {
    if (isAnswered.value) close(undefined);
  }, [isAnswered.value]);
  const isInput = type === "input";
  const isMasked = isInput && data.type === "password";
  const submit = (event) => {
    event.preventDefault();
    close(isInput ? typed.peek() : true);
  };
  return html`<form method="dialog" class="call" onSubmit=${submit}
    onKeyDown=${(event) => event.key === "Enter" && isComposing(event) && event.preventDefault()}>
    <h2 id=${titleId} dir="auto">${textOf(data.title) || t(isInput ? "chat.inputTitle" : "chat.confirmTitle")}</h2>
    <p class="dialog-text" dir="auto">${textOf(data.message)}</p>
    ${isInput && html`<input class="input" type=${isMasked ? "password" : "text"} dir="auto" autofocus aria-labelledby=${titleId}
      autocomplete="off" placeholder=${textOf(data.placeholder)} value=${typed.value}
      onInput=${(event) => (typed.value = event.target.value)} />`}
    <div class="dialog-buttons">
      <${Button} onClick=${() => close(false)}>${t("common.cancel")}<//>
      <${Button} type="submit" kind="primary" autofocus=${!isInput}>${t(isInput ? "chat.answerCall" : "chat.confirm")}<//>
    </div>
  </form>`;
}

function textOf(value) {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}
