// Where things go: the method of adjoint/inspect/layout.py, step for step.
//
// place(boxes, edges) gives each box {left, right, above, below} its x, y and rank, and each edge {source, target, width}
// its lanes: an x in each of the ranks that it crosses. Edges of one source with the same trunk share their lanes. A box with pin "first" or "last" has the first or last rank alone
// with others of its kind: these are the doors of a frame. A box that is `low` stands at the foot of a tall rank.

const SWEEPS = 12;
const LANES = 20000;
const DOOR_GAP = 8;

function place(boxes, edges, columnGap = 36, rankGap = 44) {
  if (boxes.length === 0) return { width: 0, height: 0, bands: [] };
  const pairs = acyclic(boxes.length, edges.map((edge) => [edge.source, edge.target]));
  const rank = ranks(boxes.length, pairs);
  pinRanks(boxes, rank);
  boxes.forEach((box, number) => { box.rank = rank[number]; });
  const graph = threaded(boxes, edges, pairs);
  orderRanks(graph);
  const xs = positions(graph, columnGap);
  boxes.forEach((box, number) => { box.x = xs[number]; });
  edges.forEach((edge, number) => {
    edge.lanes = graph.chains[number].map((place) => xs[place]);
    if (edge.source !== pairs[number][0]) edge.lanes.reverse();
  });
  let left = Infinity, right = -Infinity;
  for (const box of boxes) {
    left = Math.min(left, box.x - box.left);
    right = Math.max(right, box.x + box.right);
  }
  for (const edge of edges) {
    for (const x of edge.lanes) {
      left = Math.min(left, x - edge.width / 2);
      right = Math.max(right, x + edge.width / 2);
    }
  }
  for (const box of boxes) box.x -= left;
  for (const edge of edges) edge.lanes = edge.lanes.map((x) => x - left);
  const bands = bandsOf(boxes, edges, rankGap);
  return { width: right - left, height: bands[bands.length - 1][1], bands };
}

/** The edges as pairs, those that close a cycle turned round. */
function acyclic(count, pairs) {
  const leaving = Array.from({ length: count }, () => []);
  const entered = new Int32Array(count);
  pairs.forEach(([source, target], number) => { leaving[source].push(number); entered[target] += 1; });
  const state = new Uint8Array(count); // 0 not seen, 1 on the path, 2 done
  const next = new Int32Array(count);
  const turned = new Set();
  const starts = [...Array(count).keys()].sort((a, b) => (entered[a] > 0) - (entered[b] > 0));
  for (const start of starts) {
    if (state[start]) continue;
    state[start] = 1;
    const path = [start];
    while (path.length) {
      const box = path[path.length - 1];
      if (next[box] === leaving[box].length) {
        state[box] = 2;
        path.pop();
        continue;
      }
      const number = leaving[box][next[box]++];
      const target = pairs[number][1];
      if (state[target] === 1) turned.add(number);
      else if (state[target] === 0) {
        state[target] = 1;
        path.push(target);
      }
    }
  }
  return pairs.map(([source, target], number) => (turned.has(number) ? [target, source] : [source, target]));
}

/** A rank for each box: as late as its uses allow, unless more edges pull it up than down. */
function ranks(count, pairs) {
  const before = Array.from({ length: count }, () => []);
  const after = Array.from({ length: count }, () => []);
  for (const [source, target] of pairs) {
    if (source === target) continue;
    before[target].push(source);
    after[source].push(target);
  }
  const waiting = after.map((targets) => targets.length);
  const fromEnd = [];
  for (let box = 0; box < count; box++) if (!waiting[box]) fromEnd.push(box);
  const rank = new Array(count).fill(0);
  for (let at = 0; at < fromEnd.length; at++) {
    const box = fromEnd[at];
    let lowest = 0;
    for (const target of after[box]) lowest = Math.min(lowest, rank[target]);
    rank[box] = lowest - 1;
    for (const source of before[box]) if (--waiting[source] === 0) fromEnd.push(source);
  }
  for (let at = fromEnd.length - 1; at >= 0; at--) {
    const box = fromEnd[at];
    if (before[box].length && before[box].length > after[box].length) {
      let highest = -Infinity;
      for (const source of before[box]) highest = Math.max(highest, rank[source]);
      rank[box] = highest + 1;
    }
  }
  let first = Infinity;
  for (const number of rank) first = Math.min(first, number);
  return rank.map((number) => number - first);
}

function pinRanks(boxes, rank) {
  if (!boxes.some((box) => box.pin)) return;
  let first = Infinity, last = -Infinity;
  boxes.forEach((box, number) => {
    if (box.pin) return;
    first = Math.min(first, rank[number]);
    last = Math.max(last, rank[number]);
  });
  if (first === Infinity) first = last = 0;
  const begin = boxes.some((box) => box.pin === "first") ? 1 : 0;
  boxes.forEach((box, number) => {
    rank[number] = box.pin === "first" ? 0 : box.pin === "last" ? last - first + 1 + begin : rank[number] - first + begin;
  });
}

/** The graph with a place in each rank for every long edge: first the boxes, then those places. */
function threaded(boxes, edges, pairs) {
  const graph = {
    boxes: boxes.length,
    left: boxes.map((box) => box.left),
    right: boxes.map((box) => box.right),
    rank: boxes.map((box) => box.rank),
    above: boxes.map(() => []),
    below: boxes.map(() => []),
    chains: edges.map(() => []),
    order: [],
    position: [],
  };
  const length = (number) => graph.rank[pairs[number][1]] - graph.rank[pairs[number][0]];
  let lanes = 0;
  const direct = new Set(), trunks = new Map();
  for (const number of [...edges.keys()].sort((a, b) => length(a) - length(b))) {
    lanes += Math.max(length(number) - 1, 0);
    if (lanes > LANES) direct.add(number);
  }
  const join = (upper, lower) => {
    graph.below[upper].push(lower);
    graph.above[lower].push(upper);
  };
  edges.forEach((edge, number) => {
    const [source, target] = pairs[number];
    if (source === target || direct.has(number)) return;
    let trunk = [];
    if (edge.trunk != null && source === edge.source) {
      const key = `${source} ${edge.trunk}`;
      trunk = trunks.get(key) ?? trunk;
      trunks.set(key, trunk);
    }
    let previous = source;
    const first = graph.rank[source] + 1;
    for (let rank = first; rank < graph.rank[target]; rank++) {
      if (rank - first === trunk.length) {
        const place = graph.rank.length;
        graph.left.push(0);
        graph.right.push(0);
        graph.rank.push(rank);
        graph.above.push([]);
        graph.below.push([]);
        trunk.push(place);
        join(previous, place);
      }
      previous = trunk[rank - first];
      graph.left[previous] = graph.right[previous] = Math.max(graph.left[previous], edge.width / 2);
      graph.chains[number].push(previous);
    }
    join(previous, target);
  });
  graph.main = mainPath(graph, boxes);
  let ranksUsed = 0;
  for (const rank of graph.rank) ranksUsed = Math.max(ranksUsed, rank + 1);
  graph.order = Array.from({ length: ranksUsed }, () => []);
  graph.position = new Array(graph.rank.length).fill(0);
  return graph;
}

/** The place below that continues the main path of each place, or -1: two places choose each other by the longest paths. */
function mainPath(graph, boxes) {
  const count = graph.rank.length;
  const depth = Array.from({ length: count }, (_, place) => (place < graph.boxes ? boxes[place].start ?? 0 : -Infinity));
  const height = new Array(count).fill(0);
  const byRank = [...graph.rank.keys()].sort((a, b) => graph.rank[a] - graph.rank[b]);
  const most = (near, key) => near.reduce((best, other) => (best < 0 || key[other] > key[best] ? other : best), -1);
  for (const place of byRank) {
    const above = most(graph.above[place], depth);
    if (above >= 0) depth[place] = Math.max(depth[place], depth[above] + (place < graph.boxes ? 1 : 0));
  }
  for (const place of byRank.reverse()) {
    const below = most(graph.below[place], height);
    if (below >= 0) height[place] = height[below] + (place < graph.boxes ? 1 : 0);
  }
  return graph.below.map((near, place) => {
    const below = most(near, height);
    return below >= 0 && most(graph.above[below], depth) === place ? below : -1;
  });
}

/** Order every rank: start from a walk up from the end, then sweep by medians; keep what crosses least. */
function orderRanks(graph) {
  arrange(graph, walkOrder(graph));
  let best = graph.order.map((row) => row.slice());
  let crossings = countCrossings(graph);
  for (let sweep = 0; sweep < SWEEPS && crossings > 0; sweep++) {
    sweepRanks(graph, sweep % 2 === 0);
    const now = countCrossings(graph);
    if (now < crossings) {
      best = graph.order.map((row) => row.slice());
      crossings = now;
    }
  }
  arrange(graph, best);
}

function arrange(graph, order) {
  graph.order = order;
  for (const row of order) row.forEach((place, position) => { graph.position[place] = position; });
}

function walkOrder(graph) {
  const rows = graph.order.map(() => []);
  const seen = new Uint8Array(graph.rank.length);
  const ends = [...graph.rank.keys()].sort((a, b) => graph.rank[b] - graph.rank[a]);
  for (const end of ends) {
    const stack = seen[end] ? [] : [end];
    while (stack.length) {
      const place = stack.pop();
      if (seen[place]) continue;
      seen[place] = 1;
      rows[graph.rank[place]].push(place);
      for (let at = graph.above[place].length - 1; at >= 0; at--) stack.push(graph.above[place][at]);
    }
  }
  return rows;
}

function sweepRanks(graph, downward) {
  const rows = downward ? graph.order : graph.order.slice().reverse();
  const beside = downward ? graph.above : graph.below;
  for (const row of rows.slice(1)) {
    const keys = row.map((place) => weightedMedian(beside[place].map((other) => graph.position[other]).sort(ascending)));
    const free = [...row.keys()].filter((number) => keys[number] !== null);
    const byKey = free.slice().sort((a, b) => keys[a] - keys[b]);
    const before = row.slice(); // those without neighbours stay where they are
    free.forEach((slot, at) => { row[slot] = before[byKey[at]]; });
    row.forEach((place, position) => { graph.position[place] = position; });
  }
}

const ascending = (a, b) => a - b;

/** The weighted median of Gansner and others (1993), which leans to the side where positions lie closer. */
function weightedMedian(positions) {
  const count = positions.length;
  if (count === 0) return null;
  const middle = count >> 1;
  if (count % 2) return positions[middle];
  if (count === 2) return (positions[0] + positions[1]) / 2;
  const left = positions[middle - 1] - positions[0], right = positions[count - 1] - positions[middle];
  if (left + right === 0) return (positions[middle - 1] + positions[middle]) / 2;
  return (positions[middle - 1] * right + positions[middle] * left) / (left + right);
}

/** How often edges between neighbouring ranks cross, counted with a Fenwick tree. */
function countCrossings(graph) {
  let total = 0;
  for (let row = 0; row + 1 < graph.order.length; row++) {
    const size = graph.order[row + 1].length, tree = new Int32Array(size + 1);
    let seen = 0;
    for (const place of graph.order[row]) {
      const ends = graph.below[place].map((other) => graph.position[other]);
      for (const end of ends) {
        let left = 0;
        for (let at = end + 1; at; at &= at - 1) left += tree[at];
        total += seen - left;
      }
      for (const end of ends) {
        seen += 1;
        for (let at = end + 1; at <= size; at += at & -at) tree[at] += 1;
      }
    }
  }
  return total;
}

/** An x for every place: the average of the middle two of four extreme layouts, long edges straight. */
function positions(graph, gap) {
  const conflicts = findConflicts(graph);
  const layouts = [];
  for (const downward of [true, false]) {
    for (const leftward of [true, false]) {
      const [root, rows] = align(graph, conflicts, downward, leftward);
      const xs = compact(graph, root, rows, gap, leftward);
      let low = Infinity, high = -Infinity;
      xs.forEach((x, place) => {
        low = Math.min(low, x - graph.left[place]);
        high = Math.max(high, x + graph.right[place]);
      });
      layouts.push({ xs, leftward, low, high });
    }
  }
  const key = (one) => [one.high - one.low, one.low, one.high];
  const narrowest = layouts.reduce((a, b) => (compareLists(key(b), key(a)) < 0 ? b : a));
  const shifts = layouts.map((one) => (one.leftward ? narrowest.low - one.low : narrowest.high - one.high));
  return graph.rank.map((_, place) => {
    const four = layouts.map((one, number) => one.xs[place] + shifts[number]).sort(ascending);
    return (four[1] + four[2]) / 2;
  });
}

function compareLists(a, b) {
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return a[at] - b[at];
  return 0;
}

/** The segments that cross a more important one, which is to stay straight: the main path, or a lane of a long edge. */
function findConflicts(graph) {
  const found = new Set(), count = graph.rank.length;
  const isMain = (above, place) => graph.main[above] === place;
  const isLane = (above, place) => above >= graph.boxes && place >= graph.boxes;
  for (const keeps of [isMain, isLane]) {
    for (let number = 1; number < graph.order.length; number++) {
      const row = graph.order[number];
      let low = 0, scanned = 0;
      row.forEach((place, at) => {
        const inner = graph.above[place].find((above) => keeps(above, place));
        if (inner === undefined && at < row.length - 1) return;
        const high = inner === undefined ? graph.order[number - 1].length : graph.position[inner];
        for (; scanned <= at; scanned++) {
          const other = row[scanned];
          for (const above of graph.above[other]) {
            const position = graph.position[above];
            if ((position < low || position > high) && !keeps(above, other) && !isMain(above, other)) found.add(above * count + other);
          }
        }
        low = high;
      });
    }
  }
  return found;
}

/** Join places to their median neighbours into vertical blocks; the root of each place's block, and the rows read. */
function align(graph, conflicts, downward, leftward) {
  const count = graph.rank.length;
  const root = [...Array(count).keys()], following = [...Array(count).keys()];
  let rows = downward ? graph.order : graph.order.slice().reverse();
  if (!leftward) rows = rows.map((row) => row.slice().reverse());
  const beside = downward ? graph.above : graph.below;
  const side = leftward ? 1 : -1;
  let partner = graph.main;
  if (downward) {
    partner = new Array(count).fill(-1);
    graph.main.forEach((below, above) => { if (below >= 0) partner[below] = above; });
  }
  const taken = new Set(partner);
  for (const row of rows.slice(1)) {
    let reached = leftward ? -1 : -Infinity;
    for (const place of row) {
      const near = partner[place] >= 0 ? [partner[place]] : beside[place].filter((other) => !taken.has(other));
      near.sort((a, b) => side * (graph.position[a] - graph.position[b]));
      if (!near.length) continue;
      const middle = (near.length - 1) / 2;
      for (const other of new Set([near[Math.floor(middle)], near[Math.floor(middle + 0.5)]])) {
        const segment = downward ? other * count + place : place * count + other;
        const at = side * graph.position[other];
        if (following[place] === place && at > reached && !conflicts.has(segment)) {
          following[other] = place;
          following[place] = root[place] = root[other];
          reached = at;
        }
      }
    }
  }
  return [root, rows];
}

/** Blocks as far to one side as the boxes before them allow, then back where there is room. */
function compact(graph, root, rows, gap, leftward) {
  const count = root.length;
  const before = Array.from({ length: count }, () => new Map());
  const after = Array.from({ length: count }, () => new Map());
  for (const row of rows) {
    for (let at = 0; at + 1 < row.length; at++) {
      const first = row[at], second = row[at + 1];
      const room = gap + (leftward ? graph.right[first] + graph.left[second] : graph.left[first] + graph.right[second]);
      const one = root[first], two = root[second];
      const wide = Math.max(before[two].get(one) ?? 0, room);
      before[two].set(one, wide);
      after[one].set(two, wide);
    }
  }
  const waiting = before.map((blocks) => blocks.size);
  const sequence = [];
  for (let place = 0; place < count; place++) if (root[place] === place && !waiting[place]) sequence.push(place);
  const xs = new Array(count).fill(0);
  for (let at = 0; at < sequence.length; at++) {
    const block = sequence[at];
    for (const [other, room] of after[block]) {
      xs[other] = Math.max(xs[other], xs[block] + room);
      if (--waiting[other] === 0) sequence.push(other);
    }
  }
  for (let at = sequence.length - 1; at >= 0; at--) {
    const block = sequence[at];
    let furthest = Infinity;
    for (const [other, room] of after[block]) furthest = Math.min(furthest, xs[other] - room);
    if (furthest < Infinity) xs[block] = Math.max(xs[block], furthest);
  }
  const sign = leftward ? 1 : -1;
  return root.map((block) => sign * xs[block]);
}

/** The top and bottom of each rank; between two ranks more room where edges go far sideways, and little at doors. */
function bandsOf(boxes, edges, gap) {
  let count = 0;
  for (const box of boxes) count = Math.max(count, box.rank + 1);
  const above = new Array(count).fill(0), below = new Array(count).fill(0), far = new Array(count).fill(0);
  for (const box of boxes) {
    above[box.rank] = Math.max(above[box.rank], box.above);
    below[box.rank] = Math.max(below[box.rank], box.below);
  }
  for (const edge of edges) {
    const start = boxes[edge.source], end = boxes[edge.target];
    const stops = [start.x, ...edge.lanes, end.x];
    const upper = Math.min(start.rank, end.rank);
    if (start.rank > end.rank) stops.reverse();
    for (let at = 0; at + 1 < stops.length; at++) {
      far[upper + at] = Math.max(far[upper + at], Math.abs(stops[at] - stops[at + 1]));
    }
  }
  const near = new Set(boxes.filter((box) => box.pin).map((box) => (box.pin === "first" ? 0 : count - 2)));
  const bands = [];
  let y = 0;
  for (let rank = 0; rank < count; rank++) {
    bands.push([y, y + above[rank] + below[rank]]);
    const least = near.has(rank) ? (far[rank] < 1 ? DOOR_GAP : gap * 0.6) : gap;
    y = bands[rank][1] + least + Math.min(far[rank] * 0.06, gap);
  }
  for (const box of boxes) {
    box.y = bands[box.rank][0] + above[box.rank];
    if (box.low && below[box.rank] > 3 * box.below) box.y = bands[box.rank][1] - box.below;
  }
  return bands;
}
