"use strict";
// Draws the findings that the page holds as data. Texts come from programs that nobody trusts: they become text nodes
// and never markup.
const SVG = "http://www.w3.org/2000/svg";
const UNFOLD = 200; // Steps that one click unfolds.
const UNFOLD_ALL = 2000; // Steps that the button and the key for all unfold at once; again for as many more.

// The page's data, which is compressed.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Makes steps of the columns: packed.rs says what stands in them.
function steps(finding, { count, columns }, words) {
  const word = (number) => (number === null ? null : words[number]);
  const clocks = new Map();
  let global = 0;
  const clock = (context, given) => {
    const counted = given ?? Array.from(clocks.get(context) ?? finding.contexts.map(() => 0));
    if (given === null) counted[context] += 1;
    clocks.set(context, counted);
    return counted;
  };
  const made = [];
  for (let number = 0; number < count; number++) {
    const at = (name) => columns[name][number];
    const context = at("context");
    if (at("global_step") !== null) global += at("global_step");
    made.push({ context, text: word(at("text")), end: at("end") === 1, place: word(at("place")), object: word(at("object")),
      address: word(at("address")), before: word(at("before")), after: word(at("after")), locks: word(at("locks")),
      global_step: at("global_step") === null ? null : global, repeats: at("repeats"), clock: clock(context, at("clock")), stack: at("stack") });
  }
  return made;
}

function unpackRun(finding, run, words) {
  run.steps = steps(finding, run.steps, words);
  run.edges = run.edges.map(([kind, from, to]) => ({ kind, from, to }));
}

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "click") made.addEventListener("click", value);
    else if (name === "column" || name === "row") made.style.setProperty(`grid-${name}`, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function placed(place) {
  const file = place.file.split("/").pop();
  return [file && place.line ? `${file}:${place.line}` : file, place.function].filter(Boolean).join("  ");
}

// One run: lanes for its contexts, time downward.
class Lanes {
  constructor(finding, run, details, other) {
    Object.assign(this, { finding, run, details });
    this.shown = new Set(run.shown);
    this.cells = new Map();
    this.selected = null;
    const used = new Set(run.steps.map((step) => step.context));
    this.lanes = finding.contexts.map((_, number) => number).filter((number) => used.has(number));
    this.differs = other ? differences(run, other) : new Set();
    this.grid = element("div", { class: "lanes", role: "group", "aria-label": run.title });
    this.grid.style.gridTemplateColumns = `repeat(${Math.max(1, this.lanes.length)}, minmax(9rem, 1fr))`;
    this.draw();
  }

  draw() {
    this.grid.replaceChildren();
    this.cells.clear();
    this.lanes.forEach((context, lane) => {
      this.grid.append(element("div", { class: "head", text: this.finding.contexts[context].label, column: lane + 1, row: 1 }));
    });
    let row = 2;
    let folded = [];
    let before = null;
    const fold = () => {
      if (folded.length === 0) return;
      const numbers = folded;
      folded = [];
      const words = numbers.length === 1 ? "1 step" : `${numbers.length} steps`;
      const unfold = () => { numbers.slice(-UNFOLD).forEach((number) => this.shown.add(number)); this.draw(); };
      this.grid.append(element("button", { class: "fold", type: "button", text: `⋯ ${words} folded: show`, row: row++, click: unfold }));
    };
    this.run.steps.forEach((step, number) => {
      if (!this.shown.has(number)) { folded.push(number); return; }
      fold();
      const kind = ["step"];
      if (step.end) kind.push("end");
      if (before !== null && before !== step.context) kind.push("switched");
      if (this.differs.has(number)) kind.push("differs");
      before = step.context;
      const label = `step ${number + 1}, ${this.finding.contexts[step.context].label} ${step.text}, ${placed(step.place)}`;
      const cell = element("button", { class: kind.join(" "), type: "button", "aria-label": label,
        column: this.lanes.indexOf(step.context) + 1, row: row++, click: () => this.select(number) },
        element("span", { class: "number", text: `(${number + 1})` }), step.text,
        element("span", { class: "at mono", text: placed(step.place) }));
      this.cells.set(number, cell);
      this.grid.append(cell);
    });
    fold();
    this.lanes.forEach((_, lane) => this.grid.prepend(element("div", { class: "rail", "aria-hidden": "true", column: lane + 1, row: `2 / ${Math.max(row, 3)}` })));
    if (this.selected !== null) this.mark();
    requestAnimationFrame(() => this.connect());
  }

  // Unfolds the last steps that are folded, so many that a browser draws them at once.
  unfoldMore() {
    let left = UNFOLD_ALL;
    for (let number = this.run.steps.length - 1; number >= 0 && left > 0; number--) {
      if (this.shown.has(number)) continue;
      this.shown.add(number);
      left -= 1;
    }
    this.draw();
  }

  // Edges between steps that are both visible.
  connect() {
    this.grid.querySelector("svg.edges")?.remove();
    const svg = shape("svg", { class: "edges", "aria-hidden": "true", width: this.grid.scrollWidth, height: this.grid.scrollHeight });
    for (const edge of this.run.edges) {
      const [from, to] = [this.cells.get(edge.from), this.cells.get(edge.to)];
      if (edge.kind === "switch" || !from || !to) continue;
      const right = from.offsetLeft < to.offsetLeft;
      const x1 = from.offsetLeft + (right ? from.offsetWidth : 0);
      const x2 = to.offsetLeft + (right ? 0 : to.offsetWidth);
      const y1 = from.offsetTop + from.offsetHeight - 6;
      const y2 = to.offsetTop + 8;
      const bend = (x2 - x1) / 2;
      svg.append(shape("path", { class: edge.kind, d: `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}` }));
      const tip = right ? -6 : 6;
      svg.append(shape("path", { class: edge.kind, d: `M${x2 + tip},${y2 - 4} L${x2},${y2} L${x2 + tip},${y2 + 4}` }));
    }
    this.grid.append(svg);
  }

  select(number, focus = false) {
    this.selected = number;
    if (!this.shown.has(number)) { this.shown.add(number); this.draw(); }
    this.mark();
    this.details.show(this.finding, this.run, number);
    if (focus) { const cell = this.cells.get(number); cell.focus(); cell.scrollIntoView({ block: "nearest" }); }
  }

  mark() {
    const linked = new Set();
    for (const edge of this.run.edges) {
      if (edge.kind === "switch") continue;
      if (edge.from === this.selected) linked.add(edge.to);
      if (edge.to === this.selected) linked.add(edge.from);
    }
    this.cells.forEach((cell, number) => {
      cell.classList.toggle("linked", linked.has(number));
      if (number === this.selected) cell.setAttribute("aria-current", "true");
      else cell.removeAttribute("aria-current");
    });
  }

  move(by) {
    const order = [...this.cells.keys()];
    const at = order.indexOf(this.selected);
    const next = at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(order.length - 1, Math.max(0, at + by));
    if (order.length > 0) this.select(order[next], true);
  }
}

// Steps that the other run does not make, or makes with another value.
function differences(run, other) {
  const key = (step) => `${step.context} ${step.text} ${step.place.line}`;
  const known = new Set(other.steps.map(key));
  return new Set(run.steps.map((step, number) => (known.has(key(step)) ? -1 : number)).filter((number) => number >= 0));
}

// What is known of the selected step.
class Details {
  constructor() {
    this.panel = element("aside", { class: "details", "aria-live": "polite", "aria-label": "The selected step" },
      element("p", { text: "Select a step to see its source, stack, values and locks." }));
  }

  show(finding, run, number) {
    const step = run.steps[number];
    const list = element("dl");
    const row = (name, value) => { if (value) list.append(element("dt", { text: name }), element("dd", { class: "mono", text: value })); };
    row("place", placed(step.place));
    row("object", step.object);
    row("address", step.address);
    row("before", step.before);
    row("after", step.after);
    row("locks", step.locks === null ? "unknown" : step.locks.join(", ") || "none");
    row("instruction", step.global_step === null ? null : String(step.global_step));
    row("repeated", step.repeats ? `${step.repeats} times before` : null);
    row("clock", (step.clock || []).map((count, context) => `${finding.contexts[context].label}: ${count}`).join("; "));
    for (const edge of run.edges) {
      const words = { "reads-from": ["reads from step ", "is read by step "], "happens-before": ["comes after step ", "comes before step "] }[edge.kind];
      if (words && edge.to === number) row("order", words[0] + (edge.from + 1));
      if (words && edge.from === number) row("order", words[1] + (edge.to + 1));
    }
    this.panel.replaceChildren(
      element("h3", { text: `(${number + 1}) ${finding.contexts[step.context].label} ${step.text}` }),
      source(finding, step.place), list, stack(finding, step.stack));
  }
}

function source(finding, place) {
  const text = finding.sources[place.file]?.[place.line];
  return text === undefined ? null : element("pre", { tabindex: "0", text: `${place.line} │ ${text}` });
}

function stack(finding, number) {
  const frames = finding.stacks[number];
  if (!frames) return null;
  const list = element("ol", { class: "stack mono" });
  for (const frame of frames) list.append(element("li", { class: frame.is_library ? "library" : "own", text: placed(frame) }));
  return element("div", {}, element("strong", { text: "stack" }), list);
}

// Who waits for whom.
function waits(finding) {
  const nodes = [...new Set(finding.waits.flatMap((wait) => [wait.context, wait.holder]).filter((number) => number !== null && number !== undefined))];
  const label = (number) => finding.contexts[number].label;
  const size = { width: 520, height: Math.max(180, 90 * Math.ceil(nodes.length / 2) + 60) };
  const svg = shape("svg", { class: "waits", viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": "Who waits for whom; the list below says the same in words" });
  const defs = shape("defs", {});
  const tip = shape("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" });
  tip.append(shape("path", { d: "M0,0 L10,5 L0,10 z", fill: "currentColor" }));
  defs.append(tip);
  svg.append(defs);
  const at = new Map(nodes.map((node, index) => {
    const angle = (2 * Math.PI * index) / nodes.length - Math.PI / 2;
    return [node, { x: size.width / 2 + 170 * Math.cos(angle), y: size.height / 2 + (size.height / 2 - 40) * Math.sin(angle) }];
  }));
  const circle = new Set(finding.waits.filter((wait) => wait.in_circle).map((wait) => wait.context));
  for (const wait of finding.waits) {
    if (wait.holder === null || wait.holder === undefined || wait.holder === wait.context) continue;
    const [from, to] = [at.get(wait.context), at.get(wait.holder)];
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
    // Two that wait for each other have two lines side by side.
    const [ox, oy] = [-dy * 14, dx * 14];
    const ends = { x1: from.x + dx * 40 + ox, y1: from.y + dy * 24 + oy, x2: to.x - dx * 52 + ox, y2: to.y - dy * 24 + oy };
    svg.append(shape("line", { ...ends, class: wait.in_circle ? "circle" : "", "marker-end": "url(#tip)" }));
    if (wait.object) svg.append(shape("text", { class: "what", x: (ends.x1 + ends.x2) / 2 + ox, y: (ends.y1 + ends.y2) / 2 + oy, "text-anchor": "middle" }, wait.object));
  }
  for (const node of nodes) {
    const { x, y } = at.get(node);
    const width = Math.max(80, label(node).length * 7.6 + 16);
    const group = shape("g", { class: circle.has(node) ? "circle" : "" });
    group.append(shape("rect", { x: x - width / 2, y: y - 16, width, height: 32, rx: 7 }));
    group.append(shape("text", { x, y: y + 5, "text-anchor": "middle" }, label(node)));
    svg.append(group);
  }
  const words = element("ul");
  for (const wait of finding.waits) {
    const holder = wait.holder === null || wait.holder === undefined ? "" : `; it depends on ${label(wait.holder)}`;
    words.append(element("li", { text: `${label(wait.context)} ${finding.run.steps[wait.step]?.text ?? "waits"}${holder}${wait.in_circle ? " (in the circle)" : ""}` }));
  }
  return element("section", {}, element("h3", { text: "Who waits for whom" }), svg, words);
}

// The two accesses of a race, or the places of a finding in source.
function sides(finding) {
  const box = element("div", { class: "sides" });
  finding.run.steps.forEach((step, number) => {
    box.append(element("div", { class: "side" },
      element("strong", { text: `(${number + 1}) ${finding.contexts[step.context].label} ${step.text}` }),
      element("div", { class: "mono", text: placed(step.place) }), source(finding, step.place),
      step.locks === null ? null : element("div", { text: step.locks.length ? `holds ${step.locks.join(", ")}` : "holds no lock" }),
      stack(finding, step.stack)));
  });
  return element("section", {}, element("h3", { text: finding.is_static ? "Where in the source" : "The two sides" }), box);
}

function table(caption, heads, rows) {
  const line = (tag, cells) => element("tr", {}, ...cells.map((cell) => element(tag, tag === "th" ? { scope: "col", text: cell } : cell)));
  return element("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": caption },
    element("table", { class: "orders" }, element("caption", { text: caption }),
      element("thead", {}, line("th", heads)), element("tbody", {}, ...rows.map((row) => line("td", row)))));
}

// What every serial order gives, and what the run gave beside the nearest one.
function orders(serial) {
  const fits = (is) => ({ class: is === true ? "fits" : "not", text: is === true ? "✓ yes" : is === false ? "✗ no" : "— does not end" });
  const section = element("section", {}, element("h3", { text: "Beside the serial orders" }));
  if (serial.orders?.length > 0) {
    section.append(table("Does a serial order give the same?", ["serial order", "same results", "same state"],
      serial.orders.map((order) => [{ class: "mono", text: order.order }, fits(order.same_results), fits(order.same_state)])));
  }
  if (serial.has_more_orders) section.append(element("p", { class: "legend", text: "There are too many serial orders to list them." }));
  if (serial.differences?.length > 0) {
    section.append(table(`Seen, beside the serial order ${serial.nearest}`, ["client", "operation", "seen", "expected", "verdict"],
      serial.differences.map((one) => [{ text: one.client ?? "state" }, { class: "mono", text: one.operation }, { class: `mono ${one.is_same ? "" : "seen"}`, text: one.seen },
        { class: "mono", text: one.expected ?? "does not come to its end" }, one.is_same ? { text: "same" } : { class: "not", text: "✗ differs" }])));
  }
  return section;
}

const runs = [];

function story(finding) {
  const details = new Details();
  const lanes = new Set(finding.run.steps.map((step) => step.context)).size;
  const columns = element("div", { class: lanes > 3 ? "runs wide" : "runs" });
  const add = (run, other) => {
    const lanes = new Lanes(finding, run, details, other);
    runs.push(lanes);
    const all = element("button", { class: "plain", type: "button", text: "show all steps",
      click: () => { lanes.unfoldMore(); all.hidden = lanes.shown.size === run.steps.length; } });
    columns.append(element("section", { class: "run" }, element("h3", { text: run.title }), run.steps.length > run.shown.length ? all : null, lanes.grid));
    lanes.grid.addEventListener("focusin", () => { current = lanes; });
  };
  add(finding.run, finding.beside);
  if (finding.beside) add(finding.beside, finding.run);
  // How it ends is where a reader begins.
  const end = finding.run.steps.findIndex((step) => step.end);
  runs[runs.length - (finding.beside ? 2 : 1)].select(end < 0 ? finding.run.steps.length - 1 : end);
  const dropped = finding.left_out ? element("p", { class: "legend", text: `${finding.left_out} earlier steps are not in this page; --json has all that were kept.` }) : null;
  return element("section", {}, dropped,
    element("p", { class: "legend" }, "Time runs downward. ↪ another context goes on; solid arrows: reads what was written there; dashed arrows: comes after by synchronisation; a thick left edge: not so in the other run. "),
    element("div", { class: "work" }, columns, details.panel));
}

let current = null;

function render(finding, number) {
  const section = element("article", { class: `finding ${finding.severity}`, id: `finding-${number + 1}` },
    element("h2", { text: finding.title }),
    element("ul", { class: "badges" }, element("li", { class: finding.severity, text: finding.severity }),
      ...[finding.kind, finding.confidence_words, finding.id].map((text) => element("li", { text }))),
    finding.why ? element("p", { class: "why", text: finding.why }) : null);
  if (finding.serial) section.append(orders(finding.serial));
  if (finding.waits.length > 0) section.append(waits(finding));
  if (finding.is_list) section.append(sides(finding));
  else if (finding.run.steps.length > 0) section.append(story(finding));
  if (finding.console) section.append(element("h3", { text: "What was printed" }), element("pre", { tabindex: "0", text: finding.console }));
  if (finding.notes.length > 0) {
    const list = element("ul");
    finding.notes.forEach((text) => list.append(element("li", { text })));
    section.append(element("h3", { text: "Notes" }), list);
  }
  if (finding.command) section.append(element("h3", { text: "To have it again" }), element("pre", { tabindex: "0", text: finding.command }));
  return section;
}

async function begin() {
  const { findings, words } = await unpacked(document.getElementById("data").textContent);
  for (const finding of findings) {
    unpackRun(finding, finding.run, words);
    if (finding.beside) unpackRun(finding, finding.beside, words);
  }
  const main = document.getElementById("findings");
  main.replaceChildren();
  if (findings.length > 1) {
    const list = element("ul");
    findings.forEach((finding, number) => list.append(element("li", {}, element("a", { href: `#finding-${number + 1}`, text: `${finding.id} ${finding.title}` }))));
    main.append(element("nav", { "aria-label": "Findings" }, list));
  }
  findings.forEach((finding, number) => main.append(render(finding, number)));
  current = runs[0] ?? null;
  document.documentElement.dataset.drawn = "yes";
}

// What cannot be drawn is still there as text.
begin().catch((error) => {
  document.body.prepend(element("p", { class: "why", role: "alert", text: `This browser cannot draw the page (${error.message}); its text stands below.` }));
});

document.addEventListener("keydown", (event) => {
  if (!current || event.ctrlKey || event.altKey || event.metaKey) return;
  const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
  if (moves[event.key]) { current.move(moves[event.key]); event.preventDefault(); return; }
  if (event.key === "n" || event.key === "p") {
    const next = (runs.indexOf(current) + (event.key === "n" ? 1 : runs.length - 1)) % runs.length;
    current = runs[next];
    current.move(1);
  } else if (event.key === "e") {
    current.unfoldMore();
  }
});
addEventListener("resize", () => runs.forEach((lanes) => lanes.connect()));
addEventListener("beforeprint", () => runs.forEach((lanes) => lanes.connect()));
