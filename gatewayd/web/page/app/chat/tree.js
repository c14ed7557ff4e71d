/**
 * The history tree of a chat: branches, forks and leaves.
 *
 * A history is `{messages: {id: {id, parentId, childrenIds, ...}}, currentId}`, as gatewayd-api(7), REPLIES has
 * it. Only `parentId` counts: children are derived. A missing parent is a root, and a circle is cut at the
 * message where a walk upwards meets it a second time, so that every message stays readable.
 */

/**
 * The tree of a history, for quick walks.
 * @typedef {{parents: Map<string, string|null>, children: Map<string, string[]>, roots: string[]}} Tree
 */

/**
 * Return the tree of the messages of a history.
 * @param {Record<string, object>} messages
 * @returns {Tree}
 */
export function readTree(messages) {
  const parents = cutCircles(messages);
  const children = new Map([...parents.keys()].map((id) => [id, []]));
  const roots = [];
  for (const [id, parent] of parents) (parent === null ? roots : children.get(parent)).push(id);
  return { parents, children, roots };
}

/**
 * Return the branch through a message: its ancestors, itself and its newest descendants.
 *
 * Each message has `siblingIds` and `descendantCount`, as pages of a branch have them.
 * @param {{messages: Record<string, object>, currentId?: string|null}} history
 * @param {string} [through] the current message by default, else the last one
 * @returns {object[]} oldest message first
 */
export function branchOf(history, through) {
  const messages = history.messages ?? {};
  const tree = readTree(messages);
  const wanted = [through, history.currentId].find((id) => tree.parents.has(id));
  const leaf = wanted === undefined ? [...tree.parents.keys()].at(-1) : through === wanted ? leafBelow(tree, wanted) : wanted;
  const sizes = subtreeSizes(tree);
  return pathTo(tree, leaf).map((id) => ({
    ...messages[id],
    id,
    parentId: tree.parents.get(id),
    childrenIds: tree.children.get(id),
    siblingIds: siblingsOf(tree, id),
    descendantCount: sizes.get(id) - 1,
  }));
}

/**
 * Return the leaf that is reached from a message by its newest children.
 * @param {Tree} tree
 * @param {string} id
 * @returns {string}
 */
export function leafBelow(tree, id) {
  let at = id;
  while (tree.children.get(at)?.length) at = tree.children.get(at).at(-1);
  return at;
}

/**
 * Return the ids of the messages with the same parent, itself included.
 * @param {Tree} tree
 * @param {string} id
 * @returns {string[]}
 */
export function siblingsOf(tree, id) {
  const parent = tree.parents.get(id) ?? null;
  return parent === null ? tree.roots : tree.children.get(parent);
}

/**
 * Return the sibling a step away, or null at either end.
 * @param {string[]} siblings
 * @param {string} id
 * @param {number} step
 * @returns {string|null}
 */
export function neighbour(siblings, id, step) {
  return siblings[siblings.indexOf(id) + step] ?? null;
}

function pathTo(tree, leaf) {
  const path = [];
  for (let at = leaf ?? null; at !== null; at = tree.parents.get(at)) path.push(at);
  return path.reverse();
}

function cutCircles(messages) {
  const parents = new Map();
  for (const [id, message] of Object.entries(messages)) {
    const parent = message?.parentId ?? null;
    parents.set(id, Object.hasOwn(messages, parent) ? parent : null);
  }
  const safe = new Set();
  for (const id of parents.keys()) {
    const walked = new Set();
    let at = id;
    while (at !== null && !safe.has(at) && !walked.has(at)) {
      walked.add(at);
      at = parents.get(at);
    }
    if (at !== null && walked.has(at)) parents.set(at, null);
    for (const each of walked) safe.add(each);
  }
  return parents;
}

function subtreeSizes(tree) {
  const order = [...tree.roots];
  for (let place = 0; place < order.length; place += 1) order.push(...tree.children.get(order[place]));
  const sizes = new Map(order.map((id) => [id, 1]));
  for (const id of order.reverse()) {
    const parent = tree.parents.get(id);
    if (parent !== null) sizes.set(parent, sizes.get(parent) + sizes.get(id));
  }
  return sizes;
}
