"""check_examples.py [--write] ROOT PROGRAM [RANKS]: checks the examples of the reference in docs/snippets/reference/.

A comment that begins with an arrow, after each `print(...)`, has what it prints; it must be what PROGRAM prints. RANKS
is the program of the files `*_ranks.cpp`, the examples for several processes, which need MPI. Every public function on
a page of docs/reference/ must have an example. With --write, writes the comments.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_COLUMNS = 100
OUTPUT = "// → "


def outputs_of(programs):
    """What each line of each file of examples printed. The programs run in an empty folder."""
    lines = collections.defaultdict(list)
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([program.resolve()], check=True, text=True, stdout=subprocess.PIPE, cwd=folder)
        for line in done.stdout.splitlines():
            place, _, text = line.partition("\t")
            file, _, number = place.partition(":")
            lines[file, int(number)].append(text)
    return lines


def with_outputs(path, outputs):
    """The text of a file of examples, with the outputs as comments, and problems with the comments that it has."""
    lines = path.read_text(encoding="utf-8").splitlines()
    made, wrong, at = [], [], 0
    while at < len(lines):
        in_one_line = re.match(r"(EXAMPLE\(.*\) \{) (print\(.*\);) \}$", lines[at])
        if in_one_line:
            expected = outputs[path.name, at + 1]
            made += [in_one_line[1], *(f"  {in_one_line[2]}  {OUTPUT}{text}" for text in expected), "}"]
            wrong.append(f"{path.name}:{at + 1}: the comment with the output is missing")
            at += 1
            continue
        if not re.search(r"\bprint\(", lines[at]) or lines[at].lstrip().startswith("//"):
            made.append(lines[at])
            at += 1
            continue
        first, statement = at, []
        while not statement or ";" not in statement[-1]:
            statement.append(lines[at])
            at += 1
        code, _, found = statement[-1].partition(OUTPUT)
        code, found = code.rstrip(), [found] if found else []
        while at < len(lines) and lines[at].lstrip().startswith(OUTPUT):
            found.append(lines[at].lstrip()[len(OUTPUT):])
            at += 1
        expected = [text for line in range(first, first + len(statement)) for text in outputs[path.name, line + 1]]
        if found != expected:
            wrong.append(f"{path.name}:{first + 1}: prints {expected}, but the comment has {found}")
        indent = " " * (len(statement[0]) - len(statement[0].lstrip()))
        fits = len(expected) == 1 and len(code) + len(OUTPUT) + len(expected[0]) + 2 <= MOST_COLUMNS
        if fits and not code.endswith("}"):
            made += statement[:-1] + [f"{code}  {OUTPUT}{expected[0]}"]
        else:
            made += statement[:-1] + [code] + [f"{indent}{OUTPUT}{text}" for text in expected]
    return "\n".join(made) + "\n", wrong


def without_example(root):
    """Public functions on pages of the reference that no example shows, and complaints about examples of nothing."""
    sys.path.insert(0, str(root / "docs"))
    import header_entries

    missing, nowhere = set(), []
    for page in sorted((root / "docs/reference").glob("*.md")):
        examples = header_entries.examples_of(page.stem)
        code_of = collections.defaultdict(str)
        for name, code in examples.items():
            code_of[name.split("::")[0]] += code
        declared = set()
        for header, *chosen in header_entries.directives_of(page.read_text(encoding="utf-8")):
            code = (root / header).read_text(encoding="utf-8")
            declared |= {name for names, _, _ in header_entries.named_entries(code, *chosen) for name in names}
            for name in header_entries.functions_of(code, *chosen):
                of_class, _, member = name.rpartition("::")
                is_shown = name in examples or of_class and re.search(
                    rf"(\.|->|::){member}(<[^>]*>)?\(", code_of[of_class.split("::")[0]])
                if not is_shown:
                    missing.add(f"{page.stem}/{name}")
        nowhere += [f"{page.stem}: no header declares {name}, the first name of an example"
                    for name in header_entries.examples_of(page.stem, of_first=True) if name not in declared]
    return sorted(missing), nowhere


def main():
    write = sys.argv[1] == "--write"
    root, *programs = map(pathlib.Path, sys.argv[1 + write:])
    folder = root / "docs/snippets/reference"
    outputs = outputs_of(programs)
    problems = []
    for path in sorted(folder.glob("*.cpp")):
        if path.stem.endswith("_ranks") and len(programs) == 1:
            continue
        text, wrong = with_outputs(path, outputs)
        if write:
            path.write_text(text, encoding="utf-8")
        problems += [problem for problem in wrong if not write or "prints []" in problem]
    missing, nowhere = without_example(root)
    problems += nowhere + [f"{name}: add an example to docs/snippets/reference/" for name in missing]
    print(*problems, sep="\n")
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())
