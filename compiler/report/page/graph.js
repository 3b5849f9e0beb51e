// graph.js: the graph by blocks.  A block is a section with a drawing of what it holds; a block inside of it is one node
// there, which opens a section of its own below.  Only what is open is drawn.

const blocks = explain.graph.blocks.map((block, number) => ({ ...block, number, section: null }));
const MANY_OPS = 60; // more are closed at first

// Where an op is: its block, and which child it is there.
const placeOfOp = new Map();
const placeOfInput = new Map();
for (const block of blocks)
  block.children.forEach((child, at) => {
    const place = { block: block.number, at };
    if (child.op !== undefined) placeOfOp.set(child.op, place);
    else if (child.input !== undefined) placeOfInput.set(child.name, place);
    else blocks[child.block].atAbove = at;
  });

// Ops in a block and all inside of it, by dtype; blocks stand behind those that they are in.
for (const block of [...blocks].reverse()) {
  block.dtypes = block.dtypes || new Map();
  const count = (dtype, more) => block.dtypes.set(dtype, (block.dtypes.get(dtype) || 0) + more);
  for (const child of block.children) {
    if (child.op !== undefined) count(opByPath.get(child.op).dtype, 1);
    else if (child.block !== undefined) for (const [dtype, more] of blocks[child.block].dtypes) count(dtype, more);
  }
  block.size = [...block.dtypes.values()].reduce((a, b) => a + b, 0);
}

// Edges between the children of each block: an edge belongs to the innermost block that both ends are in.
const linksOfBlock = blocks.map(() => new Map());
for (const edge of explain.graph.edges) {
  let from = edge.from ? placeOfOp.get(edge.from) : placeOfInput.get(edge.input), to = placeOfOp.get(edge.to);
  while (from.block !== to.block) {
    const inner = from.block > to.block ? from : to;
    const above = { block: blocks[inner.block].in, at: blocks[inner.block].atAbove };
    if (inner === from) from = above;
    else to = above;
  }
  if (from.at === to.at) continue;
  const links = linksOfBlock[to.block], key = `${from.at} ${to.at}`;
  if (!links.has(key)) links.set(key, { from: from.at, to: to.at, casts: new Set() });
  if (edge.cast_from) links.get(key).casts.add(`${edge.cast_from} → ${edge.dtype}`);
}

function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most / 2 - 1)}…${text.slice(-most / 2)}`;
}

// What is drawn of a child: its words, colour, and what it does when it is chosen.
function lookOf(child) {
  if (child.op !== undefined) {
    const op = opByPath.get(child.op);
    return {
      title: child.name, line: `${op.op} · ${op.dtype}`, colour: `fill-${dtypeClass(op.dtype)}`, key: op.path,
      label: `${op.path}: ${op.op}, ${op.dtype}`, act: () => chooseOp(op.path),
    };
  }
  if (child.input !== undefined) {
    return {
      title: child.name, line: `input · ${child.input}`, colour: `fill-${dtypeClass(child.input)}`, isInput: true,
      label: `input ${child.name}: ${child.input}`, act: () => showInput(child),
    };
  }
  const block = blocks[child.block], [[most]] = [...block.dtypes].sort((a, b) => b[1] - a[1]);
  return {
    title: `▸ ${child.name}`, line: `${plural(block.size, "op")} · mostly ${most}`, colour: `fill-${dtypeClass(most)}`,
    label: `block ${block.path}: ${plural(block.size, "op")}, mostly ${most}`, block,
    act: () => toggleBlock(block.number),
  };
}

function drawNode(child, place) {
  const look = lookOf(child);
  const node = svg("g", {
    class: "node", role: "button", tabindex: 0, "aria-label": look.label,
    transform: `translate(${place.x - NODE.width / 2},${place.y - NODE.height / 2})`,
    onclick: look.act,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      look.act();
    },
  },
  svg("title", {}, look.label),
  svg("rect", { width: NODE.width, height: NODE.height, rx: look.block ? 2 : look.isInput ? NODE.height / 2 : 8, class: look.colour }),
  svg("text", { x: NODE.width / 2, y: 18, "text-anchor": "middle" }, shorten(look.title, 22)),
  svg("text", { x: NODE.width / 2, y: 34, "text-anchor": "middle", class: "small" }, look.line));
  if (look.key) node.dataset.op = look.key;
  if (look.block) {
    node.setAttribute("aria-expanded", Boolean(look.block.section));
    look.block.node = node;
  }
  return node;
}

function drawLink(link, layout) {
  const from = layout.places[link.from], to = layout.places[link.to];
  const { path, middle } = layout.edges.get(`${link.from} ${link.to}`) || wayPath([from, to]);
  const drawn = [svg("path", { class: link.casts.size ? "edge cast" : "edge", d: path, "marker-end": "url(#arrow)" })];
  if (link.casts.size)
    drawn.push(svg("text", { class: "cast-label", x: middle.x + 8, y: middle.y + 2 }, [...link.casts].join(", ")));
  return drawn;
}

const arrowHead = () => svg("defs", {}, svg("marker", {
  id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto",
}, svg("path", { d: "M0,0 L8,4 L0,8 z", fill: "context-stroke" })));

function drawBlock(block) {
  const links = [...linksOfBlock[block.number].values()];
  const layout = layoutOf(block.number, block.children.length, links.map((link) => [link.from, link.to]));
  const margin = 8, width = layout.width + 2 * margin, height = layout.height + 2 * margin;
  return svg("svg", {
    width, height, viewBox: `${-margin} ${-margin} ${width} ${height}`, role: "group",
    "aria-label": `Graph of ${block.path || explain.model}`,
  }, arrowHead(), links.flatMap((link) => drawLink(link, layout)),
  block.children.map((child, at) => drawNode(child, layout.places[at])));
}

function openBlock(number) {
  const block = blocks[number];
  if (block.section) return block.section;
  const above = block.in === null ? null : openBlock(block.in);
  block.inside = el("div", { class: "inside" });
  block.section = el("section", { class: "block", "aria-label": block.path || explain.model },
    el("h2", {}, block.path || explain.model, " ", above && el("button", {
      type: "button", class: "link", "aria-label": `Close ${block.path}`, onclick: () => closeBlock(number, true),
    }, "close")),
    el("div", { class: "flow" }, el("div", { class: "drawing" }, drawBlock(block)), block.inside));
  if (above) insertInOrder(blocks[block.in].inside, block);
  if (block.node) block.node.setAttribute("aria-expanded", true);
  return block.section;
}

// Sections stand in the order of the model, whichever was opened first.
function insertInOrder(into, block) {
  const next = [...into.children].find((other) => Number(other.dataset.at) > block.atAbove);
  block.section.dataset.at = block.atAbove;
  into.insertBefore(block.section, next || null);
}

function closeBlock(number, focusNode = false) {
  const block = blocks[number];
  if (!block.section || block.in === null) return;
  for (const child of block.children) if (child.block !== undefined) closeBlock(child.block);
  block.section.remove();
  block.section = null;
  if (block.node) block.node.setAttribute("aria-expanded", false);
  if (focusNode && block.node) block.node.focus();
}

function toggleBlock(number) {
  if (blocks[number].section) closeBlock(number);
  else openBlock(number).scrollIntoView({ block: "nearest" });
}

function markChosen(path) {
  for (const node of document.querySelectorAll("svg .node.chosen")) node.classList.remove("chosen");
  const node = document.querySelector(`svg .node[data-op="${CSS.escape(path)}"]`);
  if (node) node.classList.add("chosen");
  return node;
}

// Opens what it is in.
function showOpInGraph(path) {
  const op = opByPath.get(path), place = placeOfOp.get((op && op.folded_into) || path);
  if (!place) return;
  openBlock(place.block);
  const node = markChosen((op && op.folded_into) || path);
  if (node) node.scrollIntoView({ block: "center", inline: "center" });
}

function closeAll() {
  for (const block of blocks) if (block.in === 0) closeBlock(block.number);
}

function openSome() {
  let left = 400; // nodes: a person sees no more at once, and a browser draws them quickly
  for (const block of blocks) {
    left -= block.children.length;
    if (left < 0) break;
    openBlock(block.number);
  }
}

function drawGraph(panel) {
  const dtypes = [...blocks[0].dtypes.keys()].sort();
  const by = graphvizLayouts ? "" :
    "Laid out by the report itself: Graphviz's dot was not installed where it was made. ";
  panel.append(
    el("div", { class: "legend" }, dtypes.map(dtypeMark), el("span", { class: "cast-word" }, "━ cast"),
      el("button", { type: "button", onclick: openSome }, "Open blocks"),
      el("button", { type: "button", onclick: closeAll }, "Close blocks")),
    note(by, "A block's node (▸) opens it; an op's shows why it has its dtype."),
    openBlock(0));
  if (blocks[0].size <= MANY_OPS) openSome();
}
