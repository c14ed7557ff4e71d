/**
 * The picture of an account: drawn anew at a small size in this browser, so that only its pixels are sent.
 */
import { html, useRef, useState } from "#app/core/html";
import { t } from "#app/core/messages";
import { Avatar, Button } from "#app/ui/index";

const SIDE = 256;
const ABSENT = "/user.png";

/**
 * @param {{name: string, value: string, onChange: (address: string) => void, error?: string}} props
 */
export function PictureField({ name, value, onChange, error }) {
  const input = useRef(null);
  const [isBroken, setBroken] = useState(false);
  const choose = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      onChange(await drawn(file));
      setBroken(false);
    } catch {
      setBroken(true);
    }
  };
  return html`<div class="picture-field">
    <${Avatar} name=${name} src=${value} size=${64} />
    <div class="stack">
      <div class="row">
        <${Button} icon="image" onClick=${() => input.current.click()}>${t("account.profile.choosePicture")}<//>
        ${value !== ABSENT && html`<${Button} kind="plain" onClick=${() => onChange(ABSENT)}>${t("account.profile.removePicture")}<//>`}
        <input ref=${input} type="file" class="hidden" tabindex="-1" accept="image/png,image/jpeg,image/webp,image/gif"
          aria-label=${t("account.profile.choosePicture")} onChange=${choose} />
      </div>
      <p class="help">${t("account.profile.pictureHelp")}</p>
      ${(isBroken || error) && html`<p class="field-error" role="alert">${error ?? t("account.profile.notAPicture")}</p>`}
    </div>
  </div>`;
}

/** Returns the middle square of a picture as a data address; rejects for a file that is none. */
async function drawn(file) {
  const picture = await createImageBitmap(file);
  const side = Math.min(picture.width, picture.height);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.min(SIDE, side);
  const [left, top] = [(picture.width - side) / 2, (picture.height - side) / 2];
  canvas.getContext("2d").drawImage(picture, left, top, side, side, 0, 0, canvas.width, canvas.height);
  picture.close();
  return canvas.toDataURL("image/png");
}
