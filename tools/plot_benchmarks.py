"""plot_benchmarks.py [--check] DOCUMENT [RESULT...]: draws the results of benchmark suites.

RESULT is a file bench/NAME.json of `./dev bench NAME`, with bench/NAME.claims.json next to it. Keeps what the page
shows in the folder with the document's name, for example docs/benchmarks/NAME.json. Then draws all results kept there, as
NAME.svg, and writes a table of each suite's claims into the document. With --check, exits non-zero if these differ from
the files.
"""
import html
import json
import pathlib
import re
import sys

COLORS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2"]
INK, GREY = "#1f2933", "#5b6770"
WIDTH = 640
TO_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def kept_of(path):
    """What is kept of a result: the machine, the least time of each benchmark, and the claims."""
    result = json.loads(path.read_text(encoding="utf-8"))
    context = result["context"]
    times = {}
    for run in result["benchmarks"]:
        if run.get("run_type") == "iteration":
            name = re.sub(r"/(real_time|manual_time|min_time:[\d.]+|repeats:\d+|iterations:\d+)", "", run["run_name"])
            seconds = run["real_time"] * TO_SECONDS[run["time_unit"]]
            times[name] = min(seconds, times.get(name, seconds))
    claims = json.loads(path.with_suffix(".claims.json").read_text(encoding="utf-8"))
    load = context.get("load_avg") or [0]
    machine = {"processor": context.get("processor", "unknown"), "threads": context["num_cpus"],
               "load": round(load[0], 1), "date": context["date"][:10]}
    return {"machine": machine, "seconds": times, "claims": claims}


def text(x, y, words, size=14, color=INK, anchor="start"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}">'
            f'{html.escape(words)}</text>')


def card(height, title, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, \'DejaVu Sans\', sans-serif" role="img">', f"<title>{html.escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#fdfdfc" stroke="#d5dbe1"/>',
        text(20, 30, title, 16), *parts, "</svg>", ""])


def budget_curves(seconds):
    """Curves of time over budget, where benchmarks are named MODEL/PERCENT. Empty if none are."""
    models = {}
    for name, time in seconds.items():
        model, _, percent = name.rpartition("/")
        if percent.isdigit() and f"{model}/100" in seconds and f"{model}/40" in seconds:
            models.setdefault(model, []).append((int(percent), time / seconds[f"{model}/100"]))
    if not models:
        return None
    most = max(1.5, max(y for points in models.values() for _, y in points)) * 1.05
    left, right, top, bottom = 60, WIDTH - 20, 50, 270
    x = lambda percent: left + (percent - 20) / 80 * (right - left)
    y = lambda ratio: bottom - ratio / most * (bottom - top)
    parts = []
    for ratio in [0.5 * i for i in range(int(most / 0.5) + 1)]:
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y(ratio):g}" y2="{y(ratio):g}" stroke="#e3e7eb"/>')
        parts.append(text(left - 8, y(ratio) + 5, f"{ratio:g}", 14, GREY, "end"))
    for percent in (20, 40, 60, 80, 100):
        parts.append(text(x(percent), bottom + 20, f"{percent} %", 14, GREY, "end" if percent == 100 else "middle"))
    for i, (model, points) in enumerate(sorted(models.items())):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{x(percent):g},{y(ratio):.1f}" for percent, ratio in sorted(points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for percent, ratio in points:
            parts.append(f'<circle cx="{x(percent):g}" cy="{y(ratio):.1f}" r="3.5" fill="{color}"/>')
        parts.append(f'<line x1="{left}" x2="{left + 22}" y1="{bottom + 48 + 22 * i}" y2="{bottom + 48 + 22 * i}" '
                     f'stroke="{color}" stroke-width="3"/>')
        parts.append(text(left + 30, bottom + 53 + 22 * i, model.replace("_", " ")))
    return card(bottom + 60 + 22 * len(models), "Time of a step by budget, relative to keeping everything", parts)


def bars(seconds):
    """A bar for the time of each benchmark, on a logarithmic scale."""
    import math

    rows = sorted(seconds.items(), key=lambda row: row[1])
    least, most = rows[0][1] / 2, rows[-1][1] * 2
    scale = lambda value: (WIDTH - 330) * math.log(value / least) / math.log(most / least)
    parts = []
    for i, (name, value) in enumerate(rows):
        top = 48 + 28 * i
        parts.append(text(230, top + 15, name.replace("_", " "), 14, INK, "end"))
        parts.append(f'<rect x="238" y="{top}" width="{scale(value):.1f}" height="20" rx="3" fill="{COLORS[0]}"/>')
        parts.append(text(244 + scale(value), top + 15, shown(value), 14, GREY))
    return card(64 + 28 * len(rows), "Time of each benchmark, logarithmic", parts)


def shown(seconds):
    for unit, factor in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= factor or unit == "ns":
            return f"{seconds / factor:.3g} {unit}"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def section(name, kept):
    machine = kept["machine"]
    lines = [f"## Suite `{name}`", "",
             f"{machine['processor']}, {machine['threads']} threads, {machine['date']}. Times are the least of several"
             " repetitions."]
    if machine["load"] > 1:
        lines.append(f"The load of the minute before was {machine['load']}: a build, or programs that disturb times.")
    lines += ["",
             f"![Results of the suite {name}](benchmarks/{name}.svg)", "",
             "| claim | target | measured | unit | |", "|---|---|---|---|---|"]
    for claim in kept["claims"]:
        measured = "-" if claim["measured"] is None else number(claim["measured"])
        holds = "holds" if claim["holds"] else "fails"
        lines.append(f"| {claim['claim']} | {number(claim['target'])} | {measured} | {claim['unit']} | {holds} |")
    return "\n".join(lines) + "\n"


def main():
    check = sys.argv[1] == "--check"
    document, *results = map(pathlib.Path, sys.argv[1 + check:])
    folder = document.with_suffix("")
    folder.mkdir(exist_ok=True)
    for path in results:
        text_of = json.dumps(kept_of(path), indent=1, ensure_ascii=False) + "\n"
        (folder / path.name).write_text(text_of, encoding="utf-8")
    files, sections = {}, []
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        files[path.with_suffix(".svg")] = budget_curves(kept["seconds"]) or bars(kept["seconds"])
        sections.append(section(path.stem, kept))
    before, mark, _ = document.read_text(encoding="utf-8").partition("<!-- results -->\n")
    files[document] = before + mark + "\n" + "\n".join(sections)
    wrong = [path for path, made in files.items() if not path.exists() or path.read_text(encoding="utf-8") != made]
    if check:
        print(*(f"{path} is not what tools/plot_benchmarks.py writes; run it" for path in wrong), sep="\n")
        return len(wrong) > 0
    for path in wrong:
        path.write_text(files[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
