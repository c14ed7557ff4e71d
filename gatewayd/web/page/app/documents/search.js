/**
 * The search in the passages of a collection, which shows why each was found.
 */
import { post } from "#app/core/api";
import { html, useRef, useState } from "#app/core/html";
import { formatNumber, t } from "#app/core/messages";
import { openPassage } from "#app/documents/passage";
import { Button } from "#app/ui/controls";
import { SearchField } from "#app/ui/fields";
import { EmptyState, ErrorNote, Skeleton } from "#app/ui/states";

const COUNT = 20;

/** A question, and the passages that the gateway would give to a model. @param {{collection: object}} props */
export function PassageSearch({ collection }) {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const running = useRef(null);
  const search = async (event) => {
    event?.preventDefault();
    if (!query.trim()) return;
    running.current?.abort();
    const { signal } = (running.current = new AbortController());
    setBusy(true);
    setError(null);
    try {
      const body = { collection_names: [collection.id], query, k: COUNT };
      setFound(await post("/api/v1/retrieval/query/explain", body, { signal }));
    } catch (failure) {
      if (failure.name === "AbortError") return;
      setError(failure);
    }
    setBusy(false);
  };
  return html`<div class="stack">
    <form class="row passage-form" role="search" onSubmit=${search}>
      <${SearchField} label=${t("documents.searchPassages")} value=${query} onInput=${setQuery} maxlength="10000" />
      <${Button} kind="primary" type="submit" busy=${isBusy}>${t("common.search")}<//>
    </form>
    <p class="help">${t("documents.searchPassagesHelp")}</p>
    <${ErrorNote} error=${error} retry=${search} />
    ${isBusy && !found && html`<${Skeleton} />`}
    ${found?.warnings.map((warning) => html`<p key=${warning} class="warning" role="status" dir="auto">${warning}</p>`)}
    ${found?.passages.length === 0 && html`<${EmptyState} icon="search" title=${t("documents.nothingFound")} />`}
    ${found && found.passages.length > 0 && html`<${Passages} passages=${found.passages} />`}
  </div>`;
}

function Passages({ passages }) {
  const best = Math.max(...passages.map((one) => one.lexical ?? 0));
  return html`<ol class="passage-list" aria-label=${t("documents.passages")}>
    ${passages.map((one) => html`<${PassageCard} key=${one.id} passage=${one} best=${best} />`)}
  </ol>`;
}

function PassageCard({ passage, best }) {
  const place = [passage.page && t("documents.page", { page: passage.page }), passage.heading].filter(Boolean).join(" · ");
  const open = () => openPassage({ fileId: passage.file_id, name: passage.path || passage.file, ...passage });
  return html`<li class="card passage-card">
    <div class="passage-head">
      <button type="button" class="link" aria-haspopup="dialog" dir="auto" onClick=${open}>${passage.path || passage.file}</button>
      <span class="help" dir="auto">${place}</span>
    </div>
    <p class="passage-text" dir="auto">${passage.text}</p>
    <${Scores} passage=${passage} best=${best} />
  </li>`;
}

/**
 * Why a passage was found: its score, and its places in the two searches that make it.
 * @param {{passage: object, best: number}} props `best` is the highest score of words among the passages
 */
export function Scores({ passage, best }) {
  const { score, similarity, dense_rank: dense, lexical, lexical_rank: words } = passage;
  const share = lexical === null ? null : best > 0 ? Math.max(lexical, 0) / best : 1;
  return html`<dl class="scores">
    <${Score} label=${t("documents.score")} value=${score} text=${percent(score)} kind="whole" />
    <${Score} label=${t("documents.meaning")} value=${similarity} text=${similarity === null ? t("documents.notFoundBy")
      : rankText(percent(similarity), dense)} />
    <${Score} label=${t("documents.words")} value=${share} text=${share === null ? t("documents.notFoundBy") : rankText(percent(share), words)} />
  </dl>`;
}

const percent = (share) => formatNumber(share, { style: "percent", maximumFractionDigits: 1 });
const rankText = (text, rank) => (rank === null ? text : t("documents.ranked", { value: text, rank: formatNumber(rank) }));

function Score({ label, value, text, kind = "" }) {
  return html`<div class="score"><dt>${label}</dt><dd>
    <meter class="meter ${kind}" min="0" max="1" value=${value ?? 0} aria-label=${label}>${text}</meter>
    <span class="numeric">${text}</span>
  </dd></div>`;
}
