/**
 * Input methods: whether a key belongs to the text that one composes.
 */

/**
 * Returns whether a key press is part of a composition, so that Enter in it is no command.
 * @param {KeyboardEvent} event
 */
export function isComposing(event) {
  // Safari ends the composition before the key press, which then has the code of an unknown key.
  return event.isComposing || event.keyCode === 229;
}
