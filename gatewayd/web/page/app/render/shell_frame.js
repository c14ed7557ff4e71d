/**
 * Hands a frame its content: the gateway serves an empty document with a policy of its own, which takes the content from
 * the page through a channel. Only that document has the channel; what it becomes, or where it goes, gets nothing.
 */

/**
 * Gives the document of a frame its content once.
 * @param {HTMLIFrameElement} frame its address is set, and it is not in the page yet
 * @param {object} content
 * @param {(answer: object) => void} [hear] gets what the document says through the channel
 */
export function openShell(frame, content, hear) {
  frame.addEventListener(
    "load",
    () => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }) => data && typeof data === "object" && hear?.(data);
      // The origin of a sandboxed document is opaque, which no target but "*" matches.
      frame.contentWindow.postMessage({ type: "shell:open", content }, "*", [port2]);
    },
    { once: true },
  );
}
