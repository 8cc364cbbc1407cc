// The window onto the sheet: pan, zoom, fit; and what is in sight, which alone is in the document.

const svgElement = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value != null && value !== "") element.setAttribute(key, value);
  element.append(...children.filter((child) => child != null));
  return element;
};

const EDGE = 24; // so much of a card is always in sight
const calm = matchMedia("(prefers-reduced-motion: reduce)");

class View {
  constructor(svg) {
    this.svg = svg;
    this.world = svg.querySelector("#world");
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.scene = null;
    this.dress = () => {};
    this.listen();
    this.moved = 0;
    this.untouched = true; // the reader has not moved the sheet: it stays fitted
    this.known = null;
    this.changed = () => {};
    new ResizeObserver(() => this.resized()).observe(svg);
  }

  get size() {
    const { width, height } = this.svg.getBoundingClientRect();
    return [width || 1, height || 1];
  }

  /** The window has another size: what was fitted is fitted again, else what was in the middle stays there. */
  resized() {
    const [width, height] = this.size, before = this.known;
    this.known = [width, height];
    if (!this.scene || this.whole || (before && before[0] === width && before[1] === height)) return;
    if (this.untouched || !before) this.fit();
    else this.place(this.x + (width - before[0]) / 2, this.y + (height - before[1]) / 2);
  }

  place(x, y) {
    this.x = x;
    this.y = y;
    this.untouched = false;
    this.update();
  }

  show(scene) {
    this.scene = scene;
    for (const id of ["frames", "lines", "items", "labels"]) document.getElementById(id).replaceChildren();
    this.seen = null;
    this.update();
  }

  /** The whole sheet in the window; small graphs are not blown up, large ones start where they end. */
  fit(least = 0.05) {
    const [width, height] = (this.known = this.size), { scene } = this;
    const scale = Math.min((width - 2 * MARGIN) / scene.width, (height - 2 * MARGIN) / scene.height, 1.25);
    this.scale = Math.max(scale, least);
    this.x = (width - scene.width * this.scale) / 2;
    this.y = scale >= least ? (height - scene.height * this.scale) / 2 : MARGIN;
    this.untouched = true;
    this.update();
  }

  zoom(factor, [x, y] = this.size.map((length) => length / 2)) {
    const scale = Math.min(Math.max(this.scale * factor, 0.01), 6);
    this.x = x - (x - this.x) * (scale / this.scale);
    this.y = y - (y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.untouched = false;
    this.update();
  }

  pan(x, y) {
    this.place(this.x + x, this.y + y);
  }

  /** All of the sheet, for paper; and back. */
  print(whole) {
    this.whole = whole;
    if (whole) {
      this.cull(true);
      this.world.removeAttribute("transform");
      this.svg.setAttribute("viewBox", `-12 -24 ${this.scene.width + 24} ${this.scene.height + 36}`);
      return;
    }
    this.svg.removeAttribute("viewBox");
    this.update();
  }

  toScreen(x, y) {
    return [this.x + x * this.scale, this.y + y * this.scale];
  }

  /** Bring a rectangle of the sheet into view: to the middle, and near enough to read, if `always`; else by the shortest way. */
  reveal([left, top, right, bottom], always = false, least = 0.7) {
    const [width, height] = this.size;
    const scale = always ? Math.max(this.scale, least) : this.scale;
    const [x1, y1] = this.toScreen(left, top), [x2, y2] = this.toScreen(right, bottom);
    if (!always) {
      const shift = (low, high, room) => (high - low > room - 2 * MARGIN ? room / 2 - (low + high) / 2 : Math.max(MARGIN - low, 0) + Math.min(room - MARGIN - high, 0));
      const [dx, dy] = [shift(x1, x2, width), shift(y1, y2, height)];
      if (dx || dy) this.glide(scale, this.x + dx, this.y + dy);
      return;
    }
    this.glide(scale, width / 2 - ((left + right) / 2) * scale, height / 2 - ((top + bottom) / 2) * scale);
  }

  glide(scale, x, y) {
    cancelAnimationFrame(this.gliding);
    const from = [this.scale, this.x, this.y], start = performance.now(), time = calm.matches ? 0 : 220;
    this.untouched = false;
    const move = (now) => {
      const part = time ? Math.min((now - start) / time, 1) : 1, eased = 1 - (1 - part) ** 3;
      [this.scale, this.x, this.y] = [scale, x, y].map((to, at) => from[at] + (to - from[at]) * eased);
      this.update();
      if (part < 1) this.gliding = requestAnimationFrame(move);
    };
    move(calm.matches ? Infinity : start);
  }

  update() {
    if (this.whole) return; // on paper there is no window
    this.keepInSight();
    this.world.setAttribute("transform", `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.scale.toFixed(4)})`);
    this.svg.classList.toggle("far", this.scale < 0.32);
    this.cull();
    this.changed();
  }

  /** Some card is always in sight: where there would be none, the nearest comes in at the edge. */
  keepInSight() {
    const [width, height] = this.size;
    const away = (low, high, room) => Math.max(EDGE - high, 0) + Math.min(room - EDGE - low, 0);
    let nearest = null;
    for (const { rect } of this.scene?.cardItems ?? []) {
      const [x1, y1] = this.toScreen(rect[0], rect[1]), [x2, y2] = this.toScreen(rect[2], rect[3]);
      const [dx, dy] = [away(x1, x2, width), away(y1, y2, height)], far = Math.hypot(dx, dy);
      if (!far) return;
      if (!nearest || far < nearest.far) nearest = { dx, dy, far };
    }
    this.x += nearest?.dx ?? 0;
    this.y += nearest?.dy ?? 0;
  }

  /** Put into the document what is in sight or near, in the order of the sheet; take out what is far. */
  cull(everything = false) {
    if (!this.scene) return;
    const [width, height] = this.size, { scale } = this;
    const near = [-this.x / scale, -this.y / scale, (width - this.x) / scale, (height - this.y) / scale];
    const { seen } = this;
    if (!everything && seen && seen.scale === scale && near[0] >= seen[0] && near[1] >= seen[1] && near[2] <= seen[2] && near[3] <= seen[3]) return;
    const around = [near[0] - width / scale / 2, near[1] - height / scale / 2, near[2] + width / scale / 2, near[3] + height / scale / 2];
    around.scale = scale;
    this.seen = everything ? null : around;
    const inside = (rect) => everything || (rect[2] >= around[0] && rect[0] <= around[2] && rect[3] >= around[1] && rect[1] <= around[3]);
    this.sync(document.getElementById("frames"), this.scene.borders, inside, drawFrame);
    this.sync(document.getElementById("lines"), this.scene.lines, inside, drawLine);
    this.sync(document.getElementById("items"), this.scene.cardItems, inside, drawItem);
  }

  sync(layer, things, inside, make) {
    let next = layer.firstChild;
    for (const thing of things) {
      if (!inside(thing.rect)) {
        if (thing.element?.parentNode) {
          if (thing.element === next) next = next.nextSibling;
          thing.element.remove();
        }
        continue;
      }
      if (!thing.element) {
        thing.element = make(thing);
        this.dress(thing);
      }
      if (thing.element === next) next = next.nextSibling;
      else layer.insertBefore(thing.element, next);
    }
  }

  listen() {
    const { svg } = this, fingers = new Map();
    const local = (event) => {
      const { left, top } = svg.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey && !event.ctrlKey) return this.pan(-(event.deltaX || event.deltaY), 0);
      const lines = event.deltaMode === 1 ? 16 : 1;
      this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.008 : 0.0016)), local(event));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      fingers.set(event.pointerId, local(event));
      this.moved = 0;
    });
    svg.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = local(event), [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      this.moved += Math.hypot(dx, dy);
      if (fingers.size === 1) {
        if (this.moved > 3) {
          svg.setPointerCapture(event.pointerId);
          svg.classList.add("dragging");
          this.pan(dx, dy);
        }
      } else {
        const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        const grown = Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(Math.hypot(before[0] - other[0], before[1] - other[1]), 1);
        this.pan(dx / 2, dy / 2);
        this.zoom(grown, [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
      }
      fingers.set(event.pointerId, now);
    });
    const lift = (event) => {
      fingers.delete(event.pointerId);
      svg.classList.remove("dragging");
    };
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(name, lift);
  }
}
