"""protobuf_read.py: messages of Protocol Buffers, decoded by the encoding's own definition, without a package.

A schema is a dict: field number -> (name, kind), where kind is a word of KINDS or the schema of a message.  A field
that the schema lacks, or that is stored in another way than its kind is, is an error: the writer knows what it writes.
"""

import struct

KINDS = {  # how it is stored, and what its bytes or its number are
    "uint": (0, lambda v: v),
    "int": (0, lambda v: v - (1 << 64) if v >> 63 else v),
    "double": (1, lambda v: struct.unpack("<d", v)[0]),
    "float": (5, lambda v: struct.unpack("<f", v)[0]),
    "text": (2, lambda v: v.decode("utf-8")),
    "doubles": (2, lambda v: list(struct.unpack(f"<{len(v) // 8}d", v))),
}


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            assert value < 1 << 64 and (byte or shift == 7), "a varint that is too long"
            return value, at


def field_at(data, at):
    """Number, wire type, value, and where the next field begins."""
    tag, at = varint(data, at)
    number, wire = tag >> 3, tag & 7
    if wire == 0:
        value, at = varint(data, at)
        return number, wire, value, at
    size = {1: 8, 5: 4}.get(wire)
    if size is None:
        assert wire == 2, f"field {number} has wire type {wire}"
        size, at = varint(data, at)
    assert at + size <= len(data), f"field {number} ends after its message"
    return number, wire, data[at:at + size], at + size


def decode(data, schema):
    """Name -> list of values, in the order in which they are there."""
    found, at = {}, 0
    while at < len(data):
        number, wire, value, at = field_at(data, at)
        assert number in schema, f"field {number} is none of {sorted(schema)}"
        name, kind = schema[number]
        if isinstance(kind, dict):
            assert wire == 2, f"{name} is no message"
            value = decode(value, kind)
        else:
            stored, read = KINDS[kind]
            assert wire == stored, f"{name} has wire type {wire}"
            value = read(value)
        found.setdefault(name, []).append(value)
    return found
