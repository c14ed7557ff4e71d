/** The folded parts of an answer: status history, reasoning, tool calls and runs of code. */
import { html, useSignal } from "#app/core/html";
import { formatNumber, plural, t } from "#app/core/messages";
import { Icon } from "#app/ui/index";
import { Prose } from "#app/chat/rendering";

const MAX_SHOWN_STEPS = 200;

/**
 * The status history: the current line with a pulse while the answer runs, earlier ones folded.
 * @param {{history: object[], isRunning: boolean}} props
 */
export function StatusHistory({ history, isRunning }) {
  const visible = (history ?? []).filter((status) => status && status.hidden !== true);
  const current = visible.at(-1);
  if (current === undefined) return null;
  const earlier = visible.slice(0, -1);
  const isActive = isRunning && current.done !== true;
  return html`<div class="statuses">
    ${earlier.length > 0 && html`<details class="fold">
      <summary>${plural("chat.steps", earlier.length)}</summary>
      <ol>${earlier.slice(-MAX_SHOWN_STEPS).map((status, place) => html`<li key=${place}><${StatusLine} status=${status} /></li>`)}</ol>
    </details>`}
    <div class="status-line ${isActive ? "pulse" : ""}"><${StatusLine} status=${current} /></div>
  </div>`;
}

/** One status; known actions have a text of the page, and searches name what they looked for. */
function StatusLine({ status }) {
  const queries = Array.isArray(status.queries) ? status.queries.filter((each) => typeof each === "string") : [];
  const items = Array.isArray(status.items) ? status.items : [];
  return html`<span class=${status.error ? "field-error" : ""} dir="auto">${describe(status)}</span>
    ${queries.length > 0 && html`<ul class="status-queries">${queries.map((query) => html`<li key=${query} dir="auto">${query}</li>`)}</ul>`}
    ${items.length > 0 && html`<ul class="status-queries">${items.map((item) => html`<li key=${item?.link} dir="auto">
      ${String(item?.title ?? item?.link ?? "")}</li>`)}</ul>`}`;
}

function describe(status) {
  if (typeof status.description === "string" && status.description) return status.description;
  if (status.action === "sources_retrieved") return plural("chat.sourcesFound", Number(status.count) || 0);
  if (status.action === "queries_generated") return t("chat.searching");
  return typeof status.action === "string" ? status.action : "";
}

/** The reasoning of a model, with its seconds. @param {{part: object, isRunning: boolean}} props */
export function Reasoning({ part, isRunning }) {
  const isOpen = useSignal(false);
  const isActive = isRunning && !part.isDone;
  const seconds = Number(part.attributes.duration);
  const label = isActive ? t("chat.reasoning") : seconds > 0 ? plural("chat.reasoned", seconds) : t("chat.reasonedShortly");
  return html`<details class="fold reasoning" open=${isOpen.value} onToggle=${(event) => (isOpen.value = event.target.open)}>
    <summary class=${isActive ? "pulse" : ""}>${label}</summary>
    ${isOpen.value && html`<div class="fold-content"><${Prose} text=${part.text} streaming=${isActive} /></div>`}
  </details>`;
}

/** A call of a tool with its arguments and its result. @param {{part: object, isRunning: boolean}} props */
export function ToolCall({ part, isRunning }) {
  const { name = "", arguments: given = "", result = "" } = part.attributes;
  const isActive = isRunning && !part.isDone;
  const label = name ? t(isActive ? "chat.toolRuns" : "chat.toolRan", { name }) : t("chat.codeRan");
  return html`<details class="fold tool-call">
    <summary class=${isActive ? "pulse" : ""}><${Icon} name="wrench" size=${14} /> <span dir="auto">${label}</span></summary>
    <div class="fold-content">
      ${given && html`<h3>${t("chat.toolArguments")}</h3><pre tabindex="0" dir="ltr">${given}</pre>`}
      ${result && html`<h3>${t("chat.toolResult")}</h3><pre tabindex="0" dir="auto">${readable(result)}</pre>`}
      ${!given && !result && part.text && html`<pre tabindex="0" dir="ltr">${part.text}</pre>`}
    </div>
  </details>`;
}

/** A run of code that a plugin told as a source. @param {{run: object}} props */
export function CodeRun({ run }) {
  const { output, error, files } = run.result ?? {};
  const isActive = run.result === undefined || run.result === null;
  const named = (Array.isArray(files) ? files : []).filter((file) => typeof file?.name === "string");
  return html`<details class="fold code-run">
    <summary class=${isActive ? "pulse" : ""}><${Icon} name="square-terminal" size=${14} />
      <span dir="auto">${t(isActive ? "chat.codeRuns" : "chat.codeRanNamed", { name: String(run.name ?? "") })}</span></summary>
    <div class="fold-content">
      <${Prose} text=${fenced(String(run.code ?? ""), String(run.language ?? ""))} />
      ${typeof output === "string" && output && html`<pre tabindex="0" dir="auto">${output}</pre>`}
      ${typeof error === "string" && error && html`<pre tabindex="0" dir="auto" class="field-error">${error}</pre>`}
      ${named.length > 0 && html`<ul>${named.map((file) => html`<li key=${file.name} dir="auto">${file.name}</li>`)}</ul>`}
    </div>
  </details>`;
}

/** The speed of an answer. @param {{rate: number | null, isEstimated: boolean}} props */
export function Speed({ rate, isEstimated }) {
  if (rate === null || !Number.isFinite(rate) || rate <= 0) return null;
  const value = formatNumber(rate, { maximumFractionDigits: rate < 10 ? 1 : 0 });
  return html`<span class="speed tabular">${t(isEstimated ? "chat.speedAbout" : "chat.speed", { value })}</span>`;
}

function fenced(code, language) {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([marks]) => marks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language.replace(/[^\w+#-]/g, "")}\n${code}\n${fence}`;
}

function readable(result) {
  try {
    const value = JSON.parse(result);
    return typeof value === "string" ? value : JSON.stringify(value, null, 2);
  } catch {
    return result;
  }
}
