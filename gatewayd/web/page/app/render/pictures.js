/**
 * Pictures in a text: own ones at once, those of other hosts after a click, in a frame that may load nothing but the
 * picture. An address of a picture is how a text would carry data out of a chat.
 */
import { t } from "#app/core/messages";
import { element, icon } from "#app/render/elements";
import { decodeEntities } from "#app/render/entities";
import { sanitiseImage } from "#app/render/links";
import { openShell } from "#app/render/shell_frame";

const MAX_SIDE_PIXELS = 2_000;

/**
 * Returns the element of a picture.
 * @param {{href: string, text: string}} token
 * @param {object} view
 */
export function makePicture(token, view) {
  const described = decodeEntities(token.text);
  const picture = sanitiseImage(decodeEntities(token.href));
  if (!picture) return element("span", { className: "picture-refused" }, described || t("render.picture"));
  if (picture.kind === "own") {
    return element("img", { src: picture.address, alt: described, loading: "lazy", decoding: "async" });
  }
  return question(picture, described, view);
}

function question(picture, described, view) {
  const node = element("span", { className: "picture-question" });
  const button = element("button", { type: "button", className: "button", title: picture.address });
  button.append(icon("image"), t("render.loadPicture", { host: picture.host }));
  view.act(button, () => node.replaceChildren(frameOf(picture, described)));
  node.append(button);
  if (described) node.append(element("span", { className: "picture-text" }, described));
  return node;
}

function frameOf(picture, described) {
  const frame = element("iframe", { className: "picture-frame", title: described || t("render.picture"), sandbox: "allow-scripts" });
  frame.src = "/picture.html";
  openShell(frame, { address: picture.address, text: described }, ({ width, height }) => {
    if (!isSide(width) || !isSide(height)) return;
    frame.style.inlineSize = `${width}px`;
    frame.style.aspectRatio = `${width} / ${height}`;
  });
  return frame;
}

function isSide(value) {
  return Number.isInteger(value) && value > 0 && value <= MAX_SIDE_PIXELS;
}
