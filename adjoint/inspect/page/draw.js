// Things with places as elements of SVG.

function textAt(words, x, y, css) {
  return svgElement("text", { class: css, x: Math.round(x * 10) / 10, y: Math.round(y * 10) / 10 }, words);
}

/** The line on which the title of a card stands. */
const base = (card) => (card.rows.length ? TITLE : card.height) / 2 + 4;

/** A card that can be focused: a title, a note beside it, and rows below. */
function drawCard(card, x, y, role = "") {
  const { width, height } = card, radius = card.kind === "accumulate" ? 12 : card.kind === "group" ? 9 : 6;
  const group = svgElement("g", { class: `card ${card.kind}${card.root ? " root" : ""}${card.op ? " op" : ""}`, "data-id": card.id, tabindex: 0, role: "button", "aria-label": card.hint });
  group.append(svgElement("title", {}, card.hint));
  if (card.kind === "group") {
    for (const off of [STACK, STACK / 2]) group.append(svgElement("rect", { class: "b s", x: x + off, y: y + off, width, height, rx: radius }));
    group.setAttribute("aria-expanded", "false");
  }
  group.append(svgElement("rect", { class: "b", x, y, width, height, rx: radius }));
  if (card.rows.length && card.kind !== "accumulate") {
    const side = TITLE - radius;
    group.append(svgElement("path", { class: "h", d: `M${x} ${y + TITLE}v-${side}a${radius} ${radius} 0 0 1 ${radius}-${radius}h${width - 2 * radius}a${radius} ${radius} 0 0 1 ${radius} ${radius}v${side}z` }));
  }
  const alone = !card.note && !card.rows.length;
  group.append(textAt(card.title, alone ? x + width / 2 : x + PAD, y + base(card), alone ? "t m" : "t"));
  if (card.note) group.append(textAt(card.note, x + width - PAD - (card.kind === "group" ? 16 : 0), y + base(card), `l e${card.noteCss ? ` ${card.noteCss}` : ""}`));
  card.rows.forEach((row, number) => {
    const line = y + TITLE + ROW * number + 14, css = row.css ? ` ${row.css}` : "";
    if (row.label) group.append(textAt(row.label, x + PAD, line, `l${css}`));
    if (row.value) row.element = group.appendChild(textAt(row.value, x + width - PAD, line, `r e${css}`));
    if (row.saved) for (const text of [...group.children].slice(-2)) text.setAttribute("data-saved", row.saved);
  });
  if (card.kind === "group") {
    const at = x + width - 18;
    group.append(svgElement("path", { class: "sign", d: `M${at} ${y + base(card) - 4}h9m-4.5-4.5v9` }),
      svgElement("rect", { class: "hit", "data-fold": card.id, x: at - 8, y, width: 26, height: Math.min(height, TITLE) }));
  }
  return group;
}

function drawItem(item) {
  if (item.type === "head") return drawHead(item);
  if (item.type === "group") return drawCard(item.card, item.x + item.card.x, item.y);
  const operation = item.pill ? item.thing.operation : null;
  const group = svgElement("g", { class: "unit" });
  if (operation) {
    const middle = item.x + item.middle, top = item.y - PILL - PILL_GAP;
    for (const card of item.tensors) {
      const x = item.x + card.x + card.width / 2;
      group.append(svgElement("path", { class: "stem", d: pathOf([[middle, top + PILL, top + PILL], [x, item.y, item.y]]) }));
    }
    group.append(svgElement("g", { class: "pill", "data-id": operation.id },
      svgElement("rect", { x: middle - item.pill / 2, y: top, width: item.pill, height: PILL, rx: 10 }),
      textAt(operation.name, middle, top + 15, "m")));
  }
  if (item.node && item.tensors.length) {
    const start = item.x - PAIR / 2;
    group.append(svgElement("path", { class: "tie", d: `M${start + 4} ${item.y + (item.node.rows.length ? TITLE : item.node.height) / 2}h${PAIR - 7}` }));
  }
  for (const card of [...item.tensors, item.node]) if (card) group.append(drawCard(card, item.x + card.x, item.y));
  return group;
}

function drawFrame(item) {
  const [x, y] = item.rect, { width, height } = item;
  return svgElement("g", { class: "frame" }, svgElement("rect", { x, y, width, height, rx: 12 }));
}

/** The name of a frame, on its border: a button that folds it. */
function drawHead({ rect: [x, top], label, wide, thing }) {
  const y = top + 11;
  return svgElement("g", { class: "card head", "data-id": thing.id, tabindex: 0, role: "button", "aria-expanded": "true", "aria-label": `${thing.kind} ${thing.label}` },
    svgElement("rect", { class: "b", x, y: y - 11, width: wide, height: 22, rx: 11 }),
    textAt(label, x + 11, y + 4, "t"),
    svgElement("path", { class: "sign", d: `M${x + wide - 20} ${y}h9` }),
    svgElement("rect", { class: "hit", "data-fold": thing.id, x: x + wide - 28, y: y - 11, width: 28, height: 22 }));
}

function drawLine(line) {
  const many = line.strands.length > 1 && !line.alone && (line.edge.one.type === "group" || line.edge.two.type === "group");
  const path = svgElement("path", { class: `line ${line.forward ? "f0" : "b0"}${many ? " many" : ""}`, d: line.path });
  if (line.arrow) path.setAttribute("marker-end", `url(#arrow-${line.forward ? "f" : "b"})`);
  const group = svgElement("g", { class: "strand", "data-kind": line.forward ? "forward" : "backward" }, path);
  const [{ index }] = line.strands;
  if (!line.forward && line.alone && index) group.append(textAt(String(index), line.end[0] + 4, line.end[1] + 14, "index"));
  if (line.label && line.arrow) group.append(textAt(line.label, line.end[0] + 4, line.end[1] - 6, "operand"));
  return group;
}
