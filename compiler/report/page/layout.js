// layout.js: places for what a block holds: those of Graphviz, where the report has them, else in layers.

const NODE = { width: 180, height: 43.2, gapX: 26, gapY: 34 }; // as large as compiler/explain_dot.c tells Graphviz
const POINTS = 72;

// `dot -Tplain`: for each block "graph SCALE W H", then "node nI X Y ...", "edge nI nJ COUNT X Y ...", "stop".  Inches,
// from the bottom.
function readPlain(text) {
  const layouts = [];
  let layout = null;
  for (const line of text.split("\n")) {
    const words = line.split(" "), at = (i) => Number(words[i]) * POINTS;
    if (words[0] === "graph") layout = { width: at(2), height: at(3), places: [], edges: new Map() };
    else if (words[0] === "node") layout.places[childNumber(words[1])] = { x: at(2), y: layout.height - at(3) };
    else if (words[0] === "edge") {
      const points = Array.from({ length: Number(words[3]) }, (_, i) => [at(4 + 2 * i), layout.height - at(5 + 2 * i)]);
      const to = layout.places[childNumber(words[2])];
      layout.edges.set(`${childNumber(words[1])} ${childNumber(words[2])}`, splinePath(points, to));
    } else if (words[0] === "stop") layouts.push(layout);
  }
  return layouts;
}

const childNumber = (word) => Number(word.slice(1));

// Control points: the first, then three for each piece.  They end where Graphviz's arrow would begin.
function splinePath([first, ...others], to) {
  const [x, y] = others[others.length - 1], edge = to.y + (y < to.y ? -1 : 1) * NODE.height / 2;
  return `M${first} C${others.map((point) => point.join(",")).join(" ")} L${x},${edge}`;
}

const graphvizLayouts = parts.layout ? readPlain(parts.layout.plain) : null;

// The layer of each child is one below the lowest that it reads; within a layer children stand near what they read.
function layerPlaces(count, links) {
  const before = Array.from({ length: count }, () => []);
  for (const [from, to] of links) before[to].push(from);
  const layers = makeLayers(before);
  const columns = orderLayers(layers, before);
  const width = Math.max(...columns.map((layer) => layer.length)) * (NODE.width + NODE.gapX);
  const places = [];
  columns.forEach((layer, row) => layer.forEach((child, at) => {
    const left = (width - layer.length * (NODE.width + NODE.gapX)) / 2;
    places[child] = {
      x: left + (at + 0.5) * (NODE.width + NODE.gapX),
      y: NODE.gapY / 2 + row * (NODE.height + NODE.gapY) + NODE.height / 2,
    };
  }));
  return { width, height: columns.length * (NODE.height + NODE.gapY), places, edges: new Map() };
}

// Children are in the order of the model, and so behind what they read; what would lead back is passed over.
function makeLayers(before) {
  const layer = [];
  before.forEach((sources, child) => {
    const above = sources.filter((from) => from < child).map((from) => layer[from] + 1);
    layer[child] = Math.max(0, ...above);
  });
  return layer;
}

function orderLayers(layers, before) {
  const columns = [], at = [];
  layers.forEach((layer, child) => (columns[layer] = columns[layer] || []).push(child));
  for (const column of columns) {
    const wish = (child) => {
      const known = before[child].map((from) => at[from]).filter((x) => x !== undefined);
      return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
    };
    column.sort((a, b) => wish(a) - wish(b) || a - b);
    column.forEach((child, i) => { at[child] = i - column.length / 2; });
  }
  return columns;
}

function layoutOf(block, count, links) {
  return (graphvizLayouts && graphvizLayouts[block]) || layerPlaces(count, links);
}

// Where no layout has the way of an edge: from the bottom of one to the top of the other.
function straightPath(from, to) {
  const [x1, y1, x2, y2] = [from.x, from.y + NODE.height / 2, to.x, to.y - NODE.height / 2];
  const bend = Math.max(16, Math.abs(y2 - y1) / 2);
  return `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`;
}
