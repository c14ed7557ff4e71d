/**
 * Reader of event streams out of replies to fetch, which tells of comments too: they are how a silent stream shows
 * that it lives.
 */

/**
 * Yields the frames of a stream: {id, event, data}, and {comment: true} for each comment.
 * @param {ReadableStream<Uint8Array>} body
 */
export async function* readFrames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) yield parseFrame(block);
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection is gone already
  }
}

/** Returns the frame of a block of lines (HTML standard, 9.2.6). */
function parseFrame(block) {
  const frame = { id: "", event: "message", data: "", comment: true };
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const end = line.indexOf(":");
    if (end === 0) continue;
    const name = end < 0 ? line : line.slice(0, end);
    const value = end < 0 ? "" : line.slice(end + 1).replace(/^ /, "");
    frame.comment = false;
    if (name === "data") data.push(value);
    else if (name === "id" || name === "event") frame[name] = value;
  }
  frame.data = data.join("\n");
  return frame;
}
