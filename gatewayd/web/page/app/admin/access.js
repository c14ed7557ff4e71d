/**
 * Who may use something: nobody, everybody, or chosen groups and people.
 */
import { get } from "#app/core/api";
import { html, useEffect, useId, useState } from "#app/core/html";
import { plural, t } from "#app/core/messages";
import { Chip, ErrorNote, SearchField, Select } from "#app/ui/index";

const SEARCH_PAUSE_MS = 200;
const MAX_SHOWN = 8;
const EVERYBODY = { principal_type: "user", principal_id: "*", permission: "read" };

const isPublic = (grant) => grant.principal_id === "*";

/** Returns an access list in words. @param {{principal_type: string, principal_id: string}[] | undefined} grants */
export function describeAccess(grants) {
  if (!grants || grants.length === 0) return t("admin.access.nobody");
  if (grants.some(isPublic)) return t("admin.access.everybody");
  return plural("admin.access.some", new Set(grants.map((one) => `${one.principal_type} ${one.principal_id}`)).size);
}

/**
 * The fields of an access list.
 * @param {{value: object[], onChange: (grants: object[]) => void, help?: string}} props
 */
export function AccessFields({ value, onChange, help }) {
  const [kind, setKind] = useState(value.some(isPublic) ? "everybody" : value.length > 0 ? "some" : "nobody");
  const names = useNames(value);
  const change = (next) => {
    setKind(next);
    if (next === "everybody") onChange([EVERYBODY]);
    else onChange(next === "nobody" ? [] : value.filter((one) => !isPublic(one)));
  };
  const add = (grant, name) => {
    names.learn(grant, name);
    onChange([...value.filter((one) => keyOf(one) !== keyOf(grant)), grant]);
  };
  const options = ["nobody", "everybody", "some"].map((one) => ({ value: one, label: t(`admin.access.choices.${one}`) }));
  return html`<div class="stack">
    <${Select} label=${t("admin.access.label")} help=${help} value=${kind} options=${options} onChange=${change} />
    ${kind === "some" && html`<ul class="admin-chips" aria-label=${t("admin.access.chosen")}>
      ${value.map((one) => html`<li key=${keyOf(one)}><${Chip} icon=${one.principal_type === "group" ? "users" : "user"}
        removeLabel=${t("admin.access.remove", { name: names.of(one) })}
        onRemove=${() => onChange(value.filter((other) => other !== one))}>${names.of(one)}<//></li>`)}
    </ul>
    <${PrincipalSearch} taken=${value} add=${add} />`}
  </div>`;
}

const keyOf = (grant) => `${grant.principal_type} ${grant.principal_id} ${grant.permission}`;

/** Knows the names of groups and people by their ids. */
function useNames(grants) {
  const [known, setKnown] = useState({});
  useEffect(() => {
    const learn = (found) => setKnown((now) => ({ ...now, ...Object.fromEntries(found) }));
    if (grants.some((one) => one.principal_type === "group")) {
      get("/api/v1/groups/").then((groups) => learn(groups.map((group) => [`group ${group.id}`, group.name])), () => {});
    }
    for (const one of grants.filter((each) => each.principal_type === "user" && !isPublic(each))) {
      get(`/api/v1/users/${encodeURIComponent(one.principal_id)}`).then((user) => learn([[`user ${one.principal_id}`, user.name]]), () => {});
    }
  }, []);
  return {
    of: (grant) => known[`${grant.principal_type} ${grant.principal_id}`] ?? grant.principal_id,
    learn: (grant, name) => setKnown((now) => ({ ...now, [`${grant.principal_type} ${grant.principal_id}`]: name })),
  };
}

function PrincipalSearch({ taken, add }) {
  const [text, setText] = useState("");
  const [state, setState] = useState({ found: [] });
  const id = useId();
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      search(text, stop.signal).then((found) => setState({ found }), (error) => error.name === "AbortError" || setState({ found: [], error }));
    }, SEARCH_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  const keys = new Set(taken.map(keyOf));
  const shown = state.found.filter(({ grant }) => !keys.has(keyOf(grant))).slice(0, MAX_SHOWN);
  return html`<div class="admin-principals">
    <${SearchField} label=${t("admin.access.search")} value=${text} onInput=${setText} aria-controls=${id} />
    <${ErrorNote} error=${state.error} />
    <ul id=${id} aria-label=${t("admin.access.found")}>${shown.map(({ grant, name, detail }) => html`<li key=${keyOf(grant)}>
      <button type="button" class="menu-item" onClick=${() => add(grant, name)}>
        <span dir="auto">${name}</span><span class="detail" dir="auto">${detail}</span></button></li>`)}
    </ul>
  </div>`;
}

async function search(text, signal) {
  const [groups, people] = await Promise.all([
    get("/api/v1/groups/", { signal }),
    get(`/api/v1/users/search?query=${encodeURIComponent(text)}`, { signal }),
  ]);
  const wanted = text.trim().toLowerCase();
  return [
    ...groups
      .filter((group) => group.name.toLowerCase().includes(wanted))
      .map((group) => ({ grant: grantTo("group", group.id), name: group.name, detail: t("admin.access.group") })),
    ...people.users.map((user) => ({ grant: grantTo("user", user.id), name: user.name, detail: user.email })),
  ];
}

const grantTo = (type, id) => ({ principal_type: type, principal_id: id, permission: "read" });
