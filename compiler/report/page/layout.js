// layout.js: places for what a block holds: those of Graphviz, where the report has them, else in layers.

const NODE = { width: 180, height: 43.2, gapX: 26, gapY: 34 }; // as large as compiler/explain_dot.c tells Graphviz
const POINTS = 72, WAY_WIDTH = 24;

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

// Control points: the first, then three for each piece.  They end where Graphviz's arrow would begin; it goes on as they do.
function splinePath([first, ...others], to) {
  const [[x0, y0], [x, y]] = others.slice(-2), edge = to.y + (y < to.y ? -1 : 1) * NODE.height / 2;
  const slope = y === y0 ? 0 : (x - x0) / (y - y0), half = NODE.width / 2 - 6;
  const end = Math.max(to.x - half, Math.min(to.x + half, x + slope * (edge - y)));
  const middle = others[Math.floor(others.length / 2)];
  return {
    path: `M${first} C${others.map((point) => point.join(",")).join(" ")} L${end},${edge}`,
    middle: others.length === 3 ? { x: (first[0] + x) / 2, y: (first[1] + y) / 2 } : { x: middle[0], y: middle[1] },
  };
}

const graphvizLayouts = parts.layout ? readPlain(parts.layout.plain) : null;

// The layer of each child is one below the lowest that it reads; within a layer children stand near what they read.  An
// edge over several layers keeps a narrow place in each of them, so that it goes between what is there.
function layerPlaces(count, links) {
  const before = Array.from({ length: count }, () => []);
  for (const [from, to] of links) before[to].push(from);
  const layers = makeLayers(before), ways = new Map();
  const addPlace = (layer, reads) => {
    before.push(reads);
    return layers.push(layer) - 1;
  };
  for (const [from, to] of links) {
    const way = [from];
    if (layers[to] <= layers[from]) { // back: up at the right of all, in every layer that it passes
      before[to].splice(before[to].indexOf(from), 1);
      for (let layer = layers[from]; layer >= layers[to]; layer--) way.push(addPlace(layer, null));
      ways.set(`${from} ${to}`, [...way, to]);
      continue;
    }
    for (let layer = layers[from] + 1; layer < layers[to]; layer++) way.push(addPlace(layer, [way[way.length - 1]]));
    before[to].splice(before[to].indexOf(from), 1, way[way.length - 1]);
    ways.set(`${from} ${to}`, [...way, to]);
  }
  const { rows, at, width } = orderLayers(layers, before, (child) => (child < count ? NODE.width + NODE.gapX : WAY_WIDTH));
  const places = at.map((x, child) => ({
    x: x + width / 2, y: NODE.gapY / 2 + layers[child] * (NODE.height + NODE.gapY) + NODE.height / 2,
  }));
  const edges = new Map([...ways].map(([key, way]) => [key, wayPath(way.map((child) => places[child]))]));
  return { width, height: rows.length * (NODE.height + NODE.gapY), places, edges };
}

// Children are in the order of the model, and so after what they read, but for an edge that leads back.
function makeLayers(before) {
  const layer = [];
  before.forEach((sources, child) => {
    const above = sources.filter((from) => from < child).map((from) => layer[from] + 1);
    layer[child] = Math.max(0, ...above);
  });
  return layer;
}

// Where each child is in its layer, from the middle.
function orderLayers(layers, before, widthOf) {
  const rows = [], at = [], widths = [];
  layers.forEach((layer, child) => (rows[layer] = rows[layer] || []).push(child));
  for (const row of rows) {
    const wish = (child) => {
      if (!before[child]) return Infinity;
      const known = before[child].map((from) => at[from]).filter((x) => x !== undefined);
      return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
    };
    const wishes = new Map(row.map((child) => [child, wish(child)]));
    row.sort((a, b) => wishes.get(a) - wishes.get(b) || a - b);
    const width = row.reduce((sum, child) => sum + widthOf(child), 0);
    let left = -width / 2;
    for (const child of row) at[child] = left + widthOf(child) / 2, left += widthOf(child);
    widths.push(width);
  }
  return { rows, at, width: Math.max(...widths) };
}

function layoutOf(block, count, links) {
  return (graphvizLayouts && graphvizLayouts[block]) || layerPlaces(count, links);
}

// From the bottom of the first, through the places between, to the top of the last; each stop with its direction.
function wayPath(places) {
  const half = NODE.height / 2, first = places[0], last = places[places.length - 1], down = last.y > first.y ? 1 : -1;
  const between = places.slice(1, -1).flatMap(({ x, y }) => [[x, y - down * half, down], [x, y + down * half, down]]);
  const stops = [[first.x, first.y + half, 1], ...between, [last.x, last.y - half, 1]];
  const pieces = stops.slice(1).map(([x, y, to], at) => {
    const [x0, y0, from] = stops[at], bend = Math.max(16, Math.abs(y - y0) / 2);
    return ` C${x0},${y0 + from * bend} ${x},${y - to * bend} ${x},${y}`;
  });
  return {
    path: `M${first.x},${first.y + half}${pieces.join("")}`,
    middle: { x: (first.x + places[1].x) / 2, y: (first.y + places[1].y) / 2 },
  };
}
