// What is unfolded, and how much is on the cards, as the page opens: as much as can be read in the window.

const LEGIBLE = 11 / SIZE; // the scale at which text has 11 pixels
const MARGIN = innerWidth < 600 ? 8 : 14;

/** The open groups and the detail with which the graph fits into a window of this size, with text of at least 11 pixels.
 *  Rows stand closer, and on a telephone one thing below the other, where more groups are open then. */
function opening(graph, window) {
  const ways = [[false, false], [true, false], ...(window[0] < 600 ? [[false, true], [true, true]] : [])];
  let best;
  for (const [close, column] of ways) {
    Object.assign(graph, { close, column });
    graph.makeTree();
    const found = openingOf(graph, window), inRuns = graph.root.children.some((child) => child.kind === "run");
    const names = [...found.open].filter((group) => group.kind !== "run").length;
    if (!best || names > best.names || (best.inRuns && !inRuns)) best = { found, inRuns, names, close, column };
    if (!inRuns && [...graph.groups.values()].every((group) => found.open.has(group))) break;
  }
  Object.assign(graph, { close: best.close, column: best.column });
  graph.makeTree();
  return openingOf(graph, window);
}

function openingOf(graph, [width, height]) {
  const fits = (open, detail) => {
    const scene = buildScene(graph, open, detail);
    return scene.width * LEGIBLE <= width - 2 * MARGIN && scene.height * LEGIBLE <= height - 2 * MARGIN;
  };
  for (const most of [LEVEL, 40, 24, 16, 10, 7, 5, 4]) {
    if (most < LEVEL) graph.makeTree(most);
    if (graph.root.children.length <= 200 && fits(new Set(), OUTLINE)) break;
  }
  let open = new Set(), tries = Math.max(4, Math.min(60, Math.floor(40000 / (graph.strands.length + 1))));
  const inner = (group) => group.children.filter((child) => child.children);
  const level = [inner(graph.root)];
  for (const groups of level) { // `level` grows
    if (!groups.length || tries-- <= 0) break;
    const all = new Set([...open, ...groups]);
    const size = groups.reduce((sum, group) => sum + group.children.length, 0);
    if (size <= 400 && fits(all, OUTLINE)) {
      open = all;
      level.push(groups.flatMap(inner));
      continue;
    }
    for (const group of groups) { // one by one, where there is more than operations; what repeats is opened as a whole or not at all
      if (!inner(group).length || group.parent.kind === "repeat" || group.parent.kind === "run" || tries-- <= 0 || group.children.length > 60) continue;
      const more = new Set([...open, group]);
      if (!fits(more, OUTLINE)) continue;
      open = more;
      level.push(inner(group));
    }
  }
  if (graph.data.compared) return { open, detail: OUTLINE }; // so that both graphs look alike
  for (const detail of graph.data.tensors.length <= 10 ? [VALUES, CARDS] : [CARDS]) {
    if (graph.units.length < 400 && fits(open, detail)) return { open, detail };
  }
  return { open, detail: OUTLINE };
}
