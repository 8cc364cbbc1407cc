// The page: puts graph, view, panel, search and player together, and listens.

const find = (id) => document.getElementById(id);
const began = performance.now();
const graph = readGraph(JSON.parse(find("data").textContent));
const view = new View(find("sheet"));
const panel = new Panel(graph, (id) => select(id, true));
const player = new Player(graph, playerChanged);
const state = { open: new Set(), detail: OUTLINE, selected: null, matches: [], match: -1, scene: null, path: null, hot: null };
const map = new SmallMap(find("map"), view);
const MOST = 2500; // so many things at once are still quick to lay out and to move

// ---------------------------------------------------------------- what is shown

function rebuild(keep) {
  const before = keep && state.scene?.byThing.get(keep);
  const anchor = before && view.toScreen(before.rect[0], before.rect[1]);
  state.scene = buildScene(graph, state.open, state.detail);
  if (state.hot) state.hot = heatOf(graph, state.scene, state.hot.kind);
  view.show(state.scene);
  if (!anchor) return;
  const after = state.scene.byThing.get(keep);
  const [x, y] = view.toScreen(after.rect[0], after.rect[1]);
  view.pan(anchor[0] - x, anchor[1] - y);
  view.reveal(after.rect, false);
}

function toggle(group) {
  if (state.open.has(group)) {
    state.open.delete(group);
    for (const other of [...state.open]) if (isInside(other, group)) state.open.delete(other);
  } else state.open.add(group);
  rebuild(group);
  document.querySelector(`[data-id="${group.id}"]`)?.focus({ preventScroll: true });
}

function isInside(thing, group) {
  for (let up = thing.parent; up; up = up.parent) if (up === group) return true;
  return false;
}

/** What the reader looks at: what is selected or in the middle of the window. */
function looked() {
  const [width, height] = view.size;
  if (state.selected) return itemOf(state.selected).thing;
  const far = ({ rect }) => { const [x, y] = view.toScreen((rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2); return Math.hypot(x - width / 2, y - height / 2); };
  return state.scene.items.reduce((best, item) => (best && far(best) <= far(item) ? best : item), null)?.thing;
}

/** Unfold these groups and no others; what the reader looks at stays in sight. */
function openOnly(open) {
  const thing = looked(), before = thing && view.toScreen(...state.scene.byThing.get(thing).rect);
  state.open = open;
  rebuild();
  if (!thing) return;
  const { rect } = state.scene.byThing.get(thing.parent && !state.scene.byThing.has(thing) ? state.scene.standIn(thing) : thing) ?? state.scene.items[0];
  const [x, y] = view.toScreen(rect[0], rect[1]);
  view.pan(before[0] - x, before[1] - y);
  view.reveal(rect);
}

function foldAll() {
  state.open = new Set();
  rebuild();
  view.fit(LEGIBLE);
}

/** Level by level, as far as it remains quick. */
function unfoldAll() {
  const open = graph.firstOpen(MOST), folded = graph.units.length && [...graph.groups.values()].some((group) => group.size && !open.has(group));
  openOnly(open);
  if (folded) toast(`Unfolded as far as ${plural(MOST, "thing")} go; unfold the rest where you need it`);
}

function toast(words) {
  find("toast").textContent = words;
  find("toast").classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => find("toast").classList.remove("shown"), 3200);
}

// ---------------------------------------------------------------- selection

const thingOf = (id) => {
  const record = graph.byId.get(id) ?? graph.groups.get(id);
  if (record?.inputs && record.outputs) return graph.byId.get(record.node) ?? graph.byId.get(record.outputs[0]);
  return record;
};

function itemOf(thing) {
  const place = thing.children ? thing : graph.unitOf.get(thing.id);
  return state.scene.byThing.get(place.parent ? state.scene.standIn(place) : place) ?? state.scene.byThing.get(place);
}

/** Open every group around a thing, so that it is seen. */
function unfoldTo(thing) {
  const place = thing.children ? thing : graph.unitOf.get(thing.id);
  let changed = false;
  for (let group = place.parent; group?.parent; group = group.parent) {
    if (!state.open.has(group)) {
      state.open.add(group);
      changed = true;
    }
  }
  if (changed) rebuild();
}

function select(id, show = false) {
  const thing = id == null ? null : thingOf(id);
  state.selected = thing;
  if (state.path) state.path = thing && connected(graph, thing);
  find("panel").hidden = !thing;
  if (thing) fillPanel();
  view.resized();
  if (thing) {
    if (show) unfoldTo(thing);
    find("panel").scrollTop = 0;
    view.reveal(itemOf(thing).rect, show);
  }
  dressAll();
}

function fillPanel() {
  const thing = state.selected;
  if (!thing) return;
  const path = html("button", { type: "button", "aria-pressed": String(!!state.path), title: "What leads to this, and where this leads (p)", onclick: togglePath }, "Show only its path");
  find("about").replaceChildren(...panel.about(thing, thing.next ? player.of(thing) : null).flat().filter(Boolean), html("p", { style: "margin-top: 14px" }, path));
}

/** What is not connected with what is selected steps back, or comes forward again. */
function togglePath() {
  state.path = state.path || !state.selected ? null : connected(graph, state.selected);
  fillPanel();
  dressAll();
}

/** Cards are coloured by what they save for backward, by the time they took if it is known, or by what they are. */
function nextColours() {
  const kinds = [null, "memory", ...(graph.data.nodes.some((node) => Object.keys(node.seconds).length) ? ["time"] : [])];
  const kind = kinds[(kinds.indexOf(state.hot?.kind ?? null) + 1) % kinds.length];
  state.hot = kind && heatOf(graph, state.scene, kind);
  find("heat").setAttribute("aria-pressed", String(!!state.hot));
  find("sheet").classList.toggle("hot", !!state.hot);
  legend();
  dressAll();
}

// ---------------------------------------------------------------- how elements look at this moment

function dressAll() {
  for (const thing of state.scene.drawn) if (thing.element) dress(thing);
  drawFlows();
}

function dress(thing) {
  thing.element.classList.toggle("off", !!state.path && !(thing.strands ? thing.strands.some((strand) => state.path.has(strand.upper) && state.path.has(strand.lower)) : state.path.has(thing.thing)));
  if (thing.strands) return dressLine(thing);
  if (state.hot) thing.element.style.setProperty("--heat", `${state.hot.shares.get(thing) ?? 0}%`);
  const wanted = state.selected?.id, match = state.matches[state.match];
  for (const card of thing.element.querySelectorAll(".card")) dressCard(card, thing, wanted, match);
  if (thing.element.classList.contains("card")) dressCard(thing.element, thing, wanted, match);
  if (thing.type === "frame") thing.element.classList.toggle("holds", !!player.step && isInside(graph.unitOf.get(player.step.node), thing.thing));
  if (thing.type === "unit" && player.steps.length) dressUnit(thing);
}

function dressCard(card, item, wanted, match) {
  const { id } = card.dataset;
  card.classList.toggle("selected", id === wanted);
  card.classList.toggle("match", match === id);
  if (!player.steps.length) return;
  const running = player.step && graph.unitOf.get(player.step.node);
  const isActive = item.type === "group" ? !!running && isInside(running, item.thing) : !!player.step && (id === player.step.node || (item.type === "unit" && !item.node && item.thing.node?.id === player.step.node));
  card.classList.toggle("active", isActive);
  const record = graph.byId.get(id);
  card.classList.toggle("waiting", item.type === "unit" && !!record?.next && player.stateOf(id) === "waiting");
}

/** The rows that change while backward is played: a leaf's grad, saved tensors that are gone. */
function dressUnit(item) {
  const [tensor] = item.thing.tensors, { node } = item.thing;
  const row = item.tensors[0]?.rows.find((each) => each.css === "grad");
  if (row?.element && tensor) {
    const { text, fresh } = player.gradOf(tensor);
    row.element.textContent = shorten(text, VALUE_LIMIT);
    row.element.classList.toggle("new", fresh);
  }
  if (!node?.saved.length) return;
  const number = player.stepOf.get(node.id), freed = number < player.at ? player.steps[number].freed : [];
  for (const text of item.element.querySelectorAll("[data-saved]")) {
    const saved = node.saved.find((each) => each.name === text.dataset.saved);
    text.classList.toggle("freed", saved?.state === "freed" || freed.includes(text.dataset.saved));
  }
}

function dressLine(line) {
  const path = line.element.firstChild, id = state.selected?.id;
  const near = id != null && line.strands.length < 200 && line.strands.some((strand) => strand.tail === id || strand.head === id);
  path.classList.toggle("near", near);
  if (!player.steps.length || line.forward) return;
  const active = player.step && line.strands.some((strand) => strand.tail === player.step.node);
  path.classList.toggle("lit", !!active);
  path.classList.toggle("waiting", !!player.at && !active && line.strands.every((strand) => player.stateOf(strand.tail) === "waiting"));
  if (line.arrow) path.setAttribute("marker-end", active ? "url(#arrow-lit)" : "url(#arrow-b)");
}

/** Values on the edges along which gradients go in this step. */
function drawFlows() {
  const labels = [];
  for (const { strand, words } of player.flows()) {
    const lines = state.scene.linesOf.get(strand);
    if (!lines) continue;
    const line = lines.find((each) => each.arrow) ?? lines[lines.length - 1];
    const [x, y] = line.end, wide = widthOf(words, SIZE) + 14;
    const rect = { x: x + 9, y: y + 5, wide };
    while (labels.some((other) => Math.abs(other.y - rect.y) < 20 && rect.x < other.x + other.wide && other.x < rect.x + wide)) rect.y += 20;
    labels.push({ ...rect, words });
  }
  find("labels").replaceChildren(...labels.map(({ x, y, wide, words }) => svgElement("g", { class: "flow" },
    svgElement("rect", { x, y, width: wide, height: 18, rx: 9 }), textAt(words, x + 7, y + 12.5, ""))));
}

view.dress = dress;

// ---------------------------------------------------------------- the player

function playerChanged() {
  const { step, at, steps } = player;
  find("slider").value = at;
  find("slider").style.setProperty("--part", `${(100 * at) / steps.length}%`);
  find("play").classList.toggle("playing", !!player.playing);
  find("play").setAttribute("aria-label", player.playing ? "Pause" : "Play");
  const node = step && graph.byId.get(step.node);
  find("step").replaceChildren(`${at} / ${steps.length}`, step ? "  " : "", step ? html("b", {}, node.name) : "  before backward", step ? stepWords(step) : "");
  find("step").title = find("step").textContent;
  if (step) view.reveal(cardRect(step.node));
  if (state.selected?.next) fillPanel();
  dressAll();
}

function stepWords(step) {
  const leaf = graph.unitOf.get(step.node).tensors[0];
  const parts = [], { parent } = graph.unitOf.get(step.node);
  if (parent.label) parts.push(`in ${parent.label}`);
  if (step.accumulated != null) parts.push(`${leaf?.name ?? "leaf"}.grad`);
  if (step.freed.length) parts.push(`frees ${step.freed_bytes ? amount(step.freed_bytes) : plural(step.freed.length, "tensor")}`);
  if (step.hooks.length) parts.push(plural(step.hooks.length, "hook"));
  return parts.length ? `  ${parts.join(", ")}` : "";
}

function cardRect(node) {
  return itemOf(graph.byId.get(node)).rect;
}

// ---------------------------------------------------------------- search

let haystacks = null;

/** What can be found: made when first asked for, as it takes a moment for a large graph. */
function searchable() {
  if (haystacks) return haystacks;
  haystacks = [];
  for (const tensor of graph.data.tensors) if (tensor.name) haystacks.push([tensor.id, `${tensor.name} ${sizeOf(tensor.shape)} ${tensor.dtype}`.toLowerCase()]);
  for (const node of graph.data.nodes) {
    const unit = graph.unitOf.get(node.id), line = node.line ? `${fileOf(node.line)} ${node.line.text} ${node.line.function}` : "";
    const owner = node.accumulate ? unit.tensors[0]?.name ?? "" : unit.operation?.name ?? "";
    haystacks.push([node.id, `${node.name} ${owner} ${node.module ?? ""} ${line}`.toLowerCase()]);
  }
  for (const group of new Set(graph.groups.values())) if (group.kind !== "run") haystacks.push([group.id, group.label.toLowerCase()]);
  return haystacks;
}

/** Between slashes stands a regular expression. */
function patternOf(query) {
  try {
    return /^\/.+\/$/.test(query) ? new RegExp(query.slice(1, -1), "i") : null;
  } catch {
    return null;
  }
}

function search() {
  const query = find("query").value.trim(), words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const exact = (text) => (text.split(" ", 1)[0] === words[0] ? 0 : text.startsWith(words[0]) ? 1 : 2);
  const pattern = patternOf(query), fits = pattern ? (text) => pattern.test(text) : (text) => words.every((word) => text.includes(word));
  state.matches = !words.length ? [] : searchable().filter(([, text]) => fits(text))
    .sort((a, b) => exact(a[1]) - exact(b[1])).map(([id]) => id);
  state.match = -1;
  find("found").textContent = words.length ? (state.matches.length ? state.matches.length.toLocaleString("en") : "none") : "";
}

function nextMatch(by = 1) {
  const count = state.matches.length;
  if (!count) return;
  state.match = (state.match + by + (state.match < 0 && by < 0 ? 1 : 0) + count) % count;
  find("found").textContent = `${state.match + 1} / ${count.toLocaleString("en")}`;
  select(state.matches[state.match], true);
}

// ---------------------------------------------------------------- keys and clicks

const KEYS = [
  ["/", "search; Enter goes to the next match, Shift Enter to the one before", () => find("query").select()],
  ["0", "fit to the window", () => view.fit()],
  ["+", "zoom in (or the wheel, or two fingers)", () => view.zoom(1.25)],
  ["−", "zoom out", () => view.zoom(0.8)],
  ["f", "fold all", foldAll],
  ["u", "unfold all", unfoldAll],
  ["d", "more or less on the cards", () => setDetail((state.detail + 1) % 3)],
  ["p", "of what is selected: only what leads to it, and where it leads", togglePath],
  ["c", "colours: what a card is, what it saves for backward, or the time it took", nextColours],
  ["t", "light or dark", toggleTheme],
  ["→", "a step of backward", () => player.steps.length && player.move(1)],
  ["←", "a step back", () => player.steps.length && player.move(-1)],
  ["m", "steps of nodes, or of modules", () => { find("level").value = player.level = player.level === "node" ? "module" : "node"; }],
  ["space", "play or pause", () => player.steps.length && player.toggle()],
  ["s", "save what is shown as SVG", () => save("svg")],
  ["i", "save what is shown as PNG", () => save("png")],
  ["?", "these keys", () => find("help").showModal()],
];
const OTHER_KEYS = [
  ["Tab", "from card to card"],
  ["↑ ↓ ← →", "move the sheet; on a card, to the nearest card"],
  ["Enter", "everything about a card; unfold or fold a group (or double-click)"],
  ["Esc", "close"],
];
const aliases = { "-": "−", "=": "+", " ": "space", ArrowRight: "→", ArrowLeft: "←", ".": "→", ",": "←" };

function setDetail(detail) {
  state.detail = detail;
  find("detail").value = String(detail);
  openOnly(state.open);
}

const save = (form) => savePicture(form, view, graph.data.title || "graph");

function toggleTheme() {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input[type=search], dialog")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const card = event.target.closest(".card"), arrow = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (event.key === "Escape") select(null);
  else if (event.key === "Enter" && card) activate(card);
  else if (event.target.closest("button, input, select, summary") && (event.key === " " || event.key === "Enter" || arrow)) return;
  else if (arrow && player.steps.length && !card && arrow[0]) player.move(-arrow[0]);
  else if (arrow && card) focusBeside(card, -arrow[0], -arrow[1]);
  else if (arrow) view.pan(arrow[0] * 60, arrow[1] * 60);
  else {
    const found = KEYS.find(([key]) => key === (aliases[event.key] ?? event.key));
    if (!found) return;
    found[2]();
  }
  event.preventDefault();
});

function activate(card) {
  const group = graph.groups.get(card.dataset.id);
  if (group) toggle(group);
  else {
    select(card.dataset.id);
    find("panel").focus({ preventScroll: true });
  }
}

/** The nearest card in a direction: how far it lies to the side counts double. */
function focusBeside(card, dx, dy) {
  const middle = (element) => { const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
  const [x, y] = middle(card);
  let best = null, least = Infinity;
  for (const other of view.svg.querySelectorAll(".card")) {
    const [ox, oy] = middle(other), ahead = (ox - x) * dx + (oy - y) * dy, aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
    if (other !== card && ahead > 4 && ahead + 2 * aside < least) [best, least] = [other, ahead + 2 * aside];
  }
  if (!best) return;
  best.focus({ preventScroll: true });
  showFocused(best);
}

function showFocused(card) {
  const box = card.querySelector(".b").getBoundingClientRect(), frame = view.svg.getBoundingClientRect();
  const x = Math.max(frame.left + 30 - box.left, 0) + Math.min(frame.right - 30 - box.right, 0);
  const y = Math.max(frame.top + 30 - box.top, 0) + Math.min(frame.bottom - 90 - box.bottom, 0);
  if (x || y) view.pan(x, y);
}

view.svg.addEventListener("focusin", (event) => {
  const card = event.target.closest(".card");
  if (card?.matches(":focus-visible")) showFocused(card);
});
view.svg.addEventListener("click", (event) => {
  if (view.moved > 3) return;
  const fold = graph.groups.get(event.target.dataset.fold);
  if (fold) return toggle(fold);
  const card = event.target.closest("[data-id]");
  select(card ? card.dataset.id : null);
});
view.svg.addEventListener("dblclick", (event) => {
  const group = graph.groups.get(event.target.closest("[data-id]")?.dataset.id);
  if (group && !event.target.dataset.fold) toggle(group);
});
find("panel").addEventListener("click", (event) => {
  const group = graph.groups.get(event.target.dataset.toggle);
  if (!group) return;
  unfoldTo(group);
  toggle(group);
});
find("search").addEventListener("submit", (event) => event.preventDefault());
find("query").addEventListener("input", search);
find("query").addEventListener("keydown", (event) => {
  if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
  else if (event.key === "Escape") {
    find("query").value = "";
    search();
    view.svg.focus();
  } else return;
  event.preventDefault();
});
const buttons = { fold: foldAll, unfold: unfoldAll, heat: nextColours, fit: () => view.fit(), in: () => view.zoom(1.25), out: () => view.zoom(0.8),
  theme: toggleTheme, keys: () => find("help").showModal(), close: () => select(null), back: () => player.move(-1), play: () => player.toggle(), forward: () => player.move(1) };
for (const [id, action] of Object.entries(buttons)) find(id).addEventListener("click", action);
find("slider").addEventListener("input", () => { player.pause(); player.go(Number(find("slider").value)); });

find("detail").addEventListener("change", () => setDetail(Number(find("detail").value)));
find("pace").addEventListener("change", () => player.setPace(Number(find("pace").value)));
find("level").addEventListener("change", () => { player.level = find("level").value; });
find("export").addEventListener("change", () => {
  const form = find("export").value;
  find("export").value = "";
  save(form);
});

addEventListener("beforeprint", () => view.print(true));
addEventListener("afterprint", () => view.print(false));

// ---------------------------------------------------------------- begin

function legend() {
  const kinds = new Set(graph.data.tensors.map((tensor) => tensor.kind));
  const states = new Set(graph.data.nodes.flatMap((node) => node.saved.map((saved) => saved.state)));
  const entries = [
    [kinds.has("leaf"), "leaf", "leaf that requires grad"],
    [kinds.has("constant"), "constant", "leaf off the graph"],
    [kinds.has("intermediate"), "intermediate", "intermediate"],
    [graph.data.nodes.some((node) => !node.accumulate), "node", "backward node"],
    [graph.data.nodes.some((node) => node.accumulate), "accumulate", "adds to .grad"],
    [graph.groups.size > 0, "group", "folded"],
    [true, "line-f", "forward"],
    [graph.data.nodes.length > 0, "tied", "grad_fn"],
    [graph.data.nodes.length > 0, "line-b", "next_functions"],
  ];
  const items = entries.filter(([occurs]) => occurs).map(([, css, words]) => html("li", {}, html("i", { class: css }), words));
  for (const mark of ["added", "removed", "changed"]) {
    if (graph.data.operations.some((operation) => operation.mark === mark)) items.push(html("li", { class: mark }, html("i"), mark));
  }
  if (state.hot) items.push(html("li", {}, html("i", { class: "heat" }), `${HEATS[state.hot.kind].words} up to ${HEATS[state.hot.kind].text(state.hot.most)}`));
  if (states.has("stale")) items.push(html("li", { class: "stale" }, "changed since saved"));
  if (states.has("freed")) items.push(html("li", { class: "freed" }, "freed by backward"));
  find("legend").querySelector("ul").replaceChildren(...items);
}

/** What the keys do; a press on one does it too, as a telephone has no keys. */
function listKeys() {
  const playing = ["→", "←", "m", "space"];
  const rows = [...KEYS.filter(([key]) => player.steps.length || !playing.includes(key)), ...OTHER_KEYS];
  find("shortcuts").replaceChildren(...rows.flatMap(([key, words, action]) => {
    const press = () => { find("help").close(); action(); };
    return [html("dt", {}, html("kbd", {}, key)), html("dd", {}, action ? html("button", { type: "button", class: "link", onclick: press }, words) : words)];
  }));
}

function begin() {
  const { data } = graph;
  find("title").textContent = find("title").title = data.title || "Graph";
  find("summary").textContent = [plural(data.operations.length, "operation"), plural(data.nodes.filter((node) => node.accumulate).length, "leaf").replace("leafs", "leaves") + (data.leaf_bytes ? ` of ${amount(data.leaf_bytes)}` : ""), `${amount(data.bytes ?? 0)} saved`].filter(Boolean).join(" · ");
  listKeys();
  legend();
  if (player.steps.length) {
    find("player").hidden = false;
    find("slider").max = player.steps.length;
  }
  find("legend").open = innerWidth > 860 && innerHeight > 560;
  view.changed = () => map.draw();
  Object.assign(state, opening(graph, view.size));
  find("detail").value = String(state.detail);
  for (const id of ["fold", "unfold"]) find(id).hidden = graph.groups.size === 0;
  rebuild();
  view.fit(LEGIBLE);
  if (player.steps.length) playerChanged();
  document.documentElement.dataset.ready = String(Math.round(performance.now() - began));
}

begin();
