// Backward as a film: which node runs, what it receives and sends on, what leaves have gathered, what was let go.

class Player {
  constructor(graph, changed) {
    this.steps = graph.data.steps;
    this.graph = graph;
    this.changed = changed;
    this.at = 0; // so many steps have been taken
    this.playing = null;
    this.pace = 1;
    this.level = "node"; // or "module": a step ends where another module begins
    this.entryOf = new Map();
    for (const strand of graph.strands) if (!strand.forward) this.entryOf.set(`${strand.tail} ${strand.entry}`, strand);
    this.stepOf = new Map(this.steps.map((step, number) => [step.node, number]));
  }

  get step() {
    return this.at ? this.steps[this.at - 1] : null;
  }

  go(at) {
    this.at = Math.min(Math.max(at, 0), this.steps.length);
    if (this.at === this.steps.length) this.pause();
    this.changed();
  }

  /** A step forward or back: a node, or all nodes of a module. */
  move(by) {
    const module = (at) => this.graph.unitOf.get(this.steps[at - 1]?.node)?.parent;
    let at = this.at + by;
    while (this.level === "module" && at > 0 && at < this.steps.length && module(at) === module(at + 1)) at += by;
    this.go(at);
  }

  setPace(pace) {
    this.pace = pace;
    if (!this.playing) return;
    this.pause();
    this.play();
  }

  play() {
    if (this.at === this.steps.length) this.at = 0;
    const each = Math.min(Math.max(12000 / this.steps.length, 250), 1100) / this.pace;
    this.playing = setInterval(() => this.move(1), each);
    this.move(1);
  }

  pause() {
    clearInterval(this.playing);
    this.playing = null;
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
    this.changed();
  }

  /** Whether a node has run: "active" while it does. Before the film starts there is nothing to wait for. */
  stateOf(node) {
    if (!this.at) return "";
    if (this.step.node === node) return "active";
    return (this.stepOf.get(node) ?? Infinity) < this.at ? "done" : "waiting";
  }

  /** A leaf's .grad at this moment. */
  gradOf(tensor) {
    const own = this.steps.flatMap((step, number) => (step.node === tensor.node && step.accumulated != null ? [[number, step.accumulated]] : []));
    const past = own.filter(([number]) => number < this.at);
    if (past.length) return { text: past[past.length - 1][1], fresh: this.step?.node === tensor.node };
    const last = own.length ? own[own.length - 1][1] : null;
    return { text: tensor.grad != null && tensor.grad !== last ? tensor.grad : "None", fresh: false };
  }

  /** What a node's panel says of this moment. */
  of(node) {
    const number = this.stepOf.get(node.id);
    if (number === undefined) return null;
    const step = this.steps[number], named = (flows, words) => flows.map((flow, at) => ({ ...flow, title: `${words} ${flows.length > 1 ? at : ""}`.trim() }));
    const flows = [...named(step.incoming, "incoming"), ...named(step.outgoing, "outgoing").filter((flow) => flow.shape)];
    if (step.accumulated != null) flows.push({ title: ".grad afterwards", data: step.accumulated });
    return { freed: new Set(number < this.at ? step.freed : []), flows: this.at && number >= this.at ? [] : flows };
  }

  /** The gradients on their way in this step: each with the strand on which it goes. */
  flows() {
    if (!this.step) return [];
    return this.step.outgoing.flatMap((flow, entry) => {
      const strand = this.entryOf.get(`${this.step.node} ${entry}`);
      return strand && (flow.data || flow.shape) ? [{ strand, words: flowWords(flow) }] : [];
    });
  }
}

/** A gradient in a few characters: its value where it is short, else its shape and how large it is. */
function flowWords(flow) {
  if (flow.data && flow.data.length <= 22) return flow.data;
  const numbers = flow.statistics;
  if (!numbers || numbers.mean == null) return sizeOf(flow.shape);
  return `${sizeOf(flow.shape)} rms ${short(Math.hypot(numbers.mean, numbers.std))}`;
}
