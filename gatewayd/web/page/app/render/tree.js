/**
 * Keeps elements in step with tokens: what did not change is not touched, the rest is patched or made anew.
 *
 * A kind makes the node of a token: `make(token, view)` returns {node, inner}; `parts(token, view)` its child tokens,
 * whose nodes go into `inner`; `change(made, token, view)` applies the rest of a changed token and returns false if the
 * node must be made anew.
 *
 * @typedef {{token: object, node: Node, inner?: Element, children?: Made[], state?: object}} Made
 */

/** Makes the nodes of a token and of what is in it. @returns {Made} */
export function make(token, view) {
  const kind = view.kindOf(token);
  const made = { token, kind, ...kind.make(token, view) };
  if (kind.parts) {
    made.children = kind.parts(token, view).map((part) => make(part, view));
    made.inner.append(...made.children.map((child) => child.node));
  }
  return made;
}

/** Returns what stands for a token now, which may be what stood for the one before. @param {Made} made */
export function patch(made, token, view) {
  if (made.token.raw === token.raw && made.kind === view.kindOf(token)) {
    made.token = token;
    made.kind.change?.(made, token, view);
    return made;
  }
  const isSame = made.kind === view.kindOf(token) && made.kind.change && made.kind.change(made, token, view) !== false;
  if (!isSame) return replace(made, token, view);
  made.token = token;
  if (made.kind.parts) made.children = patchAll(made.inner, made.children, made.kind.parts(token, view), view);
  return made;
}

/** Makes the nodes of a token anew. @param {Made} made */
export function replace(made, token, view) {
  const fresh = make(token, view);
  made.node.replaceWith(fresh.node);
  return fresh;
}

/** Patches children; those beyond the tokens are removed. @param {Element} inner @param {Made[]} before */
export function patchAll(inner, before, tokens, view) {
  const after = tokens.map((token, index) => {
    if (index < before.length) return patch(before[index], token, view);
    const made = make(token, view);
    inner.append(made.node);
    return made;
  });
  for (const made of before.slice(tokens.length)) made.node.remove();
  return after;
}
