"""check_site.py ROOT: checks the links between documents, and the names in them.

- Every relative link must lead to a file, and to a heading of it where it has a `#`.
- Every name in the second column of docs/find-a-name.md must be declared in a header.
- docs/pytorch-functions.md has 200 functions, of which at least 180 have a public function, and the others a reason.
- Every name that a public header declares must appear in a page.
- Every header that the reference shows must be installed.
- Every capitalized name in a declaration of the reference must be declared in a header that it shows.
- Sentences of the reference have whole tables, and no tag.
- Every name in the code of a page must occur in the sources.
- Every block of C++ in a page must be quoted from a file that is compiled (see check_quotes.py).

Exits non-zero and prints what is wrong.
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LEAST_NAMES = 60
# Headers that others include: the umbrellas, and those that users include in addition.
UMBRELLAS = ["palimpsest.h", "data/data.h", "nn/nn.h", "strategy/training/training.h", "autodiff/eigen.h",
             "autodiff/eigen_sparse.h", "autodiff/graph_view.h", "strategy/execution/choice/memory_forecast.h",
             "strategy/mpi/distributed_execution.h", "strategy/mpi/rank_error.h", "strategy/mpi/rank_world.h",
             "strategy/mpi/reverse_ranks.h", "strategy/explain/explanation.h"]
# Pages with names of other libraries, and such names elsewhere.
FOREIGN_PAGES = {"coming-from.md", "differences-from-pytorch.md", "compared.md", "find-a-name.md", "pytorch-functions.md"}
FOREIGN = re.compile(r"Approx|ConstantLR|find_package|OMPI_\w+|weight_ih|decoder|cases|complaints|checkpoint_"
                     r"|\w+_adjoint|num_batches_tracked")
# Names of Eigen and of the C library, and types that programs pass on without naming them.
UNDECLARED = {"DefaultOptions", "Dense", "DenseBase", "Eigen", "Engine", "FunctionOfNoFamily", "INT64_MAX", "InUse",
              "IsOfOneTape", "IsRowMajor", "IsVectorAtCompileTime", "NodeLabels", "PlansOfProgram", "RunScope",
              "SparseMatrixBase"}
FOLDERS = ["autodiff", "benchmarks", "checkpoint", "data", "docs", "examples", "nn", "packaging", "strategy", "tests",
           "tools"]
SOURCES = {".h", ".cpp", ".py", ".build", ".sh"}
FUNCTIONS = 200
LEAST_FUNCTIONS = 180


def slug(heading):
    """The anchor of a heading, as GitHub and MyST make it."""
    text = re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", ""))
    return text.replace(" ", "-")


def anchors_of(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return {slug(line.lstrip("#")) for line in text.splitlines() if line.startswith("#")}


def check_links(document, anchors):
    for target in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document.resolve()
        if not path.exists():
            yield f"{document}: {target} does not exist"
        elif anchor and path.suffix == ".md":
            if anchor not in anchors.setdefault(path, anchors_of(path)):
                yield f"{document}: {path.name} has no heading #{anchor}"


def headers_in(root):
    return [path.read_text(encoding="utf-8") for folder in ("autodiff", "checkpoint", "strategy", "data", "nn")
            for path in sorted((root / folder).rglob("*.h"))]


def rows_of(table, head):
    return [[cell.strip() for cell in line.split("|")[1:4]] for line in table.read_text(encoding="utf-8").splitlines()
            if line.startswith("| ") and not line.startswith("| " + head)]


def check_functions(root):
    """The table of PyTorch's functions: `PyTorch`, ours, notes."""
    public = "\n".join(re.sub(r"//.*", "", text) for text in headers_in(root) if "PALIMPSEST_EXPORT" in text)
    table = root / "docs/pytorch-functions.md"
    rows = rows_of(table, "PyTorch")
    ours = [here.strip("`") for _, here, _ in rows if here != "—"]
    if len({name for name, _, _ in rows}) != FUNCTIONS or len(rows) != FUNCTIONS:
        yield f"{table}: {len(rows)} rows; {FUNCTIONS} different functions are needed"
    if len(ours) < LEAST_FUNCTIONS or f"{len(ours)} of them exist" not in table.read_text(encoding="utf-8"):
        yield f"{table}: {len(ours)} functions exist; state this number, which is at least {LEAST_FUNCTIONS}"
    for name in ours:
        if not re.search(rf"^[^\n=]*[\w>&] {name}\(", public, re.MULTILINE):
            yield f"{table}: no public header declares the function {name}"
    for name, here, notes in rows:
        if here == "—" and not notes:
            yield f"{table}: {name} has neither a function nor a reason"


def check_names(root):
    headers = "\n".join(headers_in(root))
    pairs = re.findall(r"\b(\w+)\s*[({;:=]|(?:class|struct|using) (\w+)", headers)
    declared = {name for pair in pairs for name in pair}
    table = root / "docs/find-a-name.md"
    rows = rows_of(table, "you look for")
    if len(rows) < LEAST_NAMES:
        yield f"{table}: {len(rows)} rows, at least {LEAST_NAMES} are needed"
    for _, here, page in rows:
        if not LINK.search(page):
            yield f"{table}: no page for {here}"
        for name in re.findall(r"`(\w+)`", here):
            if name not in declared:
                yield f"{table}: no header declares {name}"


def check_public_names(root, pages):
    """Names that public headers declare must occur in a page, or in a header that a page shows."""
    sys.path.insert(0, str(root / "docs"))
    import header_entries

    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"\{header\} (\S+)", text))
    text += "\n".join((root / header).read_text(encoding="utf-8") for header in shown)
    words = set(re.findall(r"\w+", text))
    headers = subprocess.run([sys.executable, root / "packaging/public_headers.py", root, *UMBRELLAS], check=True,
                             text=True, stdout=subprocess.PIPE).stdout.split()
    for header in sorted(shown.difference(headers)):
        yield f"{header}: the reference shows it, but it is not installed"
    for header in headers:
        code = (root / header).read_text(encoding="utf-8")
        if header not in shown and "namespace palimpsest" in code:
            for name in header_entries.functions_of(code):
                if name.split("::")[-1] not in words:
                    yield f"{header}: {name} appears in no page"


def check_reference(root):
    """Types in declarations of the reference must be declared there. Its sentences must not have lost their form."""
    sys.path.insert(0, str(root / "docs"))
    import header_entries

    shown = [directive for page in sorted((root / "docs/reference").glob("*.md"))
             for directive in header_entries.directives_of(page.read_text(encoding="utf-8"))]
    texts = {header: (root / header).read_text(encoding="utf-8") for header, *_ in shown}
    operations, costs = header_entries.formulas(), header_entries.costs()
    for header, *chosen in shown:
        if header.startswith("autodiff/operations/"):
            for name in header_entries.functions_of(texts[header], *chosen):
                if name in operations and name not in costs:
                    yield f"{header}: the cost of {name} is in no sentence; add an example to docs/cost_examples.cpp"
    declared = set(UNDECLARED)
    for text in texts.values():
        text = re.sub(r"//.*", "", text)
        declared |= set(re.findall(r"\b(?:class|struct|concept|using)\s+(?:\[\[\w+\]\]\s+)?(?:\w+::)*(\w+)\s*(?:final\b|[:{=])",
                                   text))
    for header, *chosen in shown:
        of_templates = {name for list_ in re.findall(r"template <(.*)>$", texts[header], re.MULTILINE)
                        for name in re.findall(r"(\w+)(?=,|$| =)", list_)}
        for _, prose, code in header_entries.named_entries(texts[header], *chosen):
            code = re.sub(r'//.*|"[^"]*"', "", code)
            for name in sorted(set(re.findall(r"(?<![\w.:])[A-Z]\w+|(?<=palimpsest::)[A-Z]\w+", code))):
                if name not in declared | of_templates and not name.startswith("PALIMPSEST_"):
                    yield f"{header}: the reference does not declare {name}; show its header on a page"
            sentences = FENCE.sub("", prose)
            if re.search(r"(?<!\\)<", re.sub(r"`[^`]*`", "", sentences)):
                yield f"{header}: Markdown takes this for a tag: {sentences}"
            for table in re.findall(r"(?:^\|[ -].*\n?)+|^.*\|-{3}.*$", sentences, re.MULTILINE):
                if not re.match(r"\|.*\|\n\|[-|]+\|\n\|", table):
                    yield f"{header}: this is no whole table: {table}"


def check_mentioned_names(root, pages):
    """Names in the code of pages must occur in the sources."""
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SOURCES]
    paths += [root / name for name in ("dev", "meson.build", "meson_options.txt", "palimpsest.h")]
    known = {name for path in paths for name in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    for page in pages:
        if page.name in FOREIGN_PAGES:
            continue
        for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8"))):
            for name in re.findall(r"(?<![\w./-])[A-Za-z_]\w{2,}(?![\w/]*[./-]\w)", code):
                if name not in known and not FOREIGN.fullmatch(name):
                    yield f"{page}: `{code}`: nothing is called {name}"


def check_blocks(pages):
    """Blocks of C++ must be quoted from a file."""
    for page in pages:
        for before in re.findall(r"^(.*)\n```cpp$", page.read_text(encoding="utf-8"), re.MULTILINE):
            if not re.fullmatch(r"<!-- \S+ -->", before):
                yield f"{page}: a block of C++ after '{before}' is not quoted from a file"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = sorted((root / "docs").rglob("*.md"))
    anchors = {}
    wrong = [problem for document in [root / "README.md", *pages]
             for problem in check_links(document, anchors)]
    wrong += check_names(root)
    wrong += check_public_names(root, pages)
    wrong += check_reference(root)
    wrong += check_mentioned_names(root, pages)
    wrong += check_functions(root)
    wrong += check_blocks(pages)
    print(*wrong, sep="\n")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
