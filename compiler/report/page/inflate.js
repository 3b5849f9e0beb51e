// inflate.js: zlib streams (RFC 1950, RFC 1951): large parts of the report are packed.  The browser's own way to unpack
// answers later, and all that the page shows is made from these parts.

// Of symbols with code lengths: how many codes there are of each length, and the symbols in the order of their codes.
function huffmanCode(lengths) {
  const counts = new Uint16Array(16), offsets = new Uint16Array(17), symbols = new Uint16Array(lengths.length);
  for (const length of lengths) counts[length]++;
  counts[0] = 0;
  for (let i = 1; i < 16; i++) offsets[i + 1] = offsets[i] + counts[i];
  lengths.forEach((length, symbol) => { if (length) symbols[offsets[length]++] = symbol; });
  return { counts, symbols };
}

const fixedCodes = () => [
  huffmanCode(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
  huffmanCode(new Array(30).fill(5)),
];

// Base and further bits of each length and distance: bits grow by one with every 4th or 2nd code.
function steps(count, each, first) {
  const base = [], bits = [];
  for (let i = 0, value = first; i < count; i++) {
    bits.push(Math.max(0, Math.floor(i / each) - 1));
    base.push(value);
    value += 1 << bits[i];
  }
  return { base, bits };
}
const lengthSteps = steps(29, 4, 3), distanceSteps = steps(30, 2, 1);
lengthSteps.base[28] = 258;
lengthSteps.bits[28] = 0;

const codeLengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

class Inflater {
  constructor(bytes) {
    Object.assign(this, { bytes, at: 2, held: 0, count: 0, out: new Uint8Array(bytes.length * 8), size: 0 });
  }

  take(count) {
    for (; this.count < count; this.count += 8) this.held |= this.bytes[this.at++] << this.count;
    const value = this.held & ((1 << count) - 1);
    this.held >>>= count;
    this.count -= count;
    return value;
  }

  symbol({ counts, symbols }) {
    for (; this.count < 15 && this.at < this.bytes.length; this.count += 8)
      this.held |= this.bytes[this.at++] << this.count;
    for (let length = 1, code = 0, first = 0, index = 0; length < 16; length++) {
      code |= (this.held >>> (length - 1)) & 1;
      if (code - first < counts[length]) {
        this.held >>>= length;
        this.count -= length;
        return symbols[index + code - first];
      }
      index += counts[length];
      first = (first + counts[length]) << 1;
      code <<= 1;
    }
    throw new Error("a part of this report is damaged");
  }

  room(more) {
    if (this.size + more <= this.out.length) return;
    const larger = new Uint8Array(2 * (this.size + more));
    larger.set(this.out);
    this.out = larger;
  }

  stored() {
    this.at -= this.count >> 3; // whole bytes that were read ahead
    this.held = this.count = 0;
    const length = this.bytes[this.at] | this.bytes[this.at + 1] << 8;
    this.at += 4;
    this.room(length);
    this.out.set(this.bytes.subarray(this.at, this.at + length), this.size);
    this.at += length;
    this.size += length;
  }

  codes() {
    const literals = this.take(5) + 257, distances = this.take(5) + 1, count = this.take(4) + 4;
    const lengths = new Array(19).fill(0), all = [];
    for (let i = 0; i < count; i++) lengths[codeLengthOrder[i]] = this.take(3);
    const code = huffmanCode(lengths);
    while (all.length < literals + distances) {
      const symbol = this.symbol(code);
      if (symbol < 16) all.push(symbol);
      else if (symbol === 16) for (let i = this.take(2) + 3; i; i--) all.push(all[all.length - 1]);
      else for (let i = symbol === 17 ? this.take(3) + 3 : this.take(7) + 11; i; i--) all.push(0);
    }
    return [huffmanCode(all.slice(0, literals)), huffmanCode(all.slice(literals))];
  }

  packed([literals, distances]) {
    for (let symbol; (symbol = this.symbol(literals)) !== 256;) {
      this.room(258);
      if (symbol < 256) {
        this.out[this.size++] = symbol;
        continue;
      }
      const length = lengthSteps.base[symbol - 257] + this.take(lengthSteps.bits[symbol - 257]);
      const far = this.symbol(distances), distance = distanceSteps.base[far] + this.take(distanceSteps.bits[far]);
      for (let i = 0; i < length; i++, this.size++) this.out[this.size] = this.out[this.size - distance];
    }
  }

  all() {
    for (let last = false; !last;) {
      last = this.take(1) === 1;
      const kind = this.take(2);
      if (kind === 0) this.stored();
      else this.packed(kind === 1 ? fixedCodes() : this.codes());
    }
    return this.out.subarray(0, this.size);
  }
}

// The text of a stream, given in base 64.
function unpackText(base64) {
  return new TextDecoder().decode(new Inflater(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))).all());
}
