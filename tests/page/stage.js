async () => {
  // Shows texts by app/render in the middle of the page, for the tests.
  const { createRenderer, EmbedFrame, settled } = await import("#app/render/index");
  const { Dialogs } = await import("#app/core/dialogs");
  const { html, render } = await import("#app/core/html");
  const root = document.getElementById("app");
  render(null, root);
  const main = document.createElement("main");
  const place = document.createElement("div");
  place.className = "prose";
  const embeds = document.createElement("div");
  const dialogs = document.createElement("div");
  main.className = "view";
  main.tabIndex = -1;
  main.append(Object.assign(document.createElement("h1"), { textContent: "Stage" }), place, embeds);
  root.append(main, dialogs);
  render(html`<${Dialogs} />`, dialogs);
  const log = [];
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve()));
  let renderer;
  const stage = {
    place,
    log,
    frame,
    fresh(options = {}) {
      renderer?.destroy();
      renderer = createRenderer(place, { onSource: (number) => log.push(["source", number]), ...options });
      return renderer;
    },
    show(text, options = {}) {
      stage.fresh(options).update(text, options);
    },
    update: (text, options) => renderer.update(text, options),
    settled,
    /** Shows a text growing, then whole, and returns the milliseconds that took. */
    async feed(text) {
      const begin = performance.now();
      stage.fresh({ sources: 3 });
      for (const share of [0.3, 0.6, 0.9]) {
        renderer.update(text.slice(0, text.length * share), { streaming: true });
        renderer.flush();
      }
      renderer.update(text);
      await frame();
      return performance.now() - begin;
    },
    /** Shows a text in pieces of these sizes, as it grows. */
    async grow(text, sizes, options = {}) {
      stage.fresh(options);
      let end = 0;
      for (let index = 0; end < text.length; index += 1) {
        end += sizes[index % sizes.length];
        renderer.update(text.slice(0, end), { streaming: true });
        renderer.flush();
      }
      renderer.update(text);
      await settled();
    },
    async whole(text, options = {}) {
      stage.show(text, options);
      await settled();
    },
    copy() {
      const copy = place.cloneNode(true);
      copy.normalize();
      return copy;
    },
    /** Returns where two elements differ, or "". */
    difference(one, other) {
      if (one.isEqualNode(other)) return "";
      const pair = [...one.children].map((child, index) => [child, other.children[index]]);
      const [mine, theirs] = pair.find(([child, second]) => !second || !child.isEqualNode(second)) ?? [one, other];
      const deeper = theirs && mine !== one && mine.children.length > 0 && stage.difference(mine, theirs);
      return deeper || `${(mine.outerHTML ?? "").slice(0, 600)} <> ${(theirs?.outerHTML ?? "nothing").slice(0, 600)}`;
    },
    /** Shows a text growing by `size`; returns how many blocks were complete, and which were touched after that. */
    touched(text, size) {
      stage.fresh();
      const known = new Map();
      const touched = [];
      const see = (records) => {
        for (const { target } of records) {
          const block = [...known.keys()].find((node) => node.contains(target));
          // Colours and formulas come later.
          if (block && !target.closest?.("code, .formula")) touched.push(`${known.get(block)}: ${target.nodeName}`);
        }
      };
      const observer = new MutationObserver(see);
      observer.observe(place, { subtree: true, childList: true, characterData: true, attributes: true });
      for (let end = 0; end < text.length; end += size) {
        renderer.update(text.slice(0, end), { streaming: true });
        renderer.flush();
        see(observer.takeRecords());
        [...place.children].slice(0, -2).forEach((node, index) => known.set(node, `${index} at ${end}`));
      }
      renderer.update(text);
      see(observer.takeRecords());
      observer.disconnect();
      for (const [node, name] of known) if (!node.isConnected) touched.push(`${name} is gone`);
      return [known.size, touched];
    },
    /** Returns the milliseconds that a repeated text costs. */
    cost(text, size) {
      const whole = text.repeat(size / text.length);
      const times = [1, 2, 3].map(() => {
        const begin = performance.now();
        stage.show(whole);
        return performance.now() - begin;
      });
      return Math.min(...times);
    },
    embed(props) {
      const note = (name) => (text) => log.push([name, text]);
      render(html`<${EmbedFrame} onPrompt=${note("prompt")} onSubmit=${note("submit")} ...${props} />`, embeds);
    },
  };
  window.stage = stage;
}
