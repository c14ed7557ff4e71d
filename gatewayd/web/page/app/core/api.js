/**
 * Requests to the gateway with the cookie of the session, and their failures.
 */
import { early } from "#app/core/early";

/** A refused or failed request. `status` is 0 when no answer came. */
export class ApiError extends Error {
  constructor(message, fields) {
    super(message);
    this.name = "ApiError";
    this.status = fields.status;
    this.code = fields.code ?? "";
    this.param = fields.param ?? "";
    this.requestId = fields.requestId ?? "";
    this.retryAfter = fields.retryAfter ?? null;
  }
}

const unauthenticatedHandlers = new Set();

/** Calls a function whenever the gateway no longer knows the session. */
export function onUnauthenticated(handler) {
  unauthenticatedHandlers.add(handler);
}

/**
 * Sends a request and returns the parsed JSON of the answer, or the Response itself with `raw`.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body] sent as JSON; FormData is sent as it is
 * @param {{signal?: AbortSignal, headers?: Record<string, string>, raw?: boolean,
 *   onProgress?: (share: number) => void}} [options] `onProgress` hears how much of a FormData is sent, 0 to 1
 * @returns {Promise<any>}
 */
export async function api(method, path, body, { signal, headers = {}, raw = false, onProgress } = {}) {
  if (body instanceof FormData && onProgress) return upload(path, body, { onProgress, signal, method });
  const isForm = body instanceof FormData;
  const own = body === undefined || isForm ? {} : { "Content-Type": "application/json" };
  const reply = await send(path, {
    method,
    signal,
    headers: { Accept: "application/json", ...own, ...headers },
    body: body === undefined || isForm ? body : JSON.stringify(body),
  });
  if (raw) return reply;
  const text = await reply.text();
  return text === "" ? null : JSON.parse(text);
}

/** Reads something. @param {string} path @param {object} [options] */
export const get = (path, options) => api("GET", path, undefined, options);
/** Sends something. @param {string} path @param {unknown} [body] @param {object} [options] */
export const post = (path, body, options) => api("POST", path, body, options);
/** Deletes something. @param {string} path @param {unknown} [body] @param {object} [options] */
export const del = (path, body, options) => api("DELETE", path, body, options);

async function send(path, options) {
  const begun = options.method === "GET" ? early.get(path) : undefined;
  early.delete(path);
  let reply;
  try {
    reply = await (begun ?? fetch(path, { credentials: "same-origin", ...options }));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(String(error.message), { status: 0, code: "unreachable" });
  }
  if (reply.ok) return reply;
  throw failure(reply.status, await reply.text(), (name) => reply.headers.get(name));
}

/** Returns the failure of an answer, and tells of a session that has ended. */
function failure(status, text, header) {
  const { detail, error } = parse(text);
  const described = typeof error === "object" && error !== null ? error : {};
  const told = typeof detail === "string" ? detail : Array.isArray(detail) ? detail[0]?.msg : undefined;
  if (status === 401) unauthenticatedHandlers.forEach((handler) => handler());
  return new ApiError(described.message ?? told ?? `HTTP ${status}`, {
    status,
    code: described.code,
    param: described.param,
    requestId: header("X-Request-Id"),
    retryAfter: Number(header("Retry-After")) || null,
  });
}

function parse(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/**
 * Sends a form with files and tells how much of it is sent; fetch cannot.
 * @param {string} path
 * @param {FormData} formData
 * @param {{onProgress?: (share: number) => void, signal?: AbortSignal, method?: string}} [options]
 * @returns {Promise<any>} the parsed JSON of the answer
 */
export function upload(path, formData, { onProgress, signal, method = "POST" } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const aborted = () => reject(new DOMException("aborted", "AbortError"));
    request.open(method, path);
    request.setRequestHeader("Accept", "application/json");
    request.upload.onprogress = (event) => event.lengthComputable && onProgress?.(event.loaded / event.total);
    request.onerror = () => reject(new ApiError("network", { status: 0, code: "unreachable" }));
    request.onabort = aborted;
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) resolve(parse(request.responseText));
      else reject(failure(request.status, request.responseText, (name) => request.getResponseHeader(name)));
    };
    if (signal?.aborted) return aborted();
    signal?.addEventListener("abort", () => request.abort(), { once: true });
    request.send(formData);
  });
}
