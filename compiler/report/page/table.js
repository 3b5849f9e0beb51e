// table.js: a table of any number of rows.  Only those in sight are elements: the frame is as high as all of them would
// be, and the table moves along as it is scrolled.  Arrow keys go from row to row, Enter chooses.

const ROW_HEIGHT = 28, SPARE_ROWS = 6;

// Rows that differ in numbers of names alone, a loop's steps or repeated layers, are one: the first, with |members| and
// what |merge| says of them.
function foldRows(rows, { key, merge }) {
  return [...groupBy(rows, key).values()].map((members) =>
    (members.length === 1 ? members[0] : { ...members[0], members, ...merge(members) }));
}

const membersOf = (row) => row.members || [row];
const sumOf = (row, value) => membersOf(row).reduce((sum, member) => sum + value(member), 0);

// As text_path_key of base/text.c: "h.*.mlp" of "h.11.mlp", "lstm.mul" of "lstm.mul_3".
const pathKey = (path) => path.split(".").map((part) =>
  (/^[0-9]+$/.test(part) ? "*" : part.replace(/(?<=.)_[0-9]+$/, ""))).join(".");
const titleKey = (title) => title.replace(/^[^:]*/, (path) => pathKey(path));
// As explain_join_names of compiler/explain_fold.c, of several of one key: stars where their parts differ, "h.*.add_1", "lstm.mul*".
function joinNames(name, path) {
  const parts = path.split(".");
  return name.split(".").map((part, at) => {
    if (part === parts[at]) return part;
    const key = pathKey(parts[at]);
    return key === "*" ? key : `${key}*`;
  }).join(".");
}
const patternOf = (names) => names.reduce(joinNames);

const contentOf = (column, row) => (column.cell ? column.cell(row) : String(column.value(row) ?? ""));
const wordsOf = (content) => (typeof content === "string" ? content : content.textContent);

const CELL_SPARE = 28, TITLE_SPARE = 31, LEAST_GROWN = 170; // edges, a mark's own, the arrow of what is sorted by

// In pixels.
const paper = document.createElement("canvas").getContext("2d"), families = getComputedStyle(document.body).fontFamily;
function textWidth(text, weight = "") {
  paper.font = `${weight}14px ${families}`;
  return paper.measureText(text).width;
}

// columns: { title, number, value(row) -> what is sorted by, cell(row) -> what is shown (the value without it), width: in
// pixels, else what its words take; grows: it takes what the others leave }.
// choose(row): a row was chosen.  searchText(row): what the search looks in.
class VirtualTable {
  constructor({ label, columns, rows, choose, searchText, sortBy = null, descending = false }) {
    Object.assign(this, { label, columns, rows, choose, searchText, sortBy, descending });
    this.shown = rows;
    this.active = 0; // the row that the keyboard is on
    this.chosen = null;
    this.words = new Map(); // row -> its text, made when it is first looked in
    this.elements = new Map(); // row -> its element, of those that were drawn last
    this.body = el("tbody");
    this.heads = columns.map((column, at) => this.makeHead(column, at));
    this.table = el("table", { role: "grid", "aria-label": label },
      el("colgroup", {}, this.cols = columns.map(() => el("col"))),
      el("thead", {}, el("tr", { "aria-rowindex": 1 }, this.heads)), this.body);
    this.space = el("div", {}, this.table);
    this.frame = el("div", {
      class: "table-frame", tabindex: 0, role: "group", "aria-label": `${label}, scrolled with the arrow keys`,
      onkeydown: (event) => this.onKey(event),
    }, this.space);
    this.frame.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.frame);
    this.count = note("");
  }

  makeHead(column, at) {
    const button = el("button", { type: "button", onclick: () => this.sort(at) }, column.title);
    return el("th", { scope: "col", class: column.number ? "number" : null }, button);
  }

  sort(at) {
    this.descending = this.sortBy === at ? !this.descending : Boolean(this.columns[at].number);
    this.sortBy = at;
    this.update();
  }

  // The rows whose text has every word of |query|, in the order of the column that is sorted by.
  update(query = this.query || "") {
    this.query = query;
    this.elements.clear(); // what they say may have changed
    this.fit();
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = words.length ? this.rows.filter((row) => words.every((word) => this.textOf(row).includes(word)))
      : [...this.rows];
    if (this.sortBy !== null) this.order();
    this.active = Math.min(this.active, Math.max(0, this.shown.length - 1));
    this.heads.forEach((head, at) => {
      if (at === this.sortBy) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.table.setAttribute("aria-rowcount", this.shown.length + 1);
    this.space.style.height = `${(this.shown.length + 1) * ROW_HEIGHT}px`;
    this.count.textContent = this.shown.length === this.rows.length ? plural(this.rows.length, "row")
      : `${this.shown.length.toLocaleString("en")} of ${plural(this.rows.length, "row")}`;
    this.draw();
  }

  // Widths of the columns, by their titles and what some rows say.
  fit() {
    const some = this.rows.filter((_, at) => at % Math.ceil(this.rows.length / 100) === 0);
    const widths = this.columns.map((column) => {
      const title = textWidth(column.title, "600 ") + TITLE_SPARE;
      if (column.grows) return Math.max(title, LEAST_GROWN);
      if (column.width) return Math.max(title, column.width);
      return Math.max(title, ...some.map((row) => textWidth(wordsOf(contentOf(column, row))) + CELL_SPARE));
    });
    this.cols.forEach((col, at) => { col.style.width = this.columns[at].grows ? "" : `${Math.ceil(widths[at])}px`; });
    this.table.style.minWidth = `${Math.ceil(widths.reduce((a, b) => a + b, 0))}px`;
  }

  textOf(row) {
    if (!this.words.has(row)) this.words.set(row, this.searchText(row).toLowerCase());
    return this.words.get(row);
  }

  // Values are asked for once a row; equal ones stay in their order.
  order() {
    const { value } = this.columns[this.sortBy], sign = this.descending ? -1 : 1;
    const keyed = this.shown.map((row) => [value(row), row]);
    keyed.sort(([a], [b]) => sign * (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en",
      { numeric: true })));
    this.shown = keyed.map(([, row]) => row);
  }

  // Elements of rows that stay in sight stay as they are: the focus, and a click that has begun, are theirs.
  draw() {
    const first = Math.max(0, Math.floor(this.frame.scrollTop / ROW_HEIGHT) - SPARE_ROWS);
    const count = Math.ceil(this.frame.clientHeight / ROW_HEIGHT) + 2 * SPARE_ROWS;
    const hadFocus = this.body.contains(document.activeElement), drawn = new Map();
    this.shown.slice(first, first + count).forEach((row, at) => {
      const element = this.elements.get(row) || this.makeRow(row);
      this.placeRow(element, row, first + at);
      drawn.set(row, element);
    });
    this.elements = drawn;
    this.table.style.top = `${first * ROW_HEIGHT}px`;
    putChildren(this.body, [...drawn.values()]);
    if (hadFocus && !this.body.contains(document.activeElement)) this.focusActive();
  }

  makeRow(row) {
    return el("tr", { onclick: (event) => this.take(Number(event.currentTarget.dataset.at)) },
      this.columns.map((column) => this.makeCell(column, row)));
  }

  placeRow(element, row, at) {
    element.dataset.at = at;
    element.tabIndex = at === this.active ? 0 : -1;
    element.setAttribute("aria-rowindex", at + 2);
    element.setAttribute("aria-selected", row === this.chosen);
  }

  makeCell(column, row) {
    const content = contentOf(column, row);
    return el("td", { role: "gridcell", class: column.number ? "number" : null, title: wordsOf(content) || null }, content);
  }

  take(at) {
    this.active = at;
    this.chosen = this.shown[at];
    this.draw();
    this.choose(this.chosen);
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.frame.clientHeight / ROW_HEIGHT) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.target.closest("th") || !this.shown.length) return;
    if (event.key in moves) this.moveTo(this.active + moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.take(this.active);
    else return;
    event.preventDefault();
  }

  moveTo(at) {
    this.active = Math.max(0, Math.min(this.shown.length - 1, at));
    const top = this.active * ROW_HEIGHT, height = this.frame.clientHeight - 2 * ROW_HEIGHT;
    if (top < this.frame.scrollTop) this.frame.scrollTop = top;
    else if (top > this.frame.scrollTop + height) this.frame.scrollTop = top - height;
    this.draw();
    this.focusActive();
  }

  // The frame, where the row was scrolled out of sight.
  focusActive() {
    const row = this.body.querySelector(`[data-at="${this.active}"]`);
    (row || this.frame).focus({ preventScroll: true });
  }
}

const findBox = () => document.getElementById("find");

// A table that fills its view and follows the search and the batch.  |fold|: how rows become one (foldRows), unless each
// is wanted; |each|: what the switch for that says.
function drawTable(panel, before, { fold, each = " each of repeated layers and loops", ...options }) {
  const folded = fold ? foldRows(options.rows.filter(fold.shows || (() => true)), fold) : options.rows;
  const table = new VirtualTable({
    ...options, rows: folded, choose: (row) => options.choose(membersOf(row)[0]),
    searchText: (row) => membersOf(row).map(options.searchText).join(" "),
  });
  const refresh = () => table.update(findBox().value);
  const all = el("input", {
    type: "checkbox",
    onchange: (event) => {
      table.rows = event.target.checked ? options.rows : folded;
      refresh();
    },
  });
  panel.append(...before, ...(folded.length < options.rows.length ? [el("label", {}, all, each)] : []), table.count, table.frame);
  refresh();
  return refresh;
}
