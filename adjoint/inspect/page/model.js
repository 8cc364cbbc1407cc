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
    node.line = shared(node.line);
    node.gradient = (node.gradient ?? []).map(shared);
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
      for (const tensor of operation.inputs) {
        const upper = this.unitOf.get(tensor), lower = this.unitOf.get(operation.id);
        add({ forward: true, tail: tensor, head: operation.id, upper, lower, index: 0, entry: 0 });
      }
    }
    for (const node of this.data.nodes) {
      node.next.forEach(([following, index], entry) => {
        const upper = this.unitOf.get(following), lower = this.unitOf.get(node.id);
        add({ forward: false, tail: node.id, head: following, upper, lower, index, entry });
      });
    }
    for (const unit of this.units) unit.uses = [];
    for (const strand of this.strands) strand.upper.uses.push(strand);
  }

  makeTree() {
    this.root = { id: "root", label: "", kind: "root", parent: null, children: [], depth: 0 };
    this.groups = new Map();
    for (const record of this.data.groups) {
      this.groups.set(record.id, { ...record, nodes: undefined, children: [], parent: null });
    }
    for (const record of this.data.groups) {
      const group = this.groups.get(record.id);
      group.parent = this.groups.get(record.parent) ?? this.root;
      for (const id of record.nodes ?? []) {
        const unit = this.unitOf.get(id);
        if (unit) unit.parent = group;
      }
    }
    for (const unit of this.units) if (!unit.node) unit.parent = this.commonParent(unit.uses.map((use) => use.lower.parent));
    for (const unit of this.units) unit.parent ??= this.root;
    for (const unit of this.units) unit.parent.children.push(unit);
    const byFirst = new Map();
    for (const unit of this.units) {
      for (let group = unit.parent; group && !byFirst.has(group); group = group.parent) {
        byFirst.set(group, unit.order);
        if (group.parent) group.parent.children.push(group);
      }
    }
    const first = (child) => (child.children ? byFirst.get(child) : child.order);
    for (const group of [this.root, ...byFirst.keys()]) {
      if (group.sorted) continue;
      group.sorted = true;
      group.children.sort((a, b) => first(a) - first(b));
    }
    this.dissolve();
    this.partLongLevels([...new Set([this.root, ...byFirst.keys()])].filter((group) => group.children.length));
    this.measure();
  }

  /** A group with nothing but another group in it is one frame too many. */
  dissolve() {
    for (const [id, group] of this.groups) {
      const [only] = group.children;
      if (group.children.length !== 1 || !only.children) continue;
      only.parent = group.parent;
      group.parent.children[group.parent.children.indexOf(group)] = only;
      group.children = [];
      this.groups.set(id, only);
    }
    for (const [id, group] of this.groups) if (!this.groups.get(group.id).children.length) this.groups.delete(id);
  }

  /** The innermost group that holds all of `groups`. */
  commonParent(groups) {
    if (!groups.length) return this.root;
    const path = (group) => { const up = []; for (; group; group = group.parent) up.unshift(group); return up; };
    let common = path(groups[0] ?? this.root);
    for (const group of groups.slice(1)) {
      const other = path(group ?? this.root);
      let same = 0;
      while (same < common.length && common[same] === other[same]) same++;
      common = common.slice(0, same);
    }
    return common[common.length - 1] ?? this.root;
  }

  /** Where a frame would hold too many things, runs of neighbours become groups, level upon level. */
  partLongLevels(groups) {
    let count = 0;
    for (const group of groups) {
      while (group.children.length > LEVEL) {
        const parts = Math.min(40, Math.ceil(group.children.length / 20)), size = Math.ceil(group.children.length / parts);
        const runs = [];
        for (let at = 0; at < group.children.length; at += size) {
          const children = group.children.slice(at, at + size);
          const run = { id: `run${count++}`, label: "", kind: "run", parent: group, children, times: 1 };
          for (const child of children) child.parent = run;
          runs.push(run);
        }
        group.children = runs;
        groups = groups.concat(runs);
        this.partLongLevels(runs);
        for (const run of runs) this.groups.set(run.id, run);
      }
    }
  }

  /** What is in each group: how many operations and parameters, and the bytes that its nodes hold. */
  measure() {
    const total = (group) => { group.operations = group.parameters = group.bytes = group.size = 0; group.names = new Map(); };
    for (const group of [this.root, ...this.groups.values()]) total(group);
    for (const unit of this.units) {
      const storages = new Map();
      for (const saved of unit.node?.saved ?? []) if (saved.bytes) storages.set(saved.storage ?? saved, saved.bytes);
      let bytes = 0;
      for (const size of storages.values()) bytes += size;
      for (let group = unit.parent; group; group = group.parent) {
        group.size += 1;
        group.bytes += bytes;
        if (unit.operation) {
          group.operations += 1;
          group.names.set(unit.operation.name, (group.names.get(unit.operation.name) ?? 0) + 1);
        } else if (unit.node) group.parameters += 1;
      }
    }
    for (const group of this.groups.values()) {
      group.depth = 0;
      for (let up = group.parent; up; up = up.parent) group.depth += 1;
      if (group.kind !== "run") continue;
      const runs = group.parent.children;
      group.label = `part ${runs.indexOf(group) + 1} of ${runs.length}`;
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
