// Everything about what is selected.

const html = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") element.addEventListener("click", value);
    else if (value != null && value !== "") element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== ""));
  return element;
};

const short = (value) => (value == null ? "–" : Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));

class Panel {
  constructor(graph, select) {
    this.graph = graph;
    this.select = select;
    this.usedBy = new Map();
    for (const operation of graph.data.operations) {
      for (const id of operation.inputs) gather(this.usedBy, id, operation.id);
    }
    this.savedBy = new Map();
    for (const node of graph.data.nodes) {
      for (const saved of node.saved) if (saved.tensor) gather(this.savedBy, saved.tensor, [node, saved]);
    }
  }

  about(thing, step) {
    if (thing.children) return this.group(thing);
    if (thing.next) return this.node(thing, step);
    return this.tensor(thing);
  }

  link(id, words) {
    const record = this.graph.byId.get(id) ?? this.graph.groups.get(id);
    if (!record) return "None";
    return html("button", { type: "button", class: "link", onclick: () => this.select(id) }, words ?? this.title(record));
  }

  title(record) {
    return record.label ?? record.name ?? (record.shape.length ? sizeOf(record.shape) : record.data ?? scalarOf(record));
  }

  table(rows) {
    const shown = rows.filter(([, value]) => value != null && value !== "");
    return html("table", {}, html("tbody", {}, shown.map(([name, value]) => html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, value)))));
  }

  part(title, ...children) {
    const inside = children.flat().filter(Boolean);
    return inside.length ? [html("h3", {}, title), ...inside] : [];
  }

  head(title, kind, words) {
    return [html("h2", {}, title), html("p", { class: "kind" }, html("i", { class: kind }), words)];
  }

  tensor(tensor) {
    const words = { leaf: "leaf that requires grad", constant: "leaf off the graph", intermediate: "intermediate tensor" };
    const node = this.graph.byId.get(tensor.node), unit = this.graph.unitOf.get(tensor.id);
    const saved = (this.savedBy.get(tensor.id) ?? []).map(([by, record]) => html("li", {}, this.link(by.id), ` as ${record.name.replace(/^_saved_/, "")}`));
    return [
      ...this.head(this.title(tensor), tensor.kind, words[tensor.kind] + (this.graph.roots.has(tensor.id) ? ", root of the graph" : "")),
      ...this.part("Tensor", this.table([
        ["shape", tensor.dtype ? sizeOf(tensor.shape) : "not on record"],
        ["dtype", dtypeOf(tensor.dtype)],
        ["data", tensor.data ?? (tensor.known ? "" : "not kept by the graph")],
        ["grad", tensor.grad ?? (tensor.kind === "leaf" ? "None" : "")],
        ["grad_fn", tensor.kind === "intermediate" ? this.link(tensor.node) : "None"],
        ["AccumulateGrad", tensor.kind === "leaf" && node ? this.link(node.id, "adds to .grad") : ""],
        ["is_leaf", yesNo(tensor.is_leaf)],
        ["requires_grad", yesNo(tensor.requires_grad)],
        ["output", unit?.tensors.length > 1 && unit.operation ? `number ${tensor.output_nr ?? 0} of ${unit.operation.name}` : ""],
        ["version", tensor.version ?? ""],
        ["view of", tensor.view_of ? this.link(tensor.view_of) : ""],
        ["bytes", tensor.bytes ? amount(tensor.bytes) : ""],
        ["storage", tensor.storage ?? ""],
      ])),
      ...this.part("Values", this.statistics(tensor.statistics)),
      ...this.part("Made by", unit?.operation && html("p", {}, this.link(unit.operation.node ?? tensor.node, unit.operation.name))),
      ...this.part("Used by", this.list(this.usedBy.get(tensor.id)?.map((id) => html("li", {}, this.link(id))))),
      ...this.part("Saved by", this.list(saved)),
      ...this.inside(unit),
    ];
  }

  node(node, step) {
    const formulas = Object.entries(node.formula).flatMap(([name, formula]) => [html("p", { class: "facts" }, node.accumulate ? "what it does" : `with respect to ${name}`), node.derivative[name] ? html("p", { class: "derivative" }, node.derivative[name]) : null, html("pre", {}, formula)]);
    const next = node.next.map(([id, index], entry) => html("li", {}, this.link(id), id ? `, ${index}` : "", node.inputs[entry] ? html("span", { class: "facts" }, `  for ${node.inputs[entry]}`) : ""));
    const hooks = node.hooks.map((hook) => html("li", {}, `${hook.when}${hook.output_nr == null ? "" : `, output ${hook.output_nr}`}: `, html("span", { class: "facts" }, hook.text)));
    const unit = this.graph.unitOf.get(node.id);
    return [
      ...this.head(node.name, node.accumulate ? "accumulate" : "node", node.accumulate ? "adds to the .grad of its leaf" : `backward node, number ${node.sequence} in the order of recording`),
      ...this.part(node.accumulate ? "Leaf" : "grad_fn of", unit?.tensors.length && html("p", {}, unit.tensors.slice(0, 8).flatMap((tensor, at) => [at ? ", " : "", this.link(tensor.id)]))),
      ...this.part("Source", node.line && [html("p", { class: "source" }, `${node.line.file}:${node.line.number} in ${node.line.function}`), html("pre", {}, node.line.text)]),
      ...this.part("Derivative", formulas),
      ...this.part("Saved tensors", node.saved.map((saved) => this.saved(saved, step?.freed?.has(saved.name)))),
      ...this.part("Time", Object.keys(node.seconds).length && this.table(Object.entries(node.seconds).map(([name, seconds]) => [name, duration(seconds)]))),
      ...this.part("Also saved", Object.keys(node.values).length && this.table(Object.entries(node.values))),
      ...this.part("next_functions", this.list(next)),
      ...this.part("Hooks, in the order in which they run", this.list(hooks, "ol")),
      ...this.part("Gradient that passed", step?.flows?.map((flow) => this.flow(flow)) ?? node.gradient.map((each) => this.statistics(each))),
      ...this.inside(unit),
    ];
  }

  inside(unit) {
    const path = [];
    for (let group = unit?.parent; group?.parent; group = group.parent) path.unshift(group);
    return this.part("In", path.length && html("p", {}, path.flatMap((group, at) => [at ? " › " : "", this.link(group.id)])));
  }

  list(items, name = "ul") {
    return items?.length ? html(name, {}, items.slice(0, 60), items.length > 60 ? html("li", {}, `and ${items.length - 60} more`) : "") : null;
  }

  saved(saved, freedNow) {
    const words = { ok: "as it was saved", stale: "changed since it was saved", freed: "freed by backward", packed: "packed by a hook", none: "not needed" };
    const state = freedNow ? "freed" : saved.state;
    return html("div", { class: `saved ${state}` },
      html("div", { class: "name" }, html("span", {}, saved.name.replace(/^_saved_/, "")), html("span", { class: "state" }, words[state])),
      saved.state === "none" ? null : html("div", { class: "facts" }, [sizeOf(saved.shape), dtypeOf(saved.dtype), versionsOf(saved).replace("v", "version ").replace(" → v", ", now "), saved.bytes ? amount(saved.bytes) : ""].filter(Boolean).join(" · ")),
      saved.tensor ? html("div", { class: "facts" }, "is ", this.link(saved.tensor)) : null,
      saved.data ? html("div", { class: "values" }, saved.data) : null,
      this.statistics(saved.statistics));
  }

  flow(flow) {
    return html("div", { class: "saved" },
      html("div", { class: "name" }, html("span", {}, flow.title), html("span", { class: "state" }, sizeOf(flow.shape))),
      flow.data ? html("div", { class: "values" }, flow.data) : null,
      this.statistics(flow.statistics));
  }

  /** Numbers in short, and how they are spread. */
  statistics(numbers) {
    if (!numbers) return null;
    const { histogram = [], min, max, mean, std, count, nan, inf, zero } = numbers;
    const parts = [];
    if (histogram.length > 1) {
      const most = Math.max(...histogram), wide = 100 / histogram.length;
      const bars = histogram.map((number, at) => svgElement("rect", { x: at * wide + 0.3, width: wide - 0.6, y: 40 - (38 * number) / most, height: (38 * number) / most }));
      const zeroAt = min < 0 && max > 0 ? (-min / (max - min)) * 100 : null;
      const zeroLine = zeroAt == null ? null : svgElement("line", { class: "zero", x1: zeroAt, x2: zeroAt, y1: 0, y2: 40, "vector-effect": "non-scaling-stroke" });
      parts.push(svgElement("svg", { class: "histogram", viewBox: "0 0 100 42", preserveAspectRatio: "none", role: "img", "aria-label": `Histogram from ${short(min)} to ${short(max)}` },
        ...bars, svgElement("line", { x1: 0, x2: 100, y1: 40.5, y2: 40.5, "vector-effect": "non-scaling-stroke" }), zeroLine));
      parts.push(html("div", { class: "ends" }, html("span", {}, short(min)), html("span", {}, short(max))));
    }
    const share = zero && count > 1 ? `${short((100 * zero) / count)} % zero` : "";
    const line = [histogram.length > 1 ? "" : min === max ? "" : `${short(min)} to ${short(max)}`, `mean ${short(mean)}`, `std ${short(std)}`, share].filter(Boolean).join(" · ");
    parts.push(html("div", { class: "facts" }, line));
    const bad = [nan ? plural(nan, "NaN") : "", inf ? `${inf} infinite` : ""].filter(Boolean).join(", ");
    if (bad) parts.push(html("div", { class: "bad" }, bad));
    return html("div", { class: "statistics" }, parts);
  }

  group(group) {
    const names = [...group.names].sort((a, b) => b[1] - a[1]);
    const words = { module: "module", block: "block", repeat: "repeated block", run: "run of neighbours", root: "the graph" };
    return [
      ...this.head(group.label + (group.times > 1 ? ` ×${group.times}` : ""), "group", words[group.kind] ?? group.kind),
      ...this.part("Holds", this.table([
        ["shapes", passing(group)],
        ["operations", group.operations.toLocaleString("en")],
        ["leaves", group.leaves.toLocaleString("en")],
        ["parameters", group.parameters ? group.parameters.toLocaleString("en") : ""],
        ["saved", group.bytes ? amount(group.bytes) : ""],
      ])),
      html("p", { style: "margin-top: 10px" }, html("button", { type: "button", "data-toggle": group.id }, "Fold or unfold")),
      ...this.part("Operations", this.table(names.slice(0, 40).map(([name, count]) => [name, String(count)]))),
      ...this.part("Inside", this.list(group.children.filter((child) => child.children).map((child) => html("li", {}, this.link(child.id))))),
    ];
  }
}
