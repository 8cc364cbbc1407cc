// From the graph and what is unfolded to things with places: every open frame is laid out by itself, from the inside out,
// and is one box in the frame around it. Edges that cross a frame's border pass through doors in it.

const HEAD_ABOVE = 11, FRAME_HEAD = 24, FRAME_PAD = 10, STRAND = 6, BACKWARD_PORT = 56, STACK = 8;

/** `narrow`: for a telephone, where little stands beside the main path. `graph.close`: rows stand closer than usual;
 *  `graph.column`: on a telephone, one thing stands below the other. */
function buildScene(graph, open, detail, narrow = innerWidth < 600) {
  return new Scene(graph, open, detail, narrow && detail === OUTLINE);
}

class Scene {
  constructor(graph, open, detail, narrow) {
    this.graph = graph;
    this.open = open;
    this.detail = detail;
    this.narrow = narrow;
    this.column = narrow && graph.column;
    this.cards = new Cards(graph, detail, narrow);
    this.frames = new Map(); // an open group, or the root: what is in it
    this.seenAs = new Map(); // memory of `standIn`
    this.linesOf = new Map(); // a strand: the lines that are drawn for it
    this.collect(graph.root);
    this.connect();
    this.shapeItems();
    for (const frame of [...this.frames.values()].reverse()) this.layOut(frame);
    this.settle();
  }

  collect(root) {
    const todo = [root];
    for (const group of todo) {
      const frame = { group, items: new Map(), doors: new Map(), edges: new Map(), lines: [] };
      this.frames.set(group, frame);
      for (const child of group.children) {
        if (this.narrow && child.aside) continue;
        const type = !child.children ? "unit" : this.open.has(child) ? "frame" : "group";
        frame.items.set(child, { type, id: child.id, thing: child, frame });
        if (type === "frame") todo.push(child);
      }
    }
  }

  /** What stands for a unit in the picture: itself, or the outermost folded group around it. */
  standIn(thing) {
    let folded = this.seenAs.get(thing.parent);
    if (folded === undefined) {
      folded = null;
      for (let group = thing.parent; group.parent; group = group.parent) if (!this.open.has(group)) folded = group;
      this.seenAs.set(thing.parent, folded);
    }
    return folded ?? thing;
  }

  /** Lead every strand from frame to frame, and draw one line where several run between the same two things. */
  connect() {
    const single = this.graph.units.length < 4000;
    for (const strand of this.graph.strands) {
      if (this.narrow && strand.upper.aside) continue;
      const from = this.standIn(strand.upper), to = this.standIn(strand.lower);
      if (from === to) continue;
      let upper = { thing: from, door: null }, lower = { thing: to, door: null };
      let above = from.parent, below = to.parent;
      while (above !== below) {
        if (above.depth >= below.depth) {
          const door = this.door(above, "last", from);
          this.line(this.frames.get(above), upper, { thing: door, door: null }, strand, false);
          upper = { thing: above, door };
          above = above.parent;
        } else {
          const door = this.door(below, "first", from);
          this.line(this.frames.get(below), { thing: door, door: null }, lower, strand, false);
          lower = { thing: below, door };
          below = below.parent;
        }
      }
      this.line(this.frames.get(above), upper, lower, strand, single && from === strand.upper && to === strand.lower && !upper.door && !lower.door);
    }
  }

  door(group, pin, from) {
    const frame = this.frames.get(group), name = `${pin} ${from.id}`;
    let door = frame.doors.get(name);
    if (!door) {
      const leaf = from.tensors && !from.operation && from.tensors[0]?.kind === "leaf";
      door = { type: "door", id: `${group.id} ${name}`, pin, frame, order: leaf ? -1 : from.order ?? from.first, start: leaf ? -1000 : 0 };
      frame.doors.set(name, door);
      frame.items.set(door, door);
    }
    return door;
  }

  line(frame, upper, lower, strand, alone) {
    const one = frame.items.get(upper.thing), two = frame.items.get(lower.thing);
    const pair = `${one.id}|${two.id}`;
    let edge = frame.edges.get(pair);
    if (!edge) frame.edges.set(pair, (edge = { one, two, lines: new Map(), lanes: [] }));
    const key = (strand.forward ? "f" : "b") + (alone ? `${strand.tail} ${strand.head} ${strand.entry} ${edge.lines.size}` : `${upper.door?.id} ${lower.door?.id}`);
    let line = edge.lines.get(key);
    if (!line) {
      line = { forward: strand.forward, edge, frame, upperDoor: upper.door, lowerDoor: lower.door, strands: [], alone };
      edge.lines.set(key, line);
      frame.lines.push(line);
    }
    line.strands.push(strand);
    let lines = this.linesOf.get(strand);
    if (!lines) this.linesOf.set(strand, (lines = []));
    lines.push(line);
  }

  /** Cards and sizes; tensor cards share one width, so that axes and lines fall into columns. */
  shapeItems() {
    this.items = [];
    let wide = this.narrow ? 76 : 90;
    for (const frame of this.frames.values()) {
      for (const item of frame.items.values()) {
        if (item.type === "unit") {
          item.tensors = this.cards.tensors(item.thing.tensors, item.thing.operation);
          item.node = this.narrow && item.thing.node?.accumulate && item.tensors.length ? null : this.cards.node(item.thing.node);
          for (const card of item.tensors) wide = Math.max(wide, card.width);
        } else if (item.type === "group") item.card = this.cards.group(item.thing);
        if (item.type !== "door") this.items.push(item);
      }
    }
    this.wide = wide;
    for (const item of this.items) if (item.type !== "frame") this.shape(item);
  }

  shape(item) {
    if (item.type === "group") {
      item.card.width = Math.max(item.card.width, this.wide + PAIR + BACKWARD_PORT + 30);
      item.card.x = -PAIR / 2 - this.wide;
      item.box = { left: -item.card.x, right: item.card.x + item.card.width + STACK, above: 0, below: item.card.height + STACK };
      return;
    }
    const operation = this.detail === OUTLINE ? null : item.thing.operation; // in the outline it is named on the card
    [...item.tensors].reverse().forEach((card, number) => {
      card.width = this.wide;
      card.x = -PAIR / 2 - this.wide - number * (this.wide + 10);
    });
    if (item.node) item.node.x = PAIR / 2;
    item.labels = operation && operation.inputs.length > 1 ? operation.names.map((name) => widthOf(name, SIZE) + 8) : [];
    item.pill = operation ? Math.round(Math.max(widthOf(operation.name, SIZE) + 22, item.labels.reduce((sum, wide) => sum + wide, 0))) : 0;
    const [first] = item.tensors, last = item.tensors[item.tensors.length - 1];
    item.middle = first ? (first.x + last.x + last.width) / 2 : -item.pill / 2 - PAIR / 2;
    item.box = {
      left: first ? -first.x : PAIR / 2,
      right: item.node ? item.node.x + item.node.width : -PAIR / 2,
      above: operation ? PILL + PILL_GAP + (item.labels.length ? LABEL : 0) : 0,
      below: Math.max(TITLE, item.node?.height ?? 0, ...item.tensors.map((card) => card.height)),
      low: !item.thing.operation,
      start: item.thing.operation || item.tensors[0]?.kind !== "leaf" ? 0 : -1000,
    };
    if (operation) {
      item.box.left = Math.max(item.box.left, item.pill / 2 - item.middle);
      item.box.right = Math.max(item.box.right, item.middle + item.pill / 2);
    }
  }

  layOut(frame) {
    const items = [...frame.items.values()], number = new Map(items.map((item, at) => [item, at]));
    for (const pin of ["first", "last"]) {
      const doors = items.filter((item) => item.pin === pin), wide = doors.length <= (this.column ? 1 : 2); // as wide as what is behind it: straight lines
      for (const door of doors) {
        door.ports = wide ? [-PAIR / 2 - this.wide / 2, PAIR / 2 + BACKWARD_PORT] : [-STRAND / 2, STRAND / 2];
        door.box = { left: 4 - door.ports[0], right: 4 + door.ports[1], above: 0, below: 0, pin, start: door.start };
      }
    }
    const edges = [...frame.edges.values()], through = new Map();
    for (const { one, two } of edges) for (const end of [one, two]) through.set(end, (through.get(end) ?? 0) + 1);
    for (const edge of edges) {
      edge.source = number.get(edge.one);
      edge.target = number.get(edge.two);
      const lines = [...edge.lines.values()].sort((a, b) => b.forward - a.forward);
      lines.forEach((line, at) => { line.offset = (at - (lines.length - 1) / 2) * STRAND; });
      edge.width = STRAND * (lines.length - 1);
      const tails = new Set(lines.filter((line) => line.forward).flatMap((line) => line.strands.map((strand) => strand.tail)));
      edge.trunk = tails.size === 1 && edge.one.type !== "group" ? [...tails][0] : null; // one tensor, used in several places
      const door = edge.one.pin ? edge.one : edge.two;
      if (!door.pin || door.ports[1] - door.ports[0] <= STRAND || through.get(door) > 1) continue;
      for (const line of lines) line.offset = door.ports[line.forward ? 0 : 1]; // what a door alone leads to lies straight behind it
      edge.width = 2 * Math.max(-door.ports[0], door.ports[1]);
    }
    const gap = this.detail !== OUTLINE ? 34 : this.graph.close ? 10 : this.narrow ? 16 : 20;
    frame.layout = (this.column ? column : place)(items.map((item) => item.box), edges, this.narrow ? 8 : this.detail === OUTLINE ? 18 : 28, gap);
    const item = this.frames.get(frame.group.parent)?.items.get(frame.group);
    if (!item) return;
    const head = widthOf(frame.group.label, SIZE) + 70;
    const width = Math.max(frame.layout.width + 2 * FRAME_PAD, head), height = frame.layout.height + FRAME_HEAD + FRAME_PAD;
    const doors = items.filter((each) => each.pin).sort((a, b) => (b.pin === "last") - (a.pin === "last") || b.order - a.order);
    const axis = doors.length ? doors[0].box.x + FRAME_PAD : width / 2;
    item.box = { left: axis, right: width - axis, above: HEAD_ABOVE, below: height };
    item.width = width;
    item.height = height;
  }

  /** Places on the whole sheet, from the outermost frame inward; then the lines. */
  settle() {
    const sheet = this.frames.get(this.graph.root);
    Object.assign(sheet, { x: 0, y: 0 });
    this.width = sheet.layout.width;
    this.height = sheet.layout.height;
    this.lines = [];
    for (const frame of this.frames.values()) {
      for (const item of frame.items.values()) {
        item.x = frame.x + item.box.x;
        item.y = frame.y + item.box.y;
        if (item.type === "frame") {
          const inner = this.frames.get(item.thing);
          inner.x = item.x - item.box.left + FRAME_PAD;
          inner.y = item.y + FRAME_HEAD;
        }
        item.rect = [item.x - item.box.left, item.y - (item.type === "frame" ? 0 : item.box.above), item.x + item.box.right, item.y + item.box.below];
      }
    }
    for (const frame of this.frames.values()) {
      this.meet(frame);
      for (const line of frame.lines) this.draw(line);
      this.lines.push(...frame.lines);
    }
    this.byThing = new Map(this.items.map((item) => [item.thing, item]));
    this.borders = this.items.filter((item) => item.type === "frame");
    const heads = this.borders.map((item) => this.headOf(item));
    this.cardItems = [...this.items.filter((item) => item.type !== "frame"), ...heads];
    this.cardItems.sort((a, b) => a.rect[1] - b.rect[1] || a.rect[0] - b.rect[0]); // the order of the Tab key
    this.drawn = [...this.borders, ...this.lines, ...this.cardItems];
  }

  /** The name of a frame, on its border where no line crosses it. */
  headOf({ thing, width, rect: [left, y, right] }) {
    const label = shorten(thing.label + (thing.times > 1 ? ` ×${thing.times}` : ""), Math.floor((width - 50) / (SIZE * ADVANCE)), true);
    const wide = widthOf(label, SIZE) + 36;
    const crossing = this.frames.get(thing).lines.flatMap((line) => [[line.top, line.topX], [line.bottom, line.bottomX]]).filter(([item]) => item.pin === "first").map(([, x]) => x);
    const meets = (x) => crossing.filter((each) => each > x - 3 && each < x + wide + 3).length;
    const places = [left + 8, ...crossing.map((x) => x + 8), right - wide - 8].filter((x) => x >= left + 4 && x + wide <= right - 4);
    const x = places.reduce((best, each) => (meets(each) < meets(best) ? each : best), left + 8);
    return { type: "head", thing, label, wide, rect: [x, y - 11, x + wide, y + 11] };
  }

  /** Where several lines meet one side of a thing, they stand side by side in the order in which they come. */
  meet(frame) {
    const fans = new Map();
    for (const line of frame.lines) {
      const { one, two } = line.edge, down = one.box.rank <= two.box.rank;
      line.top = down ? one : two; // the thing that is higher on the sheet
      line.bottom = down ? two : one;
      line.turned = !down;
      for (const atTop of [true, false]) {
        const item = atTop ? line.top : line.bottom;
        const card = item.type === "unit" && atTop && line.forward ? this.tail(item, line).id : "";
        const key = `${item.id} ${line.forward} ${atTop} ${card}`;
        if (!fans.has(key)) fans.set(key, []);
        fans.get(key).push([line, atTop]);
      }
    }
    for (const fan of fans.values()) {
      const [line, atTop] = fan[0];
      const middle = this.port(line, atTop)[0], room = this.port(line, atTop)[1];
      fan.sort(([a], [b]) => this.beside(a, atTop) - this.beside(b, atTop) || a.offset - b.offset);
      const slots = [0]; // branches of one trunk, which come from the same lane, stand together
      for (let at = 1; at < fan.length; at++) {
        const [one, two] = [fan[at - 1][0], fan[at][0]];
        const together = two.edge.lanes.length && one.edge.lanes.length && this.beside(one, atTop) === this.beside(two, atTop);
        slots.push(slots[at - 1] + (together ? 0 : 1));
      }
      const last = slots[slots.length - 1], step = Math.min(10, room / (last + 1));
      const labelled = this.labelled(fan, atTop);
      let used = 0;
      const xs = fan.map(([each], at) => {
        if (!labelled) return this.port(each, atTop)[1] ? middle + (slots[at] - last / 2) * step : this.port(each, atTop)[0];
        used += widthOf(each.label, SIZE) + 8;
        return middle - labelled / 2 + used - widthOf(each.label, SIZE) - 4;
      });
      const straight = fan.findIndex(([each]) => Math.abs(this.beside(each, atTop) - middle) < 0.5);
      const shift = room && straight >= 0 ? middle - xs[straight] : 0; // what comes from right above goes straight down
      fan.forEach(([each], at) => { each[atTop ? "topX" : "bottomX"] = xs[at] + shift; });
      const { bottom } = line;
      if (labelled) bottom.span = [Math.min(...xs) + shift - 11, Math.max(...xs) + shift + 11]; // the label of the operation reaches all its operands
    }
  }

  /** The width of the names of operands that stand beside the lines of a fan, or 0 if there are none. */
  labelled(fan, atTop) {
    if (atTop || this.detail === OUTLINE || !fan[0][0].forward) return 0;
    const { bottom } = fan[0][0];
    if (bottom.type !== "unit" || !bottom.labels?.length) return 0;
    for (const [line] of fan) line.label = [...new Set(line.strands.map((strand) => strand.name ?? ""))].join(", ");
    return fan.reduce((sum, [line]) => sum + widthOf(line.label, SIZE) + 8, 0);
  }

  tail(item, line) {
    return item.tensors.find((card) => card.id === line.strands[0].tail) ?? item.tensors[0] ?? item.node;
  }

  /** The middle of where a line meets a thing, and how far its fellows may spread there. */
  port(line, atTop) {
    const item = atTop ? line.top : line.bottom, side = line.forward ? 0 : 1;
    if (item.type === "door") return [item.x + item.ports[side], 0];
    if (item.type === "frame") {
      const door = item === line.edge.one ? line.upperDoor : line.lowerDoor;
      return [door.x + door.ports[side], 0];
    }
    if (item.type === "group") return line.forward ? [item.x - PAIR / 2 - this.wide / 2, this.wide / 2] : [item.x + PAIR / 2 + BACKWARD_PORT, 64];
    if (!line.forward) return [item.x + (item.node ?? item.tensors[0]).x + BACKWARD_PORT, 64];
    if (!atTop && item.pill) return [item.x + item.middle, Math.max(item.pill - 20, 4)];
    if (!atTop) return [item.x + item.tensors[0].x + item.tensors[0].width / 2, item.tensors[0].width / 2];
    const card = this.tail(item, line);
    return [item.x + card.x + card.width / 2, card.width / 2];
  }

  beside(line, atTop) {
    const lanes = line.edge.lanes;
    if (!lanes.length) return this.port(line, !atTop)[0];
    const first = line.turned ? lanes.length - 1 : 0;
    return line.frame.x + lanes[atTop ? first : lanes.length - 1 - first] + line.offset;
  }

  draw(line) {
    const { frame, top, bottom } = line, bands = frame.layout.bands;
    const lanes = (line.turned ? line.edge.lanes.slice().reverse() : line.edge.lanes).map((x) => frame.x + x + line.offset);
    let foot = top.y + top.box.below, head = bottom.y - bottom.box.above;
    if (top.type === "unit") foot = top.y + (line.forward ? this.tail(top, line) : top.node ?? top.tensors[0]).height;
    if (bottom.type === "unit" && !line.forward) head = bottom.y;
    if (bottom.type === "frame") head = bottom.y;
    if (bottom.type === "unit" && line.forward) head = bottom.y - (bottom.pill ? PILL + PILL_GAP : 0);
    if (top.type === "door") foot = top.y - (top.pin === "first" ? FRAME_HEAD : 0);
    if (bottom.type === "door") head = bottom.y + FRAME_PAD;
    const stops = [[line.topX, foot, frame.y + bands[top.box.rank][1]]];
    lanes.forEach((x, at) => stops.push([x, ...bands[top.box.rank + at + 1].map((y) => frame.y + y)]));
    stops.push([line.bottomX, frame.y + bands[bottom.box.rank][0], head]);
    line.downward = line.forward !== line.turned;
    line.path = pathOf(line.downward ? stops : stops.map(([x, y, end]) => [x, end, y]).reverse());
    const xs = stops.map((stop) => stop[0]);
    line.rect = [Math.min(...xs) - 2, foot, Math.max(...xs) + 2, head];
    line.start = line.downward ? [line.topX, foot] : [line.bottomX, head];
    line.end = line.downward ? [line.bottomX, head] : [line.topX, foot];
    const intoDoor = (line.downward ? bottom : top).type === "door";
    const intoBorder = (line.downward ? bottom : top).type === "frame";
    line.arrow = !intoDoor && !intoBorder;
  }
}

/** A line through vertical pieces [x, from y, to y], joined by curves that are vertical where they meet them. */
function pathOf(stops) {
  const text = (value) => String(Math.round(value * 10) / 10);
  let [x, y, end] = stops[0];
  let path = `M${text(x)} ${text(y)}`;
  if (Math.abs(end - y) > 0.5) path += `V${text(end)}`;
  for (const [nextX, top, bottom] of stops.slice(1)) {
    const half = (top - end) / 2;
    if (Math.abs(nextX - x) < 0.5) path += `L${text(nextX)} ${text(top)}`;
    else path += `C${text(x)} ${text(end + half)} ${text(nextX)} ${text(top - half)} ${text(nextX)} ${text(top)}`;
    if (Math.abs(bottom - top) > 0.5) path += `V${text(bottom)}`;
    [x, end] = [nextX, bottom];
  }
  return path;
}
