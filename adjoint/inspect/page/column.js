// A layout for telephones: one thing below the other on one axis, and edges that pass things by in lanes to their right.
// column() gives the same as place() in layout.js.

function column(boxes, edges, columnGap, rankGap) {
  if (boxes.length === 0) return { width: 0, height: 0, bands: [] };
  const pairs = acyclic(boxes.length, edges.map((edge) => [edge.source, edge.target]));
  const rank = ranks(boxes.length, pairs);
  pinRanks(boxes, rank);
  const rows = [...boxes.keys()].sort((a, b) => rank[a] - rank[b] || (boxes[a].start ?? 0) - (boxes[b].start ?? 0) || a - b);
  let last = -1;
  rows.forEach((number, at) => { // the doors on one side of a frame share a rank
    if (!at || !boxes[number].pin || rank[number] !== rank[rows[at - 1]]) last += 1;
    boxes[number].rank = last;
    boxes[number].x = 0;
  });
  const long = edges.filter((edge) => Math.abs(boxes[edge.source].rank - boxes[edge.target].rank) > 1);
  for (const edge of edges) edge.lanes = [];
  giveLanes(boxes, long.sort((a, b) => Math.abs(boxes[a.source].rank - boxes[a.target].rank) - Math.abs(boxes[b.source].rank - boxes[b.target].rank)), columnGap);
  moveDoors(boxes, edges);
  const left = Math.min(...boxes.map((box) => box.x - box.left)); // lanes lie to the right of the boxes
  const right = Math.max(...boxes.map((box) => box.x + box.right), ...edges.flatMap((edge) => edge.lanes.map((x) => x + edge.width / 2)));
  for (const box of boxes) box.x -= left;
  for (const edge of edges) edge.lanes = edge.lanes.map((x) => x - left);
  const bands = bandsOf(boxes, edges, rankGap);
  return { width: right - left, height: bands[bands.length - 1][1], bands };
}

/** To each edge, shortest first, a lane that is free beside all the things that it passes; branches of one trunk share theirs. */
function giveLanes(boxes, edges, gap) {
  const reach = []; // how far to the right each rank is taken
  for (const box of boxes) reach[box.rank] = Math.max(reach[box.rank] ?? 0, box.pin ? 0 : box.right);
  const trunks = new Map();
  for (const edge of edges) {
    const [first, end] = [boxes[edge.source].rank, boxes[edge.target].rank].sort(ascending);
    const key = edge.trunk == null ? edge : `${edge.source} ${edge.trunk}`;
    const passed = reach.slice(first + 1, end), half = edge.width / 2;
    const x = Math.max(trunks.get(key) ?? 0, ...passed.map((right) => right + gap + half));
    trunks.set(key, x);
    edge.lanes = passed.map(() => x);
    for (let rank = first + 1; rank < end; rank++) reach[rank] = Math.max(reach[rank], x + half);
  }
}

/** Of several doors on one side of a frame, those that lead to lanes stand in front of them. */
function moveDoors(boxes, edges) {
  for (const pin of ["first", "last"]) {
    const doors = boxes.filter((box) => box.pin === pin);
    if (doors.length < 2) continue;
    let furthest = 0;
    for (const door of doors) {
      const lane = edges.find((edge) => edge.lanes.length && (boxes[edge.source] === door || boxes[edge.target] === door))?.lanes[0];
      door.x = lane ?? furthest;
      furthest = Math.max(furthest, door.x) + 16;
    }
  }
}
