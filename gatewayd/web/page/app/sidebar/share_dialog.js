/**
 * The link to a shared chat: what it shows, and how to stop it.
 */
import { del, get, post } from "#app/core/api";
import { html, useEffect, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Button, CopyButton } from "#app/ui/controls";
import { TextField } from "#app/ui/fields";
import { ErrorNote, Skeleton } from "#app/ui/states";

/** Asks for nothing; the link stays after the dialog. @param {{chat: {id: string, title: string}}} props */
export function ShareDialog({ chat, titleId, close }) {
  const [shareId, setShareId] = useState(undefined);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const path = `/api/v1/chats/${encodeURIComponent(chat.id)}`;
  const attempt = async (work) => {
    setBusy(true);
    setError(null);
    try {
      setShareId(await work());
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const find = () => attempt(async () => (await get(`${path}/branch?limit=1`)).chat.share_id);
  useEffect(() => void find(), []);
  const share = () => attempt(async () => (await post(`${path}/share`)).share_id);
  const stop = () => attempt(async () => {
    await del(`${path}/share`);
    return null;
  });
  return html`<h2 id=${titleId} dir="auto">${t("sidebar.shareTitle", { title: chat.title })}</h2>
    <p class="dialog-text">${t("sidebar.shareText")}</p>
    <${ErrorNote} error=${error} retry=${shareId === undefined ? find : undefined} />
    ${shareId === undefined && !error && html`<${Skeleton} lines=${1} />`}
    ${shareId && html`<${ShareLink} shareId=${shareId} />`}
    <div class="dialog-buttons">
      <${Button} onClick=${() => close()}>${t("common.close")}<//>
      ${shareId && html`<${Button} icon="link-2-off" busy=${isBusy} onClick=${stop}>${t("sidebar.stopSharing")}<//>`}
      ${shareId !== undefined && html`<${Button} kind="primary" icon="link" busy=${isBusy} onClick=${share}>
        ${t(shareId ? "sidebar.updateLink" : "sidebar.createLink")}<//>`}
    </div>`;
}

function ShareLink({ shareId }) {
  const address = new URL(`/s/${encodeURIComponent(shareId)}`, window.location.origin).href;
  return html`<div class="share-link">
    <${TextField} label=${t("sidebar.link")} value=${address} readonly onFocus=${(event) => event.target.select()} />
    <${CopyButton} text=${address} label=${t("sidebar.copyLink")} />
  </div>`;
}
