/** Tests of the pure modules of the chat, without a browser: `node --test`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const HERE = new URL("../../gatewayd/web/page/app/chat/", import.meta.url);

/** Import a module that imports nothing itself; its name does not tell Node that it is one. */
function load(name) {
  const source = readFileSync(new URL(`${name}.js`, HERE), "utf8");
  return import(`data:text/javascript,${encodeURIComponent(source)}`);
}

const [tree, state, content, range, scroll, drafts, speed, sources] = await Promise.all(
  ["tree", "message_state", "content", "window", "scroll_model", "drafts", "speed", "sources_model"].map(load),
);

const history = (currentId, parents) => ({
  currentId,
  messages: Object.fromEntries(Object.entries(parents).map(([id, parentId]) => [id, { id, parentId }])),
});
const ids = (branch) => branch.map((message) => message.id);

test("a branch leads from the root to the current message, with its forks", () => {
  const forked = history("e", { a: null, b: "a", c: "b", d: "a", e: "d" });
  const branch = tree.branchOf(forked);
  assert.deepEqual(ids(branch), ["a", "d", "e"]);
  assert.deepEqual(branch[1].siblingIds, ["b", "d"]);
  assert.deepEqual(branch.map((message) => message.descendantCount), [4, 1, 0]);
  assert.deepEqual(ids(tree.branchOf(forked, "b")), ["a", "b", "c"]);
  assert.deepEqual(ids(tree.branchOf({ ...forked, currentId: "gone" })), ["a", "d", "e"]);
  assert.equal(tree.neighbour(["b", "d"], "b", 1), "d");
  assert.equal(tree.neighbour(["b", "d"], "b", -1), null);
});

test("circles and orphans still give every message a readable branch", () => {
  const broken = history("c", { a: "c", b: "a", c: "b", lost: "gone", self: "self" });
  assert.deepEqual(ids(tree.branchOf(broken)).sort(), ["a", "b", "c"]);
  assert.deepEqual(ids(tree.branchOf(broken, "lost")), ["lost"]);
  assert.deepEqual(ids(tree.branchOf(broken, "self")), ["self"]);
  assert.deepEqual(tree.branchOf({ messages: {} }), []);
  assert.deepEqual(ids(tree.branchOf(history("__proto__", { a: "constructor" }))), ["a"]);
});

const after = (message, ...events) => events.reduce((now, [type, data]) => state.reduceMessage(now, type, data), message);

test("each type of event changes what it names", () => {
  const message = { id: "m", content: "a", done: false };
  assert.equal(after(message, ["message", { content: "b" }], ["chat:message:delta", { content: "c" }]).content, "abc");
  assert.equal(after(message, ["replace", { content: "x" }]).content, "x");
  assert.equal(after(message, ["chat:message", { content: "y" }]).content, "y");
  for (const type of ["files", "chat:message:files"]) assert.deepEqual(after(message, [type, { files: [1] }]).files, [1]);
  for (const type of ["embeds", "chat:message:embeds"]) assert.deepEqual(after(message, [type, { embeds: ["<p>"] }]).embeds, ["<p>"]);
  for (const type of ["source", "citation"]) assert.deepEqual(after(message, [type, { document: ["d"] }]).sources, [{ document: ["d"] }]);
  assert.deepEqual(after(message, ["status", { description: "s" }]).statusHistory, [{ description: "s" }]);
  assert.equal(after(message, ["chat:message:favorite", { favorite: true }]).favorite, true);
  assert.deepEqual(after(message, ["chat:message:follow_ups", { follow_ups: ["q"] }]).followUps, ["q"]);
  const failed = after(message, ["chat:message:error", { error: { content: "no" } }]);
  assert.deepEqual([state.errorText(failed.error), failed.done], ["no", true]);
  assert.equal(after(message, ["chat:tasks:cancel", {}]).done, true);
});

test("completions replace the text, extend it by a delta, and finish the answer", () => {
  const message = { id: "m", content: "a", done: false };
  assert.equal(after(message, ["chat:completion", { content: "whole" }]).content, "whole");
  assert.equal(after(message, ["chat:completion", { choices: [{ delta: { content: "b" } }] }]).content, "ab");
  const done = after(message, ["chat:completion", { usage: { total_tokens: 1 } }], ["chat:completion", { done: true, content: "" }]);
  assert.deepEqual([done.content, done.done, done.usage.total_tokens], ["a", true, 1]);
  const source = { document: ["d"] };
  assert.equal(after(message, ["chat:completion", { sources: [source] }], ["chat:completion", { sources: [source] }]).sources.length, 1);
});

test("a run of code is replaced by its result", () => {
  const run = { type: "code_execution", id: "r", name: "n" };
  const shown = after({ id: "m" }, ["source", run], ["source", { ...run, result: { output: "1" } }], ["source", { ...run, id: "s" }]);
  assert.deepEqual(shown.sources.map((each) => [each.id, each.result?.output]), [["r", "1"], ["s", undefined]]);
  assert.equal(sources.codeRuns(shown.sources).length, 2);
  assert.equal(sources.numberSources(shown.sources).length, 0);
});

test("each of many sources is compared once, and the oldest ones make room", () => {
  let written = 0;
  const source = (number) => ({ toJSON: () => ({ number, written: (written += 1) && 0 }), number });
  const count = state.MAX_LIST_VALUES + 50;
  let message = { id: "m" };
  for (let number = 0; number < count; number++) {
    message = after(message, ["source", source(number)]);
    if (number % 2) message = after(message, ["source", source(number)]);
  }
  assert.equal(message.sources.length, state.MAX_LIST_VALUES);
  assert.equal(message.sources.at(-1).number, count - 1);
  assert.ok(written < 2 * count, `${written} texts were written`);
  // A dropped one may come again, and a former state is as good as before.
  const again = after(message, ["source", source(0)]);
  assert.equal(again.sources.at(-1).number, 0);
  assert.equal(after(message, ["source", source(0)]).sources.at(-1).number, 0);
  assert.equal(after(again, ["source", source(0)]), again);
});

test("events with other data, and unknown ones, change nothing", () => {
  const message = { id: "m", content: "a" };
  for (const [type, data] of [["message", { content: 1 }], ["files", { files: "x" }], ["source", null], ["own", {}], ["constructor", {}], ["status", "x"]]) {
    assert.equal(state.reduceMessage(message, type, data), message);
  }
  const long = after(message, ["files", { files: Array.from({ length: 6000 }, (_, place) => place) }]);
  assert.equal(long.files.length, state.MAX_LIST_VALUES);
});

test("an event that a page has already is not applied again", () => {
  assert.equal(state.isAfter("b-7", "b-7"), false);
  assert.equal(state.isAfter("b-8", "b-7"), true);
  assert.equal(state.isAfter("b-10", "b-9"), true);
  assert.equal(state.isAfter("c-1", "b-9"), true);
  assert.equal(state.isAfter("b-1", undefined), true);
  assert.equal(state.isAfter(undefined, "b-9"), true);
  assert.deepEqual(["message", "status", "chat:completion", "chat:title", "own"].map(state.isStored), [true, true, false, false, false]);
});

test("reasoning and calls of tools are parts of an answer, texts of people are not", () => {
  const reasoning = '\n<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> a &lt;b&gt;\n> c\n</details>\n';
  const call = '\n<details type="tool_calls" done="true" id="1" name="w" arguments="{&quot;a&quot;: 1}" result="&quot;&lt;i&gt;&quot;">\n<summary>T</summary>\n</details>\n';
  const parts = content.partsOf(`before${reasoning}between${call}after`);
  assert.deepEqual(parts.map((part) => [part.kind, part.text]), [["text", "before"], ["reasoning", "a <b>\nc"], ["text", "between"], ["tool", ""], ["text", "after"]]);
  assert.deepEqual([parts[1].attributes.duration, parts[1].isDone], ["3", true]);
  assert.deepEqual([parts[3].attributes.arguments, parts[3].attributes.result], ['{"a": 1}', '"<i>"']);
  const open = content.partsOf('<details type="reasoning" done="false">\n<summary>T</summary>\n> still');
  assert.deepEqual([open[0].kind, open[0].isDone, open[0].text], ["reasoning", false, "still"]);
  assert.equal(content.readableText(`a${reasoning}b`), "a\n\nb");
  assert.equal(content.partsOf("<details><summary>s</summary>x</details>")[0].kind, "text");
  assert.equal(content.plainText([{ type: "text", text: "t" }, { type: "image_url" }]), "t");
  assert.equal(content.lastCodeBlock("```js\na\n```\n~~~\nb\n~~~\n"), "b\n");
});

test("long contents are parsed in one pass", () => {
  const began = performance.now();
  content.partsOf('<details type="reasoning" '.repeat(200_000));
  content.partsOf('<details type="reasoning" done="true">\n'.repeat(50_000));
  assert.ok(performance.now() - began < 2000);
});

test("the window never shows more than its limit and keeps to the end", () => {
  let shown = range.newest(10_000);
  assert.equal(shown.end, 10_000);
  for (let step = 0; step < 300; step += 1) {
    shown = range.older(shown);
    assert.ok(shown.end - shown.start <= range.MAX_SHOWN);
  }
  assert.deepEqual(shown, { start: 0, end: range.MAX_SHOWN });
  assert.deepEqual(range.newer(shown, 10_000), { start: range.STEP, end: range.MAX_SHOWN + range.STEP });
  assert.deepEqual(range.shifted({ start: 0, end: 5 }, 100), { start: 100, end: 105 });
  assert.equal(range.recounted({ start: 0, end: 4 }, 4, 6).end, 6);
  assert.deepEqual(range.recounted({ start: 0, end: 3 }, 10, 12), { start: 0, end: 3 });
  const around = range.around(5000, 10_000);
  assert.ok(around.start <= 5000 && around.end > 5000);
});

test("the reader's scrolling is told from the page's and the browser's", () => {
  const model = new scroll.ScrollModel();
  assert.equal(model.resized({ top: 0, height: 1000, view: 400 }), 600);
  model.announce(600);
  assert.equal(model.scrolled({ top: 600.4, height: 1000, view: 400 }), "page");
  assert.equal(model.isPinned, true);
  assert.equal(model.scrolled({ top: 500, height: 900, view: 400 }), "browser");
  assert.equal(model.isPinned, true);
  assert.equal(model.scrolled({ top: 300, height: 900, view: 400 }), "reader");
  assert.equal(model.isPinned, false);
  assert.equal(model.isButtonShown, true);
  assert.equal(model.resized({ top: 300, height: 2000, view: 400 }), null);
  assert.equal(model.scrolled({ top: 1590, height: 2000, view: 400 }), "reader");
  assert.deepEqual([model.isPinned, model.isButtonShown], [true, false]);
  model.intended(-1);
  assert.equal(model.isPinned, false);
});

test("late events of several writes are all the page's", () => {
  const model = new scroll.ScrollModel();
  model.resized({ top: 0, height: 1000, view: 400 });
  for (const top of [100, 200, 300]) model.announce(top);
  assert.equal(model.scrolled({ top: 300, height: 1000, view: 400 }), "page");
  assert.equal(model.scrolled({ top: 299, height: 1000, view: 400 }), "reader");
});

test("drafts are kept by chat, bounded, and survive a storage that fails", () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  const record = new drafts.KeptRecord(storage, "k");
  for (let number = 0; number < drafts.MAX_KEPT + 5; number += 1) record.set(`c${number}`, "x");
  assert.deepEqual([record.get("c0"), record.get("c204")], ["", "x"]);
  record.set("c204", "");
  assert.equal(record.get("c204"), "");
  record.set("__proto__", "y");
  assert.equal(record.get("__proto__"), "y");
  kept.set("k", "{not json");
  assert.equal(record.get("c1"), "");
  const full = new drafts.KeptRecord({ getItem: () => null, setItem: () => { throw new Error("full"); } }, "k");
  full.set("a", "b");
});

test("the speed is that of the last seconds", () => {
  const meter = new speed.SpeedMeter();
  assert.equal(meter.rate(), null);
  for (let step = 0; step <= 10; step += 1) meter.add(step * 40, step * 1000);
  assert.equal(meter.rate(), 10);
  assert.equal(speed.reportedRate({ eval_count: 20, eval_duration: 2e9 }), 10);
  assert.equal(speed.reportedRate(undefined), null);
});

test("sources are numbered by their origin", () => {
  const file = { source: { type: "file", id: "f", name: "a.txt" }, document: ["one", "two"], metadata: [{ source: "a.txt", page: 0 }, { source: "a.txt" }] };
  const web = { source: { name: "page" }, document: ["three"], metadata: [{ source: "https://example.com/" }] };
  const numbered = sources.numberSources([file, web, file, null, "x"]);
  assert.deepEqual(numbered.map((each) => [each.number, each.name, each.url, each.fileId]), [[1, "a.txt", "", "f"], [2, "page", "https://example.com/", ""]]);
  assert.equal(numbered[0].passages[0].page, "1");
  assert.equal(sources.numberSources([{ source: { url: "javascript:alert(1)", name: "x" } }])[0].url, "");
});
