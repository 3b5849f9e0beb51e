// autocast.js: the report of `ampc autocast`: nodes, reasons, casts, weights and ranges, as --json has them.

const told = readPart("autocast");

const typeMark = (type) => (type ? dtypeMark(type.replace("float", "f")) : "as it is");
const ruleOf = (row) => (row.line ? `${row.rule}, ${row.policy}:${row.line}` : row.rule || "");
const nodeName = (node) => node.node || node.result;
const castWord = (cast) => el("span", { class: "cast-word" }, `${cast.from} → ${cast.to}`);

function showDetails(...content) {
  const back = el("button", { type: "button", class: "link", onclick: showOverview }, "Overview");
  detailsPane().classList.remove("overview");
  detailsPane().replaceChildren(back, ...content);
  detailsPane().scrollTop = 0;
}

function showNode(node) {
  showDetails(el("h2", { class: "path" }, nodeName(node)), termList([
    ["op of ONNX", node.op_type], ["for the policy", node.op], ["type", typeMark(node.type)],
    ["decided by", node.line && `${node.policy}:${node.line}`],
    ["line", node.policy_line && el("code", {}, node.policy_line.replace(/ +/g, " "))],
    ["because", node.because], ["makes", el("code", {}, node.result)],
    ["graph", node.graph ? `${node.graph}, inside of the model's` : "the model's"],
  ]));
}

const nodesOf = (group) => told.decisions.filter((node) => node.op === group.op && node.type === group.type &&
  node.rule === group.rule && node.line === group.line);

function showGroup(group) {
  const nodes = nodesOf(group), most = 200;
  showDetails(el("h2", {}, `${group.op || "Nodes"}: ${plural(nodes.length, "node")}`),
    termList([["type", typeMark(group.type)], ["because", ruleOf(group)], ["line", group.policy_line]]),
    el("ul", {}, nodes.slice(0, most).map((node) => el("li", {}, el("button",
      { type: "button", class: "link path", onclick: () => showNode(node) }, nodeName(node))))),
    note(nodes.length > most ? `and ${nodes.length - most} others` : ""));
}

const showRow = (name, terms) => showDetails(el("h2", { class: "path" }, name), termList(terms));
const shortNumber = (x) => (x === 0 ? "0" : x.toPrecision(3));
const textColumn = (title, key, options = {}) => ({ title, value: (row) => row[key], ...options });
const nameColumn = (title, value) => ({ title, grows: true, value, cell: (row) => pathText(value(row)) });
const numberColumn = (title, key, cell) => ({ title, number: true, value: (row) => row[key], cell: (row) => cell(row[key]) });
const typeColumn = { title: "Type", value: (row) => row.type || "", cell: (row) => typeMark(row.type) };
const countOf = (n) => n.toLocaleString("en");

const drawNodes = (panel) => drawTable(panel, [], {
  label: "Nodes", rows: told.decisions, choose: showNode,
  columns: [nameColumn("Node", nodeName), textColumn("Op", "op_type"), textColumn("For the policy", "op"), typeColumn,
    { title: "Because", value: ruleOf }],
  searchText: (node) => [nodeName(node), node.result, node.op_type, node.op, node.type, node.because].join(" "),
});

const drawReasons = (panel) => drawTable(panel, [], {
  label: "Reasons", rows: told.groups, choose: showGroup, sortBy: 0, descending: true,
  columns: [numberColumn("Nodes", "nodes", countOf), textColumn("For the policy", "op"), typeColumn,
    { title: "Because", value: ruleOf }, { title: "Line of the policy", grows: true, value: (row) => row.policy_line || "" }],
  searchText: (group) => [group.op, group.type, ruleOf(group), group.policy_line].join(" "),
});

const drawCasts = (panel) => drawTable(panel, [note("A cast of a weight is made in the file: it is there twice.")], {
  label: "Casts", rows: told.cast_values,
  choose: (cast) => showRow(cast.value, [["cast", castWord(cast)], ["first read by", cast.for], ["bytes",
    cast.bytes === null ? "not known" : formatBytes(cast.bytes)], ["of a weight", cast.weight ? "yes" : "no"]]),
  columns: [nameColumn("Value", (cast) => cast.value), { title: "Cast", value: (cast) => cast.to, cell: castWord },
    nameColumn("For", (cast) => cast.for || "an output"), { title: "Weight", value: (cast) => (cast.weight ? "yes" : "") },
    numberColumn("Bytes", "bytes", (bytes) => (bytes === null ? "?" : formatBytes(bytes)))],
  searchText: (cast) => [cast.value, cast.from, cast.to, cast.for].join(" "),
});

const largestFirst = { sortBy: 2, descending: true, searchText: (row) => row.name };
const rangeColumns = [nameColumn("Name", (row) => row.name), numberColumn("Smallest", "smallest", shortNumber),
  numberColumn("Largest", "largest", shortNumber)];
const rangeTerms = (row) => [["smallest magnitude but zero", shortNumber(row.smallest)],
  ["largest magnitude", shortNumber(row.largest)]];

const drawWeights = (panel) => drawTable(panel, [], {
  label: "Weights", rows: told.weights, ...largestFirst,
  choose: (weight) => showRow(weight.name, [...rangeTerms(weight), ["became infinite", countOf(weight.over)],
    ["became zero", countOf(weight.under)]]),
  columns: [...rangeColumns, numberColumn("Became infinite", "over", countOf), numberColumn("Became zero", "under", countOf)],
});

const drawRanges = (panel) => drawTable(panel, [note("Measured values, as --ranges gave them.")], {
  label: "Ranges", rows: told.ranges, ...largestFirst, choose: (row) => showRow(row.name, rangeTerms(row)),
  columns: rangeColumns,
});

function showOverview() {
  const change = (before, after, text) => `${text(before)} → ${text(after)}`;
  detailsPane().classList.add("overview");
  detailsPane().replaceChildren(el("h2", {}, "Overview"), termList([
    ["model", told.model], ["written to", told.output], ["policy", told.policy], ["opset", String(told.opset)],
    ["nodes", `${countOf(told.lowered)} of ${countOf(told.nodes)} in ${told.low}, ${countOf(told.kept)} in float32`],
    ["casts", change(told.casts_before, told.casts, countOf)],
    ["weights", change(told.weight_bytes_before, told.weight_bytes, formatBytes)],
    ["moved", change(told.moved_bytes_before, told.moved_bytes, formatBytes)],
  ]), note("Choose a row: what is known of it is shown here."));
}

startTheme();
document.getElementById("title").textContent = told.model;
document.getElementById("summary").textContent =
  `policy ${told.policy}: ${countOf(told.lowered)} of ${plural(told.nodes, "node")} in ${told.low}`;
document.getElementById("batch").closest("label").remove();
addTab("reasons", "Reasons", drawReasons);
addTab("nodes", "Nodes", drawNodes);
addTab("casts", "Casts", drawCasts);
addTab("weights", "Weights", drawWeights);
if (told.ranges.length) addTab("ranges", "Ranges", drawRanges);
findBox().addEventListener("input", refreshShown);
showOverview();
showTab("reasons");
