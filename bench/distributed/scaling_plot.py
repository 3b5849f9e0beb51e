"""Efficiency by the number of GPUs, as SVG: a panel a model, a line a network."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, GAP, COLUMNS = 300, 190, 56, 56, 70, 2
COLOURS = ("#1b6ca8", "#c2571a", "#4b8b3b", "#7a4ea3")
STYLE = "font-family: sans-serif; font-size: 12px; fill: #222"


def line(points, colour, dashes=""):
    path = " ".join(f"{'L' if i else 'M'}{x:.1f},{y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'


def text(x, y, words, anchor="middle", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" style="{STYLE}">'
            f"{escape(words)}</text>")


def panel(rows, left, top, networks):
    gpus = sorted({r["gpus"] for r in rows})
    low, high = math.log2(gpus[0]), math.log2(gpus[-1])

    def at(ranks, efficiency):
        return (left + WIDTH * (math.log2(ranks) - low) / ((high - low) or 1), top + HEIGHT * (1 - efficiency))

    out = [text(left + WIDTH / 2, top - 10, rows[0]["model"], weight="bold")]
    for tenth in range(0, 11, 2):
        _, y = at(gpus[0], tenth / 10)
        out.append(f'<path d="M{left},{y:.1f}h{WIDTH}" stroke="#ddd"/>')
        out.append(text(left - 6, y + 4, f"{10 * tenth} %", "end"))
    for ranks in gpus:
        out.append(text(at(ranks, 0)[0], top + HEIGHT + 16, f"{ranks:,}"))
    out.append(text(left + WIDTH / 2, top + HEIGHT + 32, "GPUs"))
    for network, colour in zip(networks, COLOURS):
        of = sorted((r for r in rows if r["network"] == network), key=lambda r: r["gpus"])
        out.append(line([at(r["gpus"], r["not_overlapped"]) for r in of], colour, "2 4"))
        out.append(line([at(r["gpus"], r["efficiency"]) for r in of], colour))
    return out


def draw(rows):
    models = list(dict.fromkeys(r["model"] for r in rows))
    networks = list(dict.fromkeys(r["network"] for r in rows))
    columns = min(COLUMNS, len(models))
    lines = -(-len(models) // columns)
    width, height = columns * (LEFT + WIDTH + 24), TOP + lines * (HEIGHT + GAP) - 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    x = LEFT
    for network, colour in zip(networks, COLOURS):
        out += [line([(x, 16), (x + 24, 16)], colour), text(x + 30, 20, network, "start")]
        x += 140
    out.append(text(x, 20, "dotted: all messages after the backward pass", "start"))
    for i, model in enumerate(models):
        left, top = LEFT + i % columns * (LEFT + WIDTH + 24), TOP + i // columns * (HEIGHT + GAP)
        out += panel([r for r in rows if r["model"] == model], left, top, networks)
    return "\n".join(out + ["</svg>"]) + "\n"
