// What is written on the cards, and how large they are: as adjoint/inspect/cards.py, which says more.

const SIZE = 12, ADVANCE = 0.62;
const LINE = 24, TITLE = 26, ROW = 17, PAD = 9, PILL = 22, PILL_GAP = 9, PAIR = 22, LABEL = 16;
const OUTLINE = 0, CARDS = 1, VALUES = 2; // how much is on the cards
const NAME_LIMIT = 26, VALUE_LIMIT = 26, SHOWN_OUTPUTS = 4;

const widthOf = (text, size) => {
  let ems = 0;
  for (const character of text) ems += character < "\u0080" ? ADVANCE : character > "\u1100" && character < "\uffe7" && !/[\u2010-\u22ff]/.test(character) ? 1.1 : 0.8;
  return ems * size;
};

function shorten(text, limit, keepEnd = false) {
  text = String(text).split(/\s+/).join(" ").trim();
  if (text.length <= limit) return text;
  return keepEnd ? "…" + text.slice(1 - limit) : text.slice(0, limit - 1) + "…";
}

const sizeOf = (shape) => (shape ? `[${shape.join(", ")}]` : "");
const scalarOf = (tensor) => (tensor.dtype ? "scalar" : "a constant");
const dtypeOf = (name) => (name ?? "").replace(/^torch\./, "");
const fileOf = (line) => `${/ipykernel_\d+|<ipython-input/.test(line.file) ? "cell" : line.file.split(/[\\/]/).pop()}:${line.number}`;
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const joined = (...parts) => parts.filter(Boolean).join(" ");

const yesNo = (value) => (value ? "True" : "False");

/** A number in a few characters, in the first of these units, each a thousand of the one before, that makes it small. */
function inUnits(number, units) {
  const inThreeDigits = () => Number(number.toPrecision(3));
  let at = 0;
  for (; inThreeDigits() >= 1000 && at < units.length - 1; at++) number /= 1000;
  return joined(String(inThreeDigits()), units[at]);
}

const amount = (bytes) => inUnits(bytes, ["B", "KB", "MB", "GB", "TB"]);
const count = (number) => inUnits(number, ["", "K", "M", "G"]);

/** Add to the list that a map has for a key. */
function gather(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}

function versionsOf(saved) {
  if (saved.version_saved == null) return "";
  if (saved.version_now == null || saved.version_now === saved.version_saved) return `v${saved.version_saved}`;
  return `v${saved.version_saved} → v${saved.version_now}`;
}

/** The name of a group; where it is too long, without the class of the module. */
function labelOf(group, limit) {
  return shorten(group.label.length > limit ? group.label.replace(/ \(\w+\)$/, "") : group.label, limit, true);
}

/** The shapes that enter and leave a group. */
function passing(group) {
  const side = (shapes) => (shapes.length ? shapes.map(sizeOf).map((text) => (text === "[]" ? "scalar" : text)).join(", ") : "");
  const [takes, gives] = [side(group.takes), side(group.gives)];
  return takes && gives ? `${takes} → ${gives}` : takes ? `${takes} →` : gives ? `→ ${gives}` : "";
}

class Cards {
  constructor(graph, detail, narrow) {
    this.graph = graph;
    this.detail = detail;
    this.narrow = narrow;
    this.full = detail === VALUES;
    const count = new Map();
    for (const { dtype } of graph.data.tensors) if (dtype) count.set(dtype, (count.get(dtype) ?? 0) + 1);
    this.dtype = [...count].reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0])[0];
    this.traced = graph.data.steps.length > 0;
  }

  fit(card) {
    let wide = widthOf(card.title, SIZE) + (card.note ? 10 + widthOf(card.note, SIZE) : 0) + (card.kind === "group" ? 16 : 0);
    for (const row of card.rows) {
      const gap = row.label && row.value ? 12 : 0;
      wide = Math.max(wide, widthOf(row.label, SIZE) + gap + widthOf(row.widest ?? row.value, SIZE));
    }
    card.width = Math.round(wide + 2 * PAD);
    card.height = this.detail === OUTLINE && !card.rows.length ? LINE : TITLE + (card.rows.length ? ROW * card.rows.length + 7 : 0);
    return card;
  }

  /** The dtype of a tensor, where it is not that of most tensors. */
  rare(tensor) {
    return tensor.dtype === this.dtype ? "" : dtypeOf(tensor.dtype);
  }

  /** What an operation makes only for its own derivative, and nobody uses, is not shown beside what it is for. */
  tensors(list, operation) {
    const used = list.filter((tensor) => this.graph.used.has(tensor.id) || tensor.name);
    if (used.length) list = used;
    if (this.detail === OUTLINE && operation) return [this.line(list, operation)];
    if (list.length <= SHOWN_OUTPUTS) return list.map((tensor) => this.tensor(tensor));
    const sizes = [...new Set(list.map((tensor) => `${sizeOf(tensor.shape)} ${dtypeOf(tensor.dtype)}`))];
    const rows = sizes.slice(0, 3).map((size) => ({ label: "", value: size }));
    const card = { id: list[0].id, kind: "intermediate", title: `${list.length} outputs`, rows, hint: sizes.join(", ") };
    card.root = list.some((tensor) => this.graph.roots.has(tensor.id));
    return [this.fit(card)];
  }

  /** An operation and its result on one line. */
  line(list, operation) {
    const [tensor] = list;
    const size = list.length > 1 ? `${list.length} outputs` : tensor ? joined(shorten(tensor.name ?? "", 14, true), tensor.shape.length ? sizeOf(tensor.shape) : tensor.data ?? "scalar", this.rare(tensor)) : "";
    const card = { id: tensor?.id ?? operation.id, kind: "intermediate", title: shorten(operation.name, NAME_LIMIT), note: this.narrow ? size.replaceAll(", ", ",") : size, rows: [], op: true };
    card.root = list.some((each) => this.graph.roots.has(each.id));
    card.hint = `${operation.name}: ${size}`;
    return this.fit(card);
  }

  tensor(tensor) {
    const size = tensor.shape.length ? sizeOf(tensor.shape) : "", dtype = this.rare(tensor);
    const card = { id: tensor.id, kind: tensor.kind, title: shorten(tensor.name ?? "", NAME_LIMIT, true), rows: [] };
    card.root = this.graph.roots.has(tensor.id);
    card.hint = `${tensor.name ?? "tensor"}: ${size} ${dtypeOf(tensor.dtype)}`;
    const value = tensor.shape.length ? "" : shorten(tensor.data ?? scalarOf(tensor), VALUE_LIMIT);
    if (this.full) {
      card.title ||= "tensor";
      card.note = joined(size, dtype);
      card.rows = this.facts(tensor);
    } else {
      if (card.title) card.note = joined(size || value, dtype);
      else Object.assign(card, { title: size || value, note: dtype });
      if (this.traced && tensor.kind === "leaf") card.rows.push(this.gradRow(tensor));
    }
    return this.fit(card);
  }

  /** While backward is played, this row changes; there is room for the widest of what it will say. */
  gradRow(tensor) {
    const values = [tensor.grad ?? "None", tensor.node ? this.lastGrad(tensor) : ""].map((text) => shorten(text, VALUE_LIMIT));
    const widest = values.reduce((a, b) => (b.length > a.length ? b : a));
    return { label: "grad", value: shorten(tensor.grad ?? "None", VALUE_LIMIT), widest, css: "grad" };
  }

  lastGrad(tensor) {
    const step = this.graph.data.steps.findLast((each) => each.node === tensor.node);
    return step?.accumulated ?? "";
  }

  facts(tensor) {
    const node = tensor.is_leaf ? null : this.graph.byId.get(tensor.node);
    const rows = [
      { label: "data", value: tensor.data ? shorten(tensor.data, VALUE_LIMIT) : "not kept" },
      tensor.kind === "leaf" ? this.gradRow(tensor) : { label: "grad", value: shorten(tensor.grad ?? "None", VALUE_LIMIT) },
      { label: "grad_fn", value: node ? node.name : "None" },
      { label: "is_leaf", value: yesNo(tensor.is_leaf) },
      { label: "requires_grad", value: yesNo(tensor.requires_grad) },
    ];
    const base = this.graph.byId.get(tensor.view_of);
    if (base) rows.push({ label: "view of", value: shorten(base.name ?? "a tensor", NAME_LIMIT, true) });
    return rows;
  }

  node(node) {
    if (!node) return null;
    const card = { id: node.id, kind: node.accumulate ? "accumulate" : "node", title: node.name, rows: [] };
    card.hint = node.name + (node.line ? `\n${fileOf(node.line)}  ${node.line.text}` : "");
    const stale = node.saved.some((saved) => saved.state === "stale");
    if (this.detail === OUTLINE) {
      card.note = stale ? "changed" : "";
      card.noteCss = "stale";
      return this.fit(card);
    }
    for (const [name, formula] of Object.entries(node.derivative)) {
      card.rows.push({ label: `∂ ${shorten(this.operand(node, name), 16)}`, value: shorten(formula, 34), css: "formula" });
    }
    for (const saved of node.saved) {
      const row = this.saved(saved);
      if (row) card.rows.push(row);
    }
    if (this.full) {
      for (const [name, value] of Object.entries(node.values)) card.rows.push({ label: name, value: shorten(value, VALUE_LIMIT) });
    }
    if (node.hooks.length) card.rows.push({ label: "hooks", value: String(node.hooks.length), css: "hook" });
    if (node.line && !node.accumulate) {
      card.rows.push({ label: shorten(fileOf(node.line), NAME_LIMIT, true), value: "", css: "place" });
    }
    return this.fit(card);
  }

  /** What a formula is with respect to: the tensor's name where it is short, else the parameter's. */
  operand(node, name) {
    const operation = this.graph.unitOf.get(node.id)?.operation, at = operation?.names.indexOf(name) ?? -1;
    const called = at < 0 ? "" : this.graph.byId.get(operation.inputs[at])?.name ?? "";
    return /^[A-Za-z_]\w{0,7}$/.test(called) ? called : name;
  }

  saved(saved) {
    const label = `saved ${shorten(saved.name.replace(/^_saved_/, ""), NAME_LIMIT)}`;
    if (saved.state === "none") return null;
    const css = saved.state === "stale" || saved.state === "freed" ? saved.state : "";
    if (saved.state === "freed" || saved.state === "packed") {
      return { label, value: joined(sizeOf(saved.shape), saved.state), css, saved: saved.name };
    }
    const tensor = this.graph.byId.get(saved.tensor), size = saved.shape?.length ? sizeOf(saved.shape) : saved.data ?? "scalar";
    const what = shorten(tensor?.name ?? "", NAME_LIMIT, true) || joined(size, saved.dtype !== this.dtype ? dtypeOf(saved.dtype) : "");
    return { label, value: joined(what, saved.state === "stale" ? versionsOf(saved) : ""), css, saved: saved.name };
  }

  /** The card of a folded group. */
  group(group) {
    const title = labelOf(group, this.narrow && this.detail === OUTLINE ? 18 : 36) + (group.times > 1 ? ` ×${group.times}` : "");
    const parameters = group.parameters ? plural(group.parameters, "parameter") : "";
    if (this.detail === OUTLINE) return this.groupLine(group, title);
    const rows = [];
    if (passing(group)) rows.push({ label: shorten(passing(group), 40), value: "" });
    rows.push({ label: plural(group.operations, "operation"), value: group.bytes ? `${amount(group.bytes)} saved` : "" });
    if (parameters) rows.push({ label: parameters, value: "" });
    const hint = [`${group.label}`, passing(group), plural(group.operations, "operation"), parameters, group.bytes ? `${amount(group.bytes)} saved` : ""].filter(Boolean).join("\n");
    return this.fit({ id: group.id, kind: "group", title, rows, hint, root: false });
  }

  groupLine(group, title) {
    const shapes = this.narrow ? passing(group).replace(/^.*→/, "→") : passing(group);
    const note = joined(shorten(shapes, 44), !this.narrow && group.parameters ? `· ${count(group.parameters)} params` : "");
    const hint = joined(title, passing(group), plural(group.operations, "operation"), group.parameters ? plural(group.parameters, "parameter") : "");
    return this.fit({ id: group.id, kind: "group", title, note, rows: [], hint, root: false });
  }
}
