/**
 * Embeds of answers: HTML in the empty document of the gateway, pages of listed hosts, a link for all others.
 */
import { html, useLayoutEffect, useRef } from "#app/core/html";
import { t } from "#app/core/messages";
import { embedHosts } from "#app/core/policy";
import { EmbedListener } from "#app/render/embed_messages";
import { safeLink } from "#app/render/links";
import { openShell } from "#app/render/shell_frame";
import { Icon } from "#app/ui/index";

const SANDBOX = "allow-scripts allow-forms allow-downloads";
const MAX_HTML_CHARACTERS = 5_000_000;

/**
 * Returns whether administrators allow to embed pages of an address; never those of the gateway itself.
 * @param {URL} address
 * @param {string[]} [hosts] as in `embedHosts`
 */
export function isListed(address, hosts = embedHosts) {
  if (address.protocol !== "https:" || address.hostname === location.hostname) return false;
  return hosts.some((host) =>
    host.startsWith("*.") ? address.host.endsWith(host.slice(1)) : host === address.host,
  );
}

/**
 * An embed.
 * @param {{html?: string, url?: string, title: string, onPrompt?: (text: string) => void,
 *   onSubmit?: (text: string) => void, requestId?: string, payload?: unknown}} props one of `html` and `url`; `onPrompt`
 *   fills the composer, `onSubmit` sends after the reader agreed; `payload` is what the embed may ask for
 */
export function EmbedFrame({ html: markup, url, title = "", onPrompt, onSubmit, requestId, payload }) {
  const props = { title: title || t("render.embed"), onPrompt, onSubmit, requestId, payload };
  if (markup !== undefined) return html`<${Framed} key=${markup} markup=${markup} ...${props} />`;
  const address = safeLink(url ?? "");
  if (!address) return html`<p class="embed-refused">${t("render.embedRefused")}</p>`;
  if (isListed(address)) return html`<${Framed} key=${address.href} address=${address} ...${props} />`;
  return html`<p><a class="embed-link" href=${address.href} target="_blank" rel="noopener noreferrer">
    <${Icon} name="external-link" />${t("render.openEmbed", { title: props.title, host: address.host })}</a></p>`;
}

function Framed({ markup, address, ...props }) {
  const place = useRef(null);
  const latest = useRef(props);
  latest.current = props;
  useLayoutEffect(() => {
    const frame = frameOf(props.title, markup, address);
    const listener = new EmbedListener(frame, () => latest.current);
    place.current.append(frame);
    return () => {
      listener.stop();
      frame.remove();
    };
  }, []);
  return html`<div class="embed" ref=${place}></div>`;
}

function frameOf(title, markup, address) {
  const frame = document.createElement("iframe");
  frame.className = "embed-frame";
  frame.title = title;
  frame.referrerPolicy = "no-referrer";
  frame.allow = "";
  // A page of another host has that host's origin, never the one of the gateway.
  frame.sandbox = address ? `${SANDBOX} allow-same-origin` : SANDBOX;
  frame.src = address ? address.href : "/frame.html";
  if (!address) openShell(frame, { html: markup.slice(0, MAX_HTML_CHARACTERS) });
  return frame;
}
