/**
 * The address of the page: which view it names, and how to go elsewhere without loading the page anew.
 */
import { signal } from "@preact/signals";
import { html } from "#app/core/html";

/** Where the page is: the path and the parameters of the query. */
export const location = signal(read());

const routes = [];

function read() {
  const { pathname, search } = window.location;
  const path = pathname.length > 1 ? pathname.replace(/\/+$/, "") : pathname;
  return { path, query: Object.fromEntries(new URLSearchParams(search)) };
}

addEventListener("popstate", () => {
  location.value = read();
});

/**
 * Goes to another address of the page.
 * @param {string} path with its query and fragment
 * @param {{replace?: boolean}} [options] `replace` leaves no entry in the history
 */
export function navigate(path, { replace = false } = {}) {
  const url = new URL(path, window.location.origin);
  if (url.origin !== window.location.origin) throw new Error(`not an address of this page: ${path}`);
  history[replace ? "replaceState" : "pushState"](null, "", url);
  location.value = read();
}

/**
 * Adds a route.
 * @param {string} pattern a path whose parts may be `:name`; a last part `:name?` may be absent
 * @param {() => Promise<{default: Function}>} loader imports the module whose default export is the view
 */
export function route(pattern, loader) {
  const names = [];
  const source = pattern.replace(/\/:(\w+)(\?)?/g, (_, name, optional) => {
    names.push(name);
    return optional ? "(?:/([^/]+))?" : "/([^/]+)";
  });
  routes.push({ pattern, loader, names, expression: new RegExp(`^${source}$`) });
}

/** Returns the route of a path with its parameters; null for an unknown path. @param {string} path */
export function match(path) {
  for (const one of routes) {
    const found = one.expression.exec(path);
    if (!found) continue;
    const params = Object.fromEntries(one.names.map((name, place) => [name, decode(found[place + 1])]));
    return { pattern: one.pattern, loader: one.loader, params };
  }
  return null;
}

function decode(part) {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * A link to an address of the page. The current one is marked for screen readers.
 * @param {{href: string, current?: boolean}} props and those of `a`
 */
export function Link({ href, current, children, onClick, ...rest }) {
  const follow = (event) => {
    onClick?.(event);
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (event.defaultPrevented || !isPlain || rest.target) return;
    event.preventDefault();
    navigate(href);
  };
  const isCurrent = current ?? location.value.path === href.replace(/[?#].*/, "");
  return html`<a href=${href} aria-current=${isCurrent ? "page" : undefined} onClick=${follow} ...${rest}>${children}</a>`;
}
