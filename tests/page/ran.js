() => {
  // Returns the traces of texts that ran or could run, see injections.py.
  const found = [];
  const reached = (one) => {
    try {
      return one.ran_by_injection;
    } catch {
      return false;
    }
  };
  if ([window, ...Array.from(frames)].some(reached)) found.push("a script ran");
  const leads = /^(https?:|mailto:|data:image\/(png|jpeg|gif|webp|avif);|blob:|\/|#|$)/;
  for (const node of document.querySelectorAll("*")) {
    for (const { name, value } of node.attributes) {
      if (name.startsWith("on") || ["srcdoc", "formaction"].includes(name)) found.push(`${node.localName} has ${name}`);
      if (name === "style" && /url|position|expression/i.test(value)) found.push(`${node.localName} has the style ${value}`);
      const isAddress = ["href", "src", "xlink:href", "action"].includes(name);
      if (isAddress && !leads.test(value)) found.push(`${node.localName} leads to ${value.slice(0, 60)}`);
    }
    if (["object", "embed", "base", "applet"].includes(node.localName)) found.push(node.localName);
    const isOfHead = ["script", "style", "link", "meta"].includes(node.localName);
    if (isOfHead && !node.closest("head")) found.push(`${node.localName} in the body`);
    if (node.localName !== "img") continue;
    const { protocol, origin } = new URL(node.src, location);
    if (protocol.startsWith("http") && origin !== location.origin) found.push(`a picture of ${node.src}`);
  }
  if (!document.querySelector("#app *")) found.push("the page is gone");
  if (Object.prototype.innerHTML !== undefined || {}.html !== undefined) found.push("a prototype was changed");
  return found;
}
