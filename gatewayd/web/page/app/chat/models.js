/** The models that the account may use, and the one that is chosen. */
import { get } from "#app/core/api";
import { computed, signal } from "#app/core/html";
import { favouriteModels } from "#app/core/preferences";
import { KeptRecord } from "#app/chat/drafts";

const LAST_MODEL = "model";
const choices = new KeptRecord(localStorage, "gatewayd-choices");

/** The models of `GET /api/models`; null while they load. */
export const models = signal(null);
/** Why the models could not be listed. */
export const modelsError = signal(null);

/** Models in the order of the picker: favourites first. */
export const orderedModels = computed(() => {
  const favourites = new Set(favouriteModels.value);
  const all = models.value ?? [];
  return [...all.filter((each) => favourites.has(each.id)), ...all.filter((each) => !favourites.has(each.id))];
});

/** Lists the models anew. */
export async function loadModels() {
  try {
    models.value = (await get("/api/models")).data.filter((each) => each.info?.meta?.hidden !== true);
    modelsError.value = null;
  } catch (error) {
    modelsError.value = error;
  }
}

/** Returns the model of an id, or undefined. @param {string} id */
export function findModel(id) {
  return models.value?.find((each) => each.id === id);
}

/**
 * Returns the model that a chat begins with: the first of some ids that exists, the last one chosen, or the first.
 * @param {(string | undefined)[]} ids
 */
export function usualModel(ids) {
  const wanted = [...ids, choices.get(LAST_MODEL)].map((id) => id && findModel(id)).find(Boolean);
  return wanted ?? orderedModels.value[0];
}

/** Remembers the model that was chosen last. @param {string} id */
export function rememberModel(id) {
  choices.set(LAST_MODEL, id);
}

/** Makes a model a favourite, or no longer. @param {string} id */
export function toggleFavourite(id) {
  const kept = favouriteModels.peek();
  favouriteModels.value = kept.includes(id) ? kept.filter((each) => each !== id) : [...kept, id];
}

/** Returns the names of what a model can do, as its record says. @param {object} model */
export function capabilitiesOf(model) {
  const told = model.info?.meta?.capabilities ?? {};
  return ["vision", "file_upload", "web_search", "image_generation", "code_interpreter"].filter((name) => told[name] === true);
}

/** Returns whether a model may be sent pictures: unless its record says that it cannot. @param {object} model */
export function takesImages(model) {
  return model?.info?.meta?.capabilities?.vision !== false;
}
