/**
 * Makes elements without markup.
 */
const SVG = "http://www.w3.org/2000/svg";
const SPRITE = import.meta.resolve("#icons/sprite.svg");

/**
 * Returns an element with properties and a text.
 * @param {string} name
 * @param {object} [properties]
 * @param {string} [text]
 * @returns {HTMLElement}
 */
export function element(name, properties = {}, text = "") {
  const made = Object.assign(document.createElement(name), properties);
  if (text) made.append(text);
  return made;
}

/** Returns an icon of the sprite, which screen readers do not hear. @param {string} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("width", "16");
  svg.setAttribute("height", "16");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${SPRITE}#${name}`);
  svg.append(use);
  return svg;
}

/** Returns a button with an icon alone. @param {string} name of the icon @param {string} label */
export function iconButton(name, label) {
  const button = element("button", { type: "button", className: "icon-button", title: label, ariaLabel: label });
  button.append(icon(name));
  return button;
}
