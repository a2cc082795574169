"""draw_concepts.py [--check] FOLDER: draws the pictures of docs/concepts.md and docs/how-to.md into FOLDER.

All have one style: a light card, so that they read well on light and dark pages, and letters that a phone can show.
With --check, exits non-zero if a file in FOLDER differs from its picture.
"""
import html
import pathlib
import sys

WIDTH = 600
INK, GREY, LINE = "#1f2933", "#5b6770", "#9aa5b1"
BLUE, GREEN, ORANGE, RED, PLAIN = "#d6e6f8", "#d8efd9", "#fde8c8", "#f8d7d3", "#eef1f4"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


class Picture:
    def __init__(self, height, title):
        self.height, self.title, self.parts = height, title, []

    def add(self, part):
        self.parts.append(part)

    def text(self, x, y, words, size=17, color=INK, anchor="start", mono=False, bold=False):
        font = f' font-family="{MONO}"' if mono else ""
        weight = ' font-weight="600"' if bold else ""
        self.add(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{font}{weight}>'
                 f'{html.escape(words)}</text>')

    def box(self, x, y, width, height, words="", fill=PLAIN, below="", size=17, mono=False, dashed=False):
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{LINE}"'
                 f'{dash}/>')
        lines = words.split("\n") if words else []
        lines = [(line, size, INK, mono) for line in lines] + ([(below, 15, GREY, False)] if below else [])
        top = y + height / 2 - 10.5 * (len(lines) - 1) + 6
        for i, (line, of_size, color, is_mono) in enumerate(lines):
            self.text(x + width / 2, top + 21 * i, line, of_size, color, "middle", is_mono)

    def line(self, points, arrow=True, color=GREY, dashed=False, width=1.8):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        head = ' marker-end="url(#head)"' if arrow else ""
        self.add(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dash}{head}/>')

    def svg(self):
        head = ('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>')
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" font-family="{SANS}" role="img">',
            f"<title>{html.escape(self.title)}</title>", head,
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8" fill="#fdfdfc" '
            f'stroke="#d5dbe1"/>', *self.parts, "</svg>", ""])


def tensor():
    p = Picture(290, "Two tensors share one buffer, whose elements lie in row-major order")
    p.text(24, 36, "shape (2, 4), f32", bold=True)
    for i in range(8):
        p.box(24 + 44 * (i % 4), 50 + 44 * (i // 4), 44, 44, str(i), BLUE if i < 4 else GREEN)
    p.text(250, 78, "element (1, 2) is number", color=GREY)
    p.text(250, 102, "1 · 4 + 2 = 6 of the buffer", color=GREY)
    p.text(24, 188, "buffer", bold=True)
    for i in range(8):
        p.box(100 + 44 * i, 164, 44, 38, str(i), BLUE if i < 4 else GREEN)
    p.text(470, 188, "32 bytes", color=GREY)
    p.box(100, 240, 130, 34, "Tensor a", mono=True)
    p.box(290, 240, 160, 34, "Tensor b = a", mono=True)
    p.line([(165, 240), (165, 206)])
    p.line([(370, 240), (370, 206)])
    p.text(470, 262, "two handles", color=GREY)
    return p


def tape():
    p = Picture(300, "Each statement appends a node to the tape; a Var is a tape and a number")
    p.text(24, 36, "C++ code", bold=True)
    p.text(330, 36, "tape", bold=True)
    rows = [("Var w = tape.parameter(W)", "0", "parameter", ""), ("Var x = tape.constant(X)", "1", "constant", ""),
            ("Var h = matmul(x, w)", "2", "matmul", "1, 0"), ("Var y = tanh(h)", "3", "tanh", "2"),
            ("Var loss = sum(y)", "4", "sum", "3")]
    for i, (code, number, operation, reads) in enumerate(rows):
        y = 50 + 42 * i
        p.text(24, y + 24, code, 15, mono=True)
        p.line([(274, y + 18), (322, y + 18)])
        p.box(330, y, 34, 36, number, BLUE)
        p.box(364, y, 116, 36, operation, PLAIN, mono=True, size=15)
        if reads:
            p.text(490, y + 24, "reads " + reads, 15, GREY)
    p.text(24, 282, "A node reads earlier nodes only. Recording computes nothing.", 16, GREY)
    return p


def laziness():
    p = Picture(270, "Other frameworks compute while the model runs; here, backward computes everything")
    p.text(24, 36, "computes at once", bold=True)
    for i, words in enumerate(["matmul", "tanh", "matmul", "sum"]):
        p.box(24 + 78 * i, 50, 74, 40, words, ORANGE, size=15)
    p.box(340, 50, 180, 40, "backward", ORANGE)
    p.line([(340, 102), (340, 116)], arrow=False)
    p.text(24, 113, "memory is already taken here", 15, GREY)
    p.line([(262, 108), (334, 108)])
    p.text(24, 160, "here: records first", bold=True)
    for i, words in enumerate(["matmul", "tanh", "matmul", "sum"]):
        p.box(24 + 78 * i, 174, 74, 40, words, "#ffffff", size=15, dashed=True)
    p.box(340, 174, 64, 40, "plan", BLUE)
    p.box(408, 174, 168, 40, "run both parts", GREEN)
    p.text(24, 244, "nothing is computed", 15, GREY)
    p.text(340, 244, "backward(loss, budget)", 15, GREY, mono=True)
    return p


def lifetimes():
    p = Picture(330, "How long tensors, variables, gradients and programs live")
    events = [(150, "record"), (260, "backward"), (370, "clear()"), (480, "~Tape")]
    for x, words in events:
        p.text(x, 36, words, 15, GREY, "middle", mono=True)
        p.line([(x, 46), (x, 310)], arrow=False, color="#d5dbe1", width=1.2)
    rows = [("Tensor", 100, 580, BLUE, "as long as a copy exists"), ("Tape", 120, 480, PLAIN, "yours to keep"),
            ("Var", 150, 370, ORANGE, "until clear() or ~Tape"), ("Gradients", 260, 580, GREEN, "own what they need"),
            ("Report", 260, 580, GREEN, "as long as you like"), ("Program", 190, 580, BLUE, "has a tape of its own")]
    for i, (name, start, end, fill, words) in enumerate(rows):
        y = 58 + 43 * i
        p.text(24, y + 22, name, 16, bold=True)
        p.box(start + 4, y, end - start - 8, 34, words, fill, size=15)
    return p


def budget():
    p = Picture(330, "The budget covers what a run makes; parameters, inputs and optimizer state are outside")
    p.text(24, 36, "memory of the process", bold=True)
    p.box(24, 50, 552, 262, fill="#ffffff")
    p.text(44, 80, "outside the budget", 16, GREY)
    outside = ["parameters\nand inputs", "state of the\noptimizer", "tape and plans", "your program,\nstacks"]
    for i, words in enumerate(outside):
        p.box(44, 92 + 53 * i, 150, 47, words, PLAIN, size=15)
    p.box(216, 66, 342, 230, fill="#f2f8f2", dashed=True)
    p.text(236, 92, ".memory_budget", 16, mono=True)
    inside = ["values of the\nforward part", "adjoints", "gradients that\nare returned", "workspaces of\noperations",
              "auxiliary\noutputs"]
    for i, words in enumerate(inside):
        p.box(236 + 156 * (i % 2), 104 + 61 * (i // 2), 148, 53, words, GREEN, size=15)
    p.text(392, 250, "peak ≤ predicted", 15, GREY)
    p.text(392, 270, "≤ budget", 15, GREY)
    return p


def staircase(p, x, y, width, height, steps, most):
    """Live values during each step, as bars; forward steps are blue, backward green, repeated ones orange."""
    each = width / len(steps)
    for i, (name, live, fill) in enumerate(steps):
        tall = height * live / most
        p.add(f'<rect x="{x + each * i:g}" y="{y + height - tall:g}" width="{each - 3:g}" height="{tall:g}" '
              f'fill="{fill}" stroke="{LINE}"/>')
        p.text(x + each * (i + 0.5) - 1.5, y + height + 20, name, 15, anchor="middle")


def simulated(order, kept_until):
    """Pairs of step and number of live values; `kept_until` maps (value, step at which it is made) to its last step."""
    return [sum(1 for (value, made), last in kept_until.items() if made <= i <= last) for i in range(len(order))]


def plans():
    p = Picture(350, "Keeping all values takes 4 at once; recomputing some takes fewer")
    keep = ["f1", "f2", "f3", "f4", "b4", "b3", "b2", "b1"]
    live = simulated(keep, {("f1", 0): 6, ("f2", 1): 5, ("f3", 2): 4, ("f4", 3): 4})
    p.text(24, 34, "keep everything", bold=True)
    colors = {"f": BLUE, "b": GREEN}
    staircase(p, 24, 44, 400, 92, [(name, n, colors[name[0]]) for name, n in zip(keep, live)], 4)
    p.text(440, 90, "at most 4 values", 16, GREY)
    p.text(440, 112, "are live", 16, GREY)
    less = ["f1", "f2", "f3", "f4", "b4", "f3", "b3", "b2", "f1", "b1"]
    live = simulated(less, {("f1", 0): 1, ("f2", 1): 7, ("f3", 2): 3, ("f4", 3): 4, ("f3", 5): 6, ("f1", 8): 9})
    p.text(24, 196, "recompute f3 and f1", bold=True)
    repeated = {5, 8}
    steps = [(name, n, ORANGE if i in repeated else colors[name[0]]) for i, (name, n) in enumerate(zip(less, live))]
    staircase(p, 24, 206, 400, 92, steps, 4)
    p.text(440, 252, "at most 3 values;", 16, GREY)
    p.text(440, 274, "two steps more", 16, GREY)
    p.box(440, 296, 20, 16, fill=ORANGE)
    p.text(466, 310, "computed again", 15, GREY)
    return p


def determinism():
    p = Picture(320, "Budgets, planners, threads and modes lead to the same bits")
    rows = ["no budget", "20 % of the memory", "another planner", "1 thread, or 64", "lazy or eager"]
    for i, words in enumerate(rows):
        y = 24 + 42 * i
        p.box(24, y, 200, 34, words, BLUE, size=16)
        p.line([(228, y + 17), (330, 126)])
    p.box(336, 96, 240, 60, "0 01111110 0110…", GREEN, "the same bits", mono=True)
    p.line([(24, 244), (576, 244)], arrow=False, color="#d5dbe1")
    p.text(24, 272, "These may change the last bits:", 16, bold=True)
    p.text(24, 298, "precision · processor instructions · number of replicas or micro-batches", 15, GREY)
    return p


def threads():
    p = Picture(300, "Independent nodes run at the same time, and large operations divide their work")
    p.text(24, 34, "program", bold=True)
    nodes = [(24, 80, "a", PLAIN), (110, 50, "b", BLUE), (110, 110, "c", ORANGE), (196, 80, "d", GREEN)]
    for x, y, words, fill in nodes:
        p.box(x, y, 50, 36, words, fill, mono=True)
    for points in [[(76, 92), (106, 72)], [(76, 104), (106, 124)], [(162, 70), (194, 92)], [(162, 126), (194, 104)]]:
        p.line(points)
    p.text(290, 74, "b and c do not read each other.", 16, GREY)
    p.text(290, 100, "d is large: it divides its rows.", 16, GREY)
    p.text(290, 126, "The result has the same bits.", 16, GREY)
    for i in range(2):
        p.text(24, 206 + 46 * i, f"thread {i + 1}", 16)
    lanes = [(110, 184, 70, "a", PLAIN), (184, 184, 150, "b", BLUE), (184, 230, 130, "c", ORANGE),
             (338, 184, 180, "d, upper half", GREEN), (338, 230, 180, "d, lower half", GREEN)]
    for x, y, width, words, fill in lanes:
        p.box(x, y, width, 36, words, fill, size=16)
    p.line([(110, 282), (560, 282)])
    p.text(24, 287, "time", 15, GREY)
    return p


def precision():
    p = Picture(390, "Bits of the element types, and what mixed precision computes in which of them")
    p.text(24, 34, "bits of an element", bold=True)
    kinds = [("f64", 11, 52), ("f32", 8, 23), ("bf16", 8, 7), ("f16", 5, 10)]
    for i, (name, exponent, fraction) in enumerate(kinds):
        y, unit = 46 + 40 * i, 7.6
        p.text(24, y + 22, name, 16, mono=True)
        x = 84
        for bits, fill, words in [(1, RED, ""), (exponent, ORANGE, str(exponent)), (fraction, BLUE, str(fraction))]:
            p.box(x, y, bits * unit, 32, words, fill, size=15)
            x += bits * unit
    for x, fill, words in [(330, RED, "sign"), (398, ORANGE, "exponent: range"), (398, BLUE, "fraction: digits")]:
        y = 162 if words != "fraction: digits" else 184
        p.box(x, y - 12, 16, 14, fill=fill)
        p.text(x + 22, y, words, 15, GREY)
    p.text(24, 232, "mixed precision", bold=True)
    boxes = [(24, "weights", "f32", BLUE), (170, "matmul", "bf16, sums f32", ORANGE), (330, "tanh", "bf16", ORANGE),
             (458, "loss", "f32", BLUE)]
    widths = [110, 136, 100, 118]
    for (x, name, kind, fill), width in zip(boxes, widths):
        p.box(x, 246, width, 56, name, fill, kind, mono=True)
    for a, b in [(134, 166), (306, 326), (430, 454)]:
        p.line([(a, 274), (b, 274)])
    p.text(24, 334, "Weights and gradients keep f32. Products and what follows take", 15, GREY)
    p.text(24, 356, "half the bytes. Sums, losses and normalisations are computed in f32.", 15, GREY)
    return p


def decision():
    rows = [("one backward call", "{.memory_budget = …}", "the planner decides"),
            ("a loop of many similar steps", "scan or while_loop", "states may go to disk"),
            ("a part that must keep nothing", "checkpoint(f, inputs)", "inside any program"),
            ("a batch that is too large", "Execution, .accumulation", "micro-batches"),
            ("layers, to decide one by one", "LayerCheckpointer", "keep, recompute, store"),
            ("16-bit numbers suffice", "precise(…), .precision", "half the bytes"),
            ("more than one process may take", "devices, pipelines, MPI", "divide the model")]
    p = Picture(66 + 66 * len(rows), "Choose a way to save memory: the first line that fits your program")
    p.text(24, 36, "My program is or has …", bold=True)
    p.text(330, 36, "… then use", bold=True)
    for i, (question, answer, note) in enumerate(rows):
        y = 50 + 66 * i
        p.box(24, y, 270, 50, question, BLUE, size=15)
        p.line([(298, y + 25), (324, y + 25)])
        p.box(330, y, 246, 50, answer, GREEN, note, size=15, mono=True)
        if i + 1 < len(rows):
            p.line([(159, y + 52), (159, y + 63)])
            p.text(170, y + 63, "no", 13, GREY)
    return p


PICTURES = [tensor, tape, laziness, lifetimes, budget, plans, determinism, threads, precision, decision]


def main():
    check = sys.argv[1] == "--check"
    folder = pathlib.Path(sys.argv[1 + check])
    wrong = 0
    for draw in PICTURES:
        path, svg = folder / f"{draw.__name__}.svg", draw().svg()
        if not check:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != svg:
            print(f"{path} is not what tools/draw_concepts.py draws; run it")
            wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
