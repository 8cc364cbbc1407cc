// The graph as data: the records of a snapshot, the units that are drawn of them, and the tree of groups that fold.

const LEVEL = 160; // so many things in one frame at most; more are parted into runs

/** Read the embedded JSON: what repeats stands once, in `shared`. */
function readGraph(data) {
  const shared = (index) => (typeof index === "number" ? data.shared[index] : index);
  for (const tensor of data.tensors) {
    tensor.shape ??= [];
    tensor.statistics = shared(tensor.statistics);
  }
  for (const node of data.nodes) {
    node.next ??= [];
    node.hooks ??= [];
    node.inputs = shared(node.inputs) ?? [];
    node.values = shared(node.values) ?? {};
    node.formula = shared(node.formula) ?? {};
    node.derivative = shared(node.derivative) ?? {};
    node.line = shared(node.line);
    node.gradient = (node.gradient ?? []).map(shared);
    node.seconds ??= {};
    node.saved ??= [];
    for (const saved of node.saved) saved.statistics = shared(saved.statistics);
  }
  for (const step of data.steps) {
    for (const flow of [...(step.incoming ??= []), ...(step.outgoing ??= [])]) flow.statistics = shared(flow.statistics);
    step.freed ??= [];
    step.hooks ??= [];
  }
  for (const operation of data.operations) {
    operation.inputs ??= [];
    operation.outputs ??= [];
    operation.names = shared(operation.names) ?? [];
  }
  return new Graph(data);
}

class Graph {
  constructor(data) {
    this.data = data;
    this.byId = new Map();
    for (const list of [data.tensors, data.operations, data.nodes]) for (const record of list) this.byId.set(record.id, record);
    this.roots = new Set(data.roots);
    this.used = new Set([...data.roots, ...data.operations.flatMap((operation) => operation.inputs)]);
    this.units = [];
    this.unitOf = new Map();
    this.makeUnits();
    this.makeStrands();
    this.makeTree();
  }

  /** An operation with its tensors and its node, or a leaf with its AccumulateGrad. */
  makeUnits() {
    const made = new Set(), placed = new Set();
    const add = (operation, tensors, node) => {
      const unit = { id: `u${this.units.length}`, order: this.units.length, operation, tensors, node, parent: null };
      this.units.push(unit);
      for (const record of [operation, node, ...tensors]) if (record) this.unitOf.set(record.id, unit);
      if (node) placed.add(node.id);
    };
    for (const operation of this.data.operations) for (const id of operation.outputs) made.add(id);
    for (const operation of this.data.operations) {
      const tensors = operation.outputs.map((id) => this.byId.get(id)).filter(Boolean);
      const node = this.byId.get(operation.node) ?? this.byId.get(tensors.find((tensor) => tensor.node)?.node);
      add(operation, tensors, node && !placed.has(node.id) ? node : null);
    }
    for (const tensor of this.data.tensors) {
      if (made.has(tensor.id)) continue;
      const node = this.byId.get(tensor.node);
      add(null, [tensor], node && !placed.has(node.id) ? node : null);
    }
    for (const node of this.data.nodes) if (!placed.has(node.id)) add(null, [], node);
  }

  /** Every use of a tensor by an operation, and every entry of next_functions that is a node. */
  makeStrands() {
    this.strands = [];
    const add = (strand) => {
      if (strand.upper && strand.lower && strand.upper !== strand.lower) this.strands.push(strand);
    };
    for (const operation of this.data.operations) {
      operation.inputs.forEach((tensor, entry) => {
        const upper = this.unitOf.get(tensor), lower = this.unitOf.get(operation.id);
        add({ forward: true, tail: tensor, head: operation.id, upper, lower, index: 0, entry, name: operation.names[entry] });
      });
    }
    for (const node of this.data.nodes) {
      node.next.forEach(([following, index], entry) => {
        const upper = this.unitOf.get(following), lower = this.unitOf.get(node.id);
        add({ forward: false, tail: node.id, head: following, upper, lower, index, entry });
      });
    }
    const isLeaf = (id) => { const tensor = this.byId.get(id); return tensor.kind !== "intermediate" || this.byId.get(tensor.view_of)?.kind === "leaf"; };
    for (const unit of this.units) unit.uses = [];
    for (const strand of this.strands) strand.upper.uses.push(strand);
    for (const unit of this.units) { // what no operation made comes right before its first use
      if (!unit.operation && unit.uses.length) unit.order = Math.min(...unit.uses.map(({ lower }) => lower.order)) - 0.5;
    }
    this.units.sort((a, b) => a.order - b.order);
    for (const unit of this.units) { // constants beside the main path
      unit.aside = !unit.node && !unit.operation && unit.uses.every(({ lower }) => lower.operation?.inputs.some((id) => !isLeaf(id)));
    }
  }

  /** The groups as a tree, in which no frame without modules holds more than `most` things. */
  makeTree(most = LEVEL) {
    for (const unit of this.units) unit.parent = null;
    this.root = { id: "root", label: "", kind: "root", parent: null, children: [], depth: 0 };
    this.groups = new Map();
    for (const record of this.data.groups) {
      this.groups.set(record.id, { takes: [], gives: [], operations: 0, parameters: 0, bytes: 0, times: 1, ...record, nodes: undefined, children: [], parent: null });
    }
    for (const record of this.data.groups) {
      const group = this.groups.get(record.id);
      group.parent = this.groups.get(record.parent) ?? this.root;
      for (const id of record.nodes ?? []) {
        const unit = this.unitOf.get(id);
        if (unit) unit.parent = group;
      }
    }
    for (const unit of this.units) if (!unit.node && !unit.operation) unit.parent = this.groups.get(unit.tensors[0]?.group) ?? this.root;
    for (const unit of this.units) unit.parent ??= this.root;
    for (const unit of this.units) unit.parent.children.push(unit);
    const byFirst = new Map();
    for (const unit of this.units) {
      for (let group = unit.parent; group && !byFirst.has(group); group = group.parent) {
        byFirst.set(group, unit.order);
        if (group.parent) group.parent.children.push(group);
      }
    }
    for (const [group, order] of byFirst) group.first = order;
    const first = (child) => (child.children ? child.first : child.order);
    for (const group of [this.root, ...byFirst.keys()]) {
      if (group.sorted) continue;
      group.sorted = true;
      group.children.sort((a, b) => first(a) - first(b));
    }
    this.dissolve();
    const groups = [...new Set([this.root, ...byFirst.keys()])].filter((group) => group.children.length);
    this.partLongLevels(groups.filter((group) => group.children.length > LEVEL), LEVEL);
    if (most < LEVEL && this.root.children.length > most) this.partLongLevels([this.root], most);
    this.measure();
  }

  /** A group that is no module and has nothing but another group in it is one frame too many. */
  dissolve() {
    for (const [id, group] of this.groups) {
      const [only] = group.children;
      if (group.kind === "module" || group.children.length !== 1 || !only.children) continue;
      only.parent = group.parent;
      group.parent.children[group.parent.children.indexOf(group)] = only;
      group.children = [];
      this.groups.set(id, only);
    }
    for (const [id, group] of this.groups) if (!this.groups.get(group.id).children.length) this.groups.delete(id);
  }

  /** Where a frame would hold too many things, runs of neighbours become groups, level upon level. */
  partLongLevels(groups, most) {
    let count = 0;
    for (const group of groups) {
      while (group.children.length > most) {
        const parts = Math.min(40, most, Math.ceil(group.children.length / Math.min(20, most / 2))), size = Math.ceil(group.children.length / parts);
        const runs = [];
        for (let at = 0; at < group.children.length; at += size) {
          const children = group.children.slice(at, at + size);
          const run = { id: `run${this.groups.size}_${count++}`, label: "", kind: "run", parent: group, children, times: 1, first: children[0].first ?? children[0].order };
          for (const child of children) child.parent = run;
          runs.push(run);
        }
        group.children = runs;
        groups = groups.concat(runs);
        this.partLongLevels(runs, LEVEL);
        for (const run of runs) this.groups.set(run.id, run);
      }
    }
  }

  /** How deep each group lies, how many units it has, and what its operations are called; runs have no record that says the rest. */
  measure() {
    for (const group of [this.root, ...this.groups.values()]) {
      group.size = group.leaves = 0;
      group.mark = "";
      group.names = new Map();
    }
    for (const unit of this.units) {
      for (let group = unit.parent; group; group = group.parent) {
        group.size += 1;
        if (unit.operation?.mark) group.mark = "changed";
        if (unit.operation) group.names.set(unit.operation.name, (group.names.get(unit.operation.name) ?? 0) + 1);
        else if (unit.node) group.leaves += 1;
      }
    }
    for (const group of this.groups.values()) {
      group.depth = 0;
      for (let up = group.parent; up; up = up.parent) group.depth += 1;
      if (group.kind !== "run") continue;
      const runs = group.parent.children;
      group.label = `part ${runs.indexOf(group) + 1} of ${runs.length}`;
      Object.assign(group, { takes: [], gives: [], operations: 0, parameters: 0, bytes: 0 });
      for (const number of group.names.values()) group.operations += number;
    }
  }

  /** The groups to open first: level by level, while what is seen stays a page that can be taken in. */
  firstOpen(limit) {
    const open = new Set();
    let level = this.root.children.filter((child) => child.children), seen = this.root.children.length;
    while (level.length) {
      const more = level.reduce((sum, group) => sum + group.children.length, 0);
      if (seen + more > limit) break;
      seen += more;
      for (const group of level) open.add(group);
      level = level.flatMap((group) => group.children.filter((child) => child.children));
    }
    return open;
  }
}
