// dom.js: elements, and numbers as people read them.  Texts become text nodes: no name is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Makes |wanted| the children; those that are there already are not taken out for it.
function putChildren(element, wanted) {
  const kept = new Set(wanted);
  for (const child of [...element.children]) if (!kept.has(child)) child.remove();
  let next = element.firstChild;
  for (const child of wanted) {
    if (child === next) next = next.nextSibling;
    else element.insertBefore(child, next);
  }
}

function formatBytes(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes, unit = 0;
  while (Math.abs(value) >= 1000 && unit + 1 < units.length) value /= 1000, unit++;
  return `${unit ? value.toPrecision(3) : Math.round(value)}\u00a0${units[unit]}`;
}

const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

const DRAWN_DTYPES = ["f16", "bf16", "tf32", "f32", "f64"];
const dtypeClass = (dtype) => (DRAWN_DTYPES.includes(dtype) ? dtype : "other");
const dtypeMark = (dtype) => el("span", { class: `dtype dtype-${dtypeClass(dtype)}` }, dtype);

// Where it is cut, its end stays: names of a model differ there.
function pathText(text) {
  const at = text.length > 22 ? text.length - 20 : 0;
  return el("span", { class: "path whole" }, el("span", {}, text.slice(0, at)), el("span", {}, text.slice(at)));
}

const note = (...words) => el("p", { class: "note" }, ...words);

const detailsPane = () => document.getElementById("details");

function termList(rows) {
  return el("dl", {}, rows.filter(([, content]) => content !== null && content !== undefined)
    .map(([term, content]) => [el("dt", {}, term), el("dd", {}, content)]));
}
