// parts.js: reads the JSON in the page.

// Control characters, and those that turn the direction of text, with which a line looks like another: shown by number.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function visible(key, value) {
  if (typeof value !== "string") return value;
  return value.replace(unseen, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

function readPart(name) {
  const element = document.getElementById(`part-${name}`);
  if (!element) return null;
  const packed = element.type === "application/zlib";
  return JSON.parse(packed ? unpackText(element.textContent) : element.textContent, visible);
}

const indexBy = (list, key) => new Map(list.map((item) => [item[key], item]));

function groupBy(list, keyOf) {
  const groups = new Map();
  for (const item of list) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}
