/** The files of a message: pictures of the gateway at once, foreign ones as links, others to save. */
import { html } from "#app/core/html";
import { formatBytes, t } from "#app/core/messages";
import { safeLink } from "#app/render/links";
import { Icon } from "#app/ui/index";

const OWN = /^\/api\/v1\/files\/[\w-]+\/content(?:\/[^?#/\\]+)?$/;
const DATA_PICTURE = /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]+$/;

/** The files. @param {{files: object[]}} props */
export function MessageFiles({ files }) {
  const known = (Array.isArray(files) ? files : []).filter((file) => file !== null && typeof file === "object");
  if (known.length === 0) return null;
  return html`<ul class="message-files" aria-label=${t("chat.files")}>
    ${known.map((file, place) => html`<li key=${file.id ?? place}><${MessageFile} file=${file} /></li>`)}
  </ul>`;
}

function MessageFile({ file }) {
  const url = typeof file.url === "string" ? file.url : "";
  const name = typeof file.name === "string" && file.name ? file.name : t("chat.file");
  const isPicture = file.type === "image" || String(file.content_type ?? "").startsWith("image/");
  if (isPicture && (OWN.test(url) || DATA_PICTURE.test(url))) {
    return html`<img class="message-picture" src=${url} alt=${name} width=${file.width} height=${file.height} loading="lazy" />`;
  }
  const content = html`<${Icon} name=${iconOf(file)} size=${16} /> <span dir="auto">${name}</span>
    ${Number.isFinite(file.size) && html` <span class="help">${formatBytes(file.size)}</span>`}`;
  const href = addressOf(file, url);
  if (!href) return html`<span class="file-chip">${content}</span>`;
  return html`<a class="file-chip" href=${href} target="_blank" rel="noopener noreferrer">${content}</a>`;
}

function addressOf(file, url) {
  if (OWN.test(url)) return `${url}?attachment=true`;
  const link = /^https?:\/\//.test(url) && safeLink(url);
  if (link) return link.href;
  if (file.type === "collection") return `/documents/${encodeURIComponent(String(file.id))}`;
  return file.type === "file" && typeof file.id === "string"
    ? `/api/v1/files/${encodeURIComponent(file.id)}/content?attachment=true`
    : "";
}

function iconOf(file) {
  return { image: "image", collection: "library" }[file.type] ?? "file-text";
}
