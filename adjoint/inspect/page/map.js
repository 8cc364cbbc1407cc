// The whole graph in the corner, while the window shows a part of it.

class SmallMap {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.view = view;
    const go = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const { left, top } = canvas.getBoundingClientRect(), [width, height] = view.size;
      const x = (event.clientX - left - this.left) / this.scale, y = (event.clientY - top - this.top) / this.scale;
      view.place(width / 2 - x * view.scale, height / 2 - y * view.scale);
    };
    for (const name of ["pointerdown", "pointermove"]) canvas.addEventListener(name, go);
  }

  draw() {
    const { view, canvas } = this, { scene } = view, [width, height] = view.size;
    const [x1, y1] = view.toScreen(0, 0), [x2, y2] = view.toScreen(scene.width, scene.height);
    canvas.hidden = width < 500 || (x1 >= 0 && y1 >= 0 && x2 <= width && y2 <= height);
    if (canvas.hidden) return;
    const wide = 170, high = 120, pad = 8, style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    this.scale = Math.min((wide - 2 * pad) / scene.width, (high - 2 * pad) / scene.height);
    this.left = (wide - scene.width * this.scale) / 2;
    this.top = (high - scene.height * this.scale) / 2;
    const paper = canvas.getContext("2d");
    paper.setTransform(2, 0, 0, 2, 0, 0);
    paper.clearRect(0, 0, wide, high);
    for (const { type, rect, thing } of scene.items) {
      const [x, y] = [this.left + rect[0] * this.scale, this.top + rect[1] * this.scale];
      const [w, h] = [Math.max((rect[2] - rect[0]) * this.scale, 1), Math.max((rect[3] - rect[1]) * this.scale, 1)];
      paper.fillStyle = paper.strokeStyle = colour(type === "unit" ? (thing.operation ? "made-line" : "leaf-line") : "group-line");
      if (type === "frame") paper.strokeRect(x, y, w, h);
      else paper.fillRect(x, y, w, h);
    }
    paper.strokeStyle = colour("focus");
    paper.lineWidth = 1.5;
    paper.strokeRect(this.left - (view.x / view.scale) * this.scale, this.top - (view.y / view.scale) * this.scale, (width / view.scale) * this.scale, (height / view.scale) * this.scale);
    paper.lineWidth = 1;
  }
}
