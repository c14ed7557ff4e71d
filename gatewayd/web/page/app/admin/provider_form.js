/**
 * The form of a provider or runtime, with its test.
 */
import { html, useState } from "#app/core/html";
import { formatList, plural, t } from "#app/core/messages";
import { MASK, faultOfAddress, linesOf } from "#app/admin/forms";
import { FormEnd, SecretField, useForm } from "#app/ui/forms";
import { hasKey, testProvider } from "#app/admin/provider_data";
import { TestFailure } from "#app/admin/test_failure";
import { Button, Checkbox, Icon, Select, Switch, TextArea, TextField } from "#app/ui/index";

const SHOWN_MODELS = 5;
const FIELDS = { base_url: "url", key: "key", name: "name", prefix_id: "prefix", model_ids: "models", models: "models" };

const HOSTED_KINDS = ["openai", "anthropic", "azure", "gemini", "bedrock"];

/**
 * The content of the dialog.
 * @param {{family: "openai" | "ollama", entry: object, save: (entry: object) => Promise<void>, close: Function,
 *   titleId: string}} props `entry` is empty for a new one
 */
export function ProviderForm({ family, entry, save, close, titleId }) {
  const isNew = !entry.id;
  const form = useForm(
    {
      kind: entry.provider ?? "openai",
      name: entry.name ?? "",
      url: entry.url ?? "",
      key: "",
      forgets: false,
      prefix: entry.prefix_id ?? "",
      models: (entry.model_ids ?? []).join("\n"),
      enable: entry.enable ?? true,
    },
    { url: faultOfAddress },
  );
  const made = (values) => ({
    ...entry,
    provider: family === "ollama" ? "ollama" : values.kind,
    name: values.name.trim(),
    url: values.url.trim(),
    key: values.key || (hasKey(entry) && !values.forgets ? MASK : ""),
    prefix_id: values.prefix.trim(),
    model_ids: linesOf(values.models),
    enable: values.enable,
  });
  const onSubmit = async (event) => {
    event.preventDefault();
    const isSaved = await form.submit(async (values) => (await save(made(values)), true), FIELDS);
    if (isSaved) close(true);
  };
  return html`<form onSubmit=${onSubmit} novalidate>
    <h2 id=${titleId}>${t(`admin.connections.${isNew ? "add" : "edit"}.${family}`)}</h2>
    ${family === "openai" && html`<${Select} label=${t("admin.connections.kind")} help=${t("admin.connections.kindHelp")}
      value=${form.values.kind} onChange=${(kind) => form.set("kind", kind)}
      options=${HOSTED_KINDS.map((value) => ({ value, label: t(`admin.connections.kinds.${value}`) }))} />`}
    <${TextField} label=${t("admin.connections.address")} help=${t(`admin.connections.addressHelp.${family}`)}
      inputmode="url" autocomplete="off" required ...${form.field("url")} />
    <${SecretField} label=${t("admin.connections.key")} isStored=${hasKey(entry)}
      help=${t("admin.connections.keyHelp")} ...${form.field("key")} />
    ${hasKey(entry) && html`<${Checkbox} label=${t("admin.connections.forgetKey")} checked=${form.values.forgets}
      onChange=${(forgets) => form.set("forgets", forgets)} />`}
    <${TextField} label=${t("admin.connections.name")} help=${t("admin.connections.nameHelp")} autocomplete="off"
      maxlength="64" ...${form.field("name")} />
    <details class="admin-more"><summary>${t("admin.forms.more")}</summary>
      <div class="stack">
        <${TextField} label=${t("admin.connections.prefix")} help=${t("admin.connections.prefixHelp")} maxlength="64"
          autocomplete="off" ...${form.field("prefix")} />
        <${TextArea} label=${t("admin.connections.models")} help=${t("admin.connections.modelsHelp")}
          ...${form.field("models")} />
      </div>
    </details>
    <${Switch} label=${t("admin.connections.enable")} help=${t("admin.connections.enableHelp")}
      checked=${form.values.enable} onChange=${(enable) => form.set("enable", enable)} />
    <${ProviderTest} family=${family} entry=${() => made(form.values)} />
    <${FormEnd} form=${form} verb=${t("admin.forms.save")} cancel=${() => close()} />
  </form>`;
}

/** A button that asks a provider for its models, and what came of it. */
export function ProviderTest({ family, entry }) {
  const [state, setState] = useState(null);
  const run = async () => {
    setState({ isBusy: true });
    try {
      setState({ offer: await testProvider(family, entry()) });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<div class="admin-test">
    <${Button} icon="plug-zap" busy=${state?.isBusy} onClick=${run}>${t("admin.connections.test")}<//>
    <div role="status" class="admin-test-state">
      ${state?.isBusy && t("admin.connections.testing")}
      ${state?.offer && html`<p class="admin-good"><${Icon} name="circle-check" /> ${describe(state.offer)}</p>`}
    </div>
    <${TestFailure} error=${state?.error} />
  </div>`;
}

function describe({ data, version }) {
  const said = [plural("admin.connections.tested", data.length)];
  if (version) said.push(t("admin.connections.version", { version }));
  if (data.length > 0) said.push(formatList(data.slice(0, SHOWN_MODELS).map((model) => model.id)));
  return said.join(" · ") + (data.length > SHOWN_MODELS ? " …" : "");
}
