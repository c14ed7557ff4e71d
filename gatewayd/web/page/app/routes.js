/**
 * Every address of the page with the module of its view, which is loaded when somebody goes there.
 */
const chat = () => import("#app/chat/view");

export const ROUTES = [
  ["/", chat],
  ["/c/:id", chat],
  ["/s/:id", () => import("#app/chat/shared")],
  ["/auth", () => import("#app/signin/view")],
  ["/overview", () => import("#app/sidebar/overview")],
  ["/documents", () => import("#app/documents/view")],
  ["/documents/:id", () => import("#app/documents/view")],
  ["/settings/:section?", () => import("#app/account/settings")],
  ["/admin", () => import("#app/account/users")],
  ["/admin/users", () => import("#app/account/users")],
  ["/admin/groups", () => import("#app/account/groups")],
  ["/admin/groups/:id", () => import("#app/account/groups")],
  ["/admin/permissions", () => import("#app/account/permissions")],
  ["/admin/general", () => import("#app/account/general")],
  ["/admin/connections", () => import("#app/admin/connections")],
  ["/admin/models", () => import("#app/admin/models")],
  ["/admin/functions", () => import("#app/admin/functions")],
  ["/admin/tools", () => import("#app/admin/tools")],
  ["/admin/collections", () => import("#app/admin/collections")],
  ["/admin/scim", () => import("#app/admin/scim")],
  ["/admin/status", () => import("#app/admin/status")],
];

/** Patterns of the views whose texts come with the page. */
export const FIRST = new Set(["/", "/c/:id", "/s/:id", "/auth", "/overview"]);
/** Patterns of the views that one sees without an account. */
export const OPEN = new Set(["/auth"]);
/** Beginning of the addresses that are for administrators. */
export const ADMIN = "/admin";
