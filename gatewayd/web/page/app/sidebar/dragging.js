/**
 * Dragging of chats and folders. What is dragged can also be moved by its menu.
 */
import { useState } from "#app/core/html";

/** Kinds of what is dragged, which no other page knows. */
export const CHAT_TYPE = "application/x-gatewayd-chat";
export const FOLDER_TYPE = "application/x-gatewayd-folder";

/** Begins to drag something. @param {DragEvent} event @param {string} type @param {string} id */
export function startDrag(event, type, id) {
  event.stopPropagation();
  event.dataTransfer.setData(type, id);
  event.dataTransfer.effectAllowed = "move";
}

/**
 * Returns whether something is over a place, and the handlers for that place.
 * @param {(type: string, id: string) => void} onDrop gets what was dropped
 */
export function useDropPlace(onDrop) {
  const [depth, setDepth] = useState(0);
  const typeOf = (event) => [CHAT_TYPE, FOLDER_TYPE].find((type) => event.dataTransfer.types.includes(type));
  const handlers = {
    onDragEnter: (event) => typeOf(event) && setDepth((before) => before + 1),
    onDragLeave: (event) => typeOf(event) && setDepth((before) => Math.max(before - 1, 0)),
    onDragOver: (event) => {
      if (!typeOf(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "move";
    },
    onDrop: (event) => {
      const type = typeOf(event);
      setDepth(0);
      if (!type) return;
      event.preventDefault();
      event.stopPropagation();
      onDrop(type, event.dataTransfer.getData(type));
    },
  };
  return { isOver: depth > 0, handlers };
}
