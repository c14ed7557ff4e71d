async () => {
  // Shows every building block of app/ui, for the tests of the page.
  const { html, render, useState } = await import("#app/core/html");
  const ui = await import("#app/ui/index");
  const { Toasts } = await import("#app/core/toasts");
  const { Dialogs, openDialog, confirmDialog, promptDialog } = await import("#app/core/dialogs");
  const { ApiError } = await import("#app/core/api");
  const failure = new ApiError("cannot do it: the file is too large", { status: 413, code: "x", requestId: "r-1" });
  const options = [{ value: "a", label: "First" }, { value: "b", label: "Second" }];
  const rows = [
    { id: "1", name: "Zoe", count: 3 },
    { id: "2", name: "ann", count: 20 },
    { id: "3", name: "Bob", count: 100 },
  ];
  const columns = [
    { key: "name", label: "Name", sort: (row) => row.name },
    { key: "count", label: "Count", sort: (row) => row.count, numeric: true },
    { key: "act", label: "Actions", hideLabel: true, cell: (row) => html`<${ui.IconButton} icon="x" label="Remove ${row.name}" />` },
  ];
  window.log = [];
  const note = (text) => window.log.push(text);
  function Gallery() {
    const [text, setText] = useState("");
    const [isOn, setOn] = useState(false);
    const [tab, setTab] = useState("one");
    const [selected, setSelected] = useState(new Set());
    const [isOpen, setOpen] = useState(false);
    const items = [
      { label: "Rename", icon: "pencil", run: () => note("rename") },
      { label: "Pinned", checked: true, run: () => note("pin") },
      { label: "Never", disabled: true, run: () => note("never") },
      null,
      { label: "Delete", icon: "trash-2", danger: true, run: () => note("delete") },
    ];
    return html`<main class="view" tabindex="-1">
      <h1>Gallery</h1>
      <div class="row">
        <${ui.Button} kind="primary" onClick=${() => note("saved")}>Save<//><${ui.Button}>Other<//>
        <${ui.Button} kind="danger" icon="trash-2">Delete<//><${ui.Button} busy>Busy<//>
        <${ui.IconButton} icon="pin" label="Pin" pressed=${true} /><${ui.CopyButton} text="copied text" />
        <${ui.Menu} label="More" items=${items} /><${ui.Menu} label="Sort order" text="Sort" items=${items} />
        <${ui.Tooltip} text="An explanation"><button type="button" class="button">Tip</button><//>
      </div>
      <${ui.TextField} label="Name" value=${text} onInput=${setText} help="As others see it." />
      <output>${text}</output>
      <${ui.TextField} label="Port" value="x" error="A port is a number." />
      <${ui.TextField} label="Address" value="https://a" origin="Set in gatewayd.toml" />
      <${ui.TextArea} label="Prompt" value="Long text" />
      <${ui.Select} label="Role" value="b" options=${options} onChange=${note} />
      <${ui.Switch} label="Sign-up" checked=${isOn} onChange=${setOn} help="People make accounts." />
      <${ui.Checkbox} label="Agree" checked=${true} onChange=${() => {}} />
      <${ui.SearchField} value="" onInput=${() => {}} />
      <${ui.Tabs} label="Parts" value=${tab} onChange=${setTab} tabs=${[
        { id: "one", label: "One", content: () => html`<p>First part</p>` },
        { id: "two", label: "Two", content: () => html`<p>Second part</p>` },
      ]} />
      <${ui.Table} label="People" rows=${rows} columns=${columns} rowName=${(row) => row.name}
        selected=${selected} onSelect=${setSelected} />
      <p>${selected.size} selected</p>
      <div class="row">
        <${ui.Chip} icon="file">report.pdf<//><${ui.Chip} kind="success">ready<//><${ui.Chip} kind="danger">failed<//>
        <${ui.Chip} kind="warning">waits<//><${ui.Chip} kind="accent" onRemove=${() => note("chip")} removeLabel="Remove tag">tag<//>
      </div>
      <${ui.Progress} label="Upload" value=${0.4} />
      <${ui.Skeleton} />
      <${ui.ErrorNote} error=${failure} retry=${() => note("again")} />
      <${ui.EmptyState} icon="folder" title="No files" text="Files appear here."><${ui.Button}>Add<//><//>
      <div class="row"><${ui.Avatar} name="Ann Other" /><${ui.Avatar} name="ann" src="javascript:alert(1)" size=${64} /></div>
      <div class="row">
        <button type="button" class="button" onClick=${() => setOpen(true)}>Open own</button>
        <button type="button" class="button" onClick=${async () => note(await confirmDialog({ title: "Delete?", text: "It is gone then.", verb: "Delete it", danger: true }))}>Ask</button>
        <button type="button" class="button" onClick=${async () => note(await promptDialog({ title: "Secret", masked: true, placeholder: "word" }))}>Prompt</button>
      </div>
      ${isOpen && html`<${ui.Dialog} title="Own dialog" onClose=${() => setOpen(false)}>
        <${ui.Button} onClick=${() => setOpen(false)}>Done<//><//>`}
    </main><${Toasts} /><${Dialogs} />`;
  }
  const root = document.getElementById("app");
  render(null, root);
  render(html`<${Gallery} />`, root);
}
