// What the page brings out on request: what a thing depends on and what depends on it, and where memory and time go.

/** The units that lead to a thing and those to which it leads, and the groups around them. */
function connected(graph, thing) {
  const start = thing.children ? graph.units.filter((unit) => isInside(unit, thing)) : [graph.unitOf.get(thing.id)];
  const found = new Set();
  for (const [from, to] of [["lower", "upper"], ["upper", "lower"]]) {
    const near = new Map();
    for (const strand of graph.strands) gather(near, strand[from], strand[to]);
    const seen = new Set(start);
    for (const unit of seen) for (const other of near.get(unit) ?? []) seen.add(other); // `seen` grows
    for (const unit of seen) for (let each = unit; each; each = each.parent) found.add(each);
  }
  return found;
}

/** The bytes that the node of a unit has saved, without those of leaves; of a group, what its card says. */
function savedBytes(graph, thing) {
  if (thing.children) return thing.bytes || thing.children.reduce((sum, child) => sum + savedBytes(graph, child), 0);
  graph.leafStorages ??= new Set(graph.data.tensors.filter((tensor) => tensor.kind === "leaf").map((tensor) => tensor.storage));
  const bytes = new Map();
  for (const saved of thing.node?.saved ?? []) if (!graph.leafStorages.has(saved.storage)) bytes.set(saved.storage, saved.bytes ?? 0);
  return [...bytes.values()].reduce((sum, each) => sum + each, 0);
}

/** The seconds that operations and nodes took, as far as they were noted. */
function secondsIn(thing) {
  if (thing.children) return thing.children.reduce((sum, child) => sum + secondsIn(child), 0);
  return Object.values(thing.node?.seconds ?? {}).reduce((sum, each) => sum + each, 0);
}

function duration(seconds) {
  const [size, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${Number((seconds * size).toPrecision(3))} ${unit}`;
}

/** What cards can be coloured by: a name, the amount of a thing, and the amount in words. */
const HEATS = {
  memory: { words: "saves", of: savedBytes, text: amount },
  time: { words: "takes", of: (graph, thing) => secondsIn(thing), text: duration },
};

/** How much each card has of the most that one has, in percent. */
function heatOf(graph, scene, kind) {
  const cards = scene.items.filter((item) => item.type !== "frame").map((item) => [item, HEATS[kind].of(graph, item.thing)]);
  const most = Math.max(1e-9, ...cards.map(([, each]) => each));
  return { kind, most, shares: new Map(cards.map(([item, each]) => [item, Math.round((100 * each) / most)])) };
}
