/**
 * The form of a plugin's valves, made from their JSON schema.
 */
import { get, post } from "#app/core/api";
import { html, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { FormEnd, useForm } from "#app/ui/forms";
import { Waiting } from "#app/admin/frame";
import { useResource } from "#app/ui/resource";
import { Button, Select, TextArea, TextField } from "#app/ui/index";

const SECRET = /(?:^|_)(?:key|keys|token|tokens|secret|password|passwd|credentials?)(?:$|_)/i;
const NUMBERS_OF_TOKENS = /(?:^|_)(?:max|min|num|count|limit|budget)(?:$|_)/i;

/** @param {{family: "functions" | "tools", plugin: object, close: Function, titleId: string}} props */
export function ValvesForm({ family, plugin, close, titleId }) {
  const path = `/api/v1/${family}/id/${encodeURIComponent(plugin.id)}/valves`;
  const read = useResource(async () => {
    const [schema, stored] = await Promise.all([get(`${path}/spec`), get(path)]);
    return { schema, stored: stored ?? {} };
  });
  return html`<h2 id=${titleId} dir="auto">${t("admin.valves.title", { name: plugin.name })}</h2>
    ${read.value === undefined && html`<${Waiting} of=${read} />`}
    ${read.value && !read.value.schema && html`<p>${t("admin.valves.none")}</p>
      <div class="dialog-buttons"><${Button} onClick=${() => close()}>${t("common.close")}<//></div>`}
    ${read.value?.schema && html`<${Fields} ...${read.value} path=${path} close=${close} />`}`;
}

function Fields({ schema, stored, path, close }) {
  const valves = Object.entries(schema.properties ?? {}).map(([name, spec]) => valveOf(name, spec, schema));
  const start = Object.fromEntries(valves.map((valve) => [valve.name, textOf(valve, stored[valve.name])]));
  const form = useForm(start, Object.fromEntries(valves.map((valve) => [valve.name, (text) => faultOf(valve, text)])));
  const names = Object.fromEntries(valves.map((valve) => [valve.name, valve.name]));
  const [resets, setResets] = useState(new Set());
  const onSubmit = async (event) => {
    event.preventDefault();
    const changed = valves.filter((valve) => form.values[valve.name] !== start[valve.name]);
    const body = Object.fromEntries(changed.map((valve) => [valve.name, valueOf(valve, form.values[valve.name])]));
    for (const name of resets) if (!form.values[name]) body[name] = null;
    if (await form.submit(() => post(`${path}/update`, body), names)) close(true);
  };
  return html`<form onSubmit=${onSubmit} novalidate>
    ${valves.length === 0 && html`<p>${t("admin.valves.none")}</p>`}
    ${valves.map((valve) => html`<${ValveField} key=${valve.name} valve=${valve} field=${form.field(valve.name)}
      isStored=${stored[valve.name] !== undefined && stored[valve.name] !== null} isReset=${resets.has(valve.name)}
      reset=${() => setResets(new Set([...resets, valve.name]))} />`)}
    <${FormEnd} form=${form} verb=${t("admin.valves.save")} cancel=${() => close()} />
  </form>`;
}

/** Returns what the form needs to know of a valve. */
function valveOf(name, spec, schema) {
  const own = resolve(spec, schema);
  const kinds = (own.anyOf ?? [own]).map((one) => resolve(one, schema));
  const kind = kinds.find((one) => one.type !== "null") ?? {};
  const options = own.input?.options ?? kind.enum ?? kinds.flatMap((one) => one.enum ?? []);
  return {
    name,
    label: own.title ?? name,
    description: own.description ?? "",
    type: kind.type ?? "string",
    fallback: own.default,
    options: options.map((one) => (typeof one === "object" && one !== null ? one : { value: one, label: String(one) })),
    isSecret: isSecret(name, own, kind),
  };
}

function resolve(spec, schema) {
  const name = spec?.$ref?.split("/").at(-1);
  return name ? { ...schema.$defs?.[name], ...spec } : (spec ?? {});
}

/** Returns whether a value is shown as dots: by its declaration, or by its name as gatewayctl does. */
function isSecret(name, own, kind) {
  if (own.format === "password" || kind.format === "password" || own.input?.type === "password") return true;
  const isNumber = ["integer", "number", "boolean"].includes(kind.type);
  return !isNumber && SECRET.test(name) && !NUMBERS_OF_TOKENS.test(name);
}

function textOf(valve, value) {
  if (value === undefined || value === null || valve.isSecret) return "";
  return typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}

function faultOf(valve, text) {
  if (text === "" || valve.options.length > 0) return "";
  try {
    valueOf(valve, text);
    return "";
  } catch {
    return t(`admin.valves.faults.${valve.type === "integer" || valve.type === "number" ? "number" : "json"}`);
  }
}

/** Returns the value of a text; null stands for the default. Throws for a wrong text. */
function valueOf(valve, text) {
  if (text === "") return null;
  if (valve.options.length > 0) return valve.options.find((one) => String(one.value) === text)?.value ?? text;
  if (valve.type === "boolean") return text === "true";
  if (valve.type === "integer" || valve.type === "number") {
    const number = Number(text);
    if (!Number.isFinite(number) || (valve.type === "integer" && !Number.isInteger(number))) throw new Error("not a number");
    return number;
  }
  return valve.type === "array" || valve.type === "object" ? JSON.parse(text) : text;
}

function ValveField({ valve, field, isStored, isReset, reset }) {
  const fallback = textOf({ ...valve, isSecret: false }, valve.fallback);
  const standard = fallback && !valve.isSecret ? t("admin.valves.standard", { value: fallback }) : t("admin.valves.unset");
  const common = { label: valve.label, help: valve.description, ...field };
  if (valve.type === "boolean" || valve.options.length > 0) {
    const found = valve.options.length > 0 ? valve.options : [true, false].map((value) => ({ value, label: t(`admin.valves.${value}`) }));
    const options = [{ value: "", label: standard }, ...found.map((one) => ({ value: String(one.value), label: one.label ?? String(one.value) }))];
    return html`<${Select} ...${common} options=${options} onChange=${field.onInput} />`;
  }
  if (valve.isSecret) {
    const isKept = isStored && !isReset;
    return html`<div class="admin-secret"><${TextField} type="password" autocomplete="off" ...${common}
      placeholder=${isKept ? "••••••••" : ""} help=${[valve.description, isKept ? t("admin.forms.secretStored") : ""].filter(Boolean).join(" ")} />
      ${isKept && html`<${Button} kind="plain" onClick=${reset}>${t("admin.valves.forget", { name: valve.label })}<//>`}</div>`;
  }
  if (valve.type === "array" || valve.type === "object") {
    return html`<${TextArea} ...${common} dir="ltr" spellcheck=${false} placeholder=${standard} />`;
  }
  return html`<${TextField} ...${common} autocomplete="off" placeholder=${standard}
    inputmode=${valve.type === "string" ? "text" : "decimal"} />`;
}
