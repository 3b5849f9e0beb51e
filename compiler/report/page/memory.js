// memory.js: temporaries that are alive at each kernel of a program, and which those are.

// Alive from the kernel that writes it to the last that reads it.
const temporaries = (program) => program.buffers.filter((buffer) => buffer.kind === "temp");

function aliveBytes(program) {
  const change = new Array(program.kernels.length + 1).fill(0);
  for (const buffer of temporaries(program)) {
    change[buffer.first] += bufferBytes(buffer);
    change[buffer.last + 1] -= bufferBytes(buffer);
  }
  let sum = 0;
  return change.slice(0, -1).map((more) => (sum += more));
}

function drawAlive(alive, choose) {
  const axis = makeAxis(alive, { least: 0, text: (bytes) => formatBytes(bytes).replace(/\.0+(?=\s)/, "") });
  const steps = alive.flatMap((bytes, i) => [[i, bytes], [i + 1, bytes]]);
  const points = [[0, 0], ...steps, [alive.length, 0]].map(([x, y]) => `${x},${axis.place(y)}`).join(" ");
  return makeChart({
    label: "Bytes of temporaries that are alive at each kernel", count: alive.length, axis, columnWord: "kernel", byClick: true,
    about: `Bytes of temporaries over ${plural(alive.length, "kernel")}, ${formatBytes(Math.max(...alive))} at most`,
    columns: columnTicks(0, alive.length - 1, (number) => number, alive.length),
    shapes: svg("polygon", { class: "area", points }), point: choose,
  });
}

const bufferColumns = [
  { title: "Value", grows: true, value: (buffer) => buffer.value, cell: (buffer) => pathText(buffer.value) },
  { title: "Stored as", value: (buffer) => buffer.storage, cell: (buffer) => dtypeMark(buffer.storage) },
  { title: "Bytes", number: true, value: (buffer) => sumOf(buffer, bufferBytes),
    cell: (buffer) => formatBytes(sumOf(buffer, bufferBytes)) },
  { title: "First kernel", number: true, value: (buffer) => buffer.first },
  { title: "Last kernel", number: true, value: (buffer) => buffer.last },
];

const foldBuffers = {
  key: (buffer) => `${pathKey(buffer.value)} ${buffer.storage}`,
  merge: (buffers) => ({
    value: `${patternOf(buffers.map((buffer) => buffer.value))}, ${plural(buffers.length, "value")}`,
    first: Math.min(...buffers.map((buffer) => buffer.first)), last: Math.max(...buffers.map((buffer) => buffer.last)),
  }),
};

function drawMemory(panel) {
  const programs = explain.programs.filter((program) => program.kernels.length);
  if (!programs.length) {
    panel.append(note("There are no kernels to tell of."));
    return null;
  }
  const chosen = el("select", { onchange: () => show(null) },
    programs.map((program, at) => el("option", { value: at }, `${program.target} ${program.function}`)));
  const place = el("div");
  const slider = el("input", { type: "range", class: "wide", min: 0, "aria-label": "Kernel" });
  const words = el("p", { "aria-live": "polite" });
  const table = new VirtualTable({
    label: "Buffers alive", columns: bufferColumns, rows: [], sortBy: 2, descending: true,
    searchText: (buffer) => membersOf(buffer).map((one) => `${one.value} ${one.name} ${one.storage}`).join(" "),
    choose: (buffer) => {
      const program = programs[chosen.value];
      const kernel = kernels.find((k) => k.program === program && k.number === buffer.first);
      if (kernel) chooseKernel(kernel);
    },
  });
  const all = el("input", { type: "checkbox", onchange: () => show(Number(slider.value)) });
  // |at|: a kernel; null: the one where most is alive.
  function show(at) {
    const program = programs[chosen.value], alive = aliveBytes(program);
    const most = alive.reduce((best, bytes, i) => (bytes > alive[best] ? i : best), 0);
    const kernel = program.kernels[at ?? most];
    slider.max = program.kernels.length - 1;
    slider.value = at ?? most;
    const chart = drawAlive(alive, show);
    chart.move(Number(slider.value));
    place.replaceChildren(chart.figure);
    words.textContent = `${kernel.name} (${kernel.title}): ${formatBytes(alive[slider.value])} alive; ` +
      `the most is ${formatBytes(alive[most])}, at ${program.kernels[most].name}.`;
    const rows = temporaries(program).filter((b) => b.first <= slider.value && slider.value <= b.last);
    table.rows = all.checked ? rows : foldRows(rows, foldBuffers);
    table.update(findBox().value);
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  panel.append(
    el("div", { class: "legend" }, el("label", {}, "Program ", chosen)),
    note(`Temporaries at N = `, el("span", { id: "memory-batch" }, String(batch)),
      ", without what layouts round up; weights, moments and what the caller holds come on top."),
    place, slider, words, el("label", {}, all, " each of repeated layers and loops"), table.count, table.frame);
  show(null);
  return () => {
    document.getElementById("memory-batch").textContent = batch;
    show(Number(slider.value));
  };
}
