"""A Sphinx directive that shows the public declarations of a header, with their `///` sentences.

It relies on the style of the headers: comments come before declarations, and clang-format has placed the braces. A
declaration is followed by the example of its name, from docs/snippets/reference/, and by its row in docs/operations.md.
"""
import pathlib
import re

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

ROOT = pathlib.Path(__file__).parent.parent
EXAMPLES = ROOT / "docs/snippets/reference"
MOST_LINES_OF_STRUCT = 40
INTERNAL = re.compile(r"static constexpr Text text|^using \w+ = List<|\bplace_of<|^using Neutral\b|PALIMPSEST_\w+\(")

# Functions that headers need for their templates, or that other parts of the library call.
HIDDEN = re.compile(
    r"(record_(unary|binary|comparison)|require_(sound|value|floating|axes|graph)|throw_(foreign|stopped)"
    r"|full_attributes|broadcast_access|number_like|binary_operation|binary|comparison|unary|unary_index|at_least"
    r"|gated|one_less_square|logistic_of|logistic_with_slope|gelu_slope|add_sizes|multiply_sizes|eigen_dtype"
    r"|eigen_shape|adopt|common_tape|checked_threads|is_controlled|visit_floating|visit_numeric|eager_of_execution"
    r"|internal_check|same_line|append_fingerprint|check|Logistic|Parameters)")
# The body of a function in one line, with the initializers of a constructor.
BODY = re.compile(r"(\)(?: const)?(?: noexcept)?)(?: : \S[^{}]*(?:\{[^{}]*\}[^{}]*)*)? \{(?: .* )?\}$", re.MULTILINE)
FORWARD = re.compile(r"(class|struct) \w+;$")


def indent_of(line):
    return len(line) - len(line.lstrip())


def end_of_block(lines, at):
    """The line that closes the block which line `at` opens."""
    indent = indent_of(lines[at])
    return next((i for i in range(at + 1, len(lines)) if lines[i].strip() and indent_of(lines[i]) <= indent
                 and lines[i].lstrip().startswith("}")), len(lines) - 1)


def opens_type(code):
    return re.match(r"\s*(template .*)?(class|struct|enum class)\b", code) and "(" not in code.split("{")[0]


def entries_of(text):
    """Pairs of prose and code, in the order of the header. Either may be empty."""
    start = text.index("namespace palimpsest")
    lines = text[start:].splitlines()
    comment, code = [], []
    above = [line.lstrip("/").strip() for line in text[:start].splitlines() if line.startswith("///")]
    if above:
        yield " ".join(line or " " for line in above).replace("  ", "\n\n"), ""
    at = 1

    def take():
        nonlocal comment, code
        entry = " ".join(comment).replace("  ", "\n\n"), "\n".join(code)
        comment, code = [], []
        return entry

    while at < len(lines):
        line, bare = lines[at], lines[at].strip()
        if bare.startswith("//"):
            if code:
                yield take()
            if not bare.startswith(("// NOLINT", "// --")):
                words = bare.lstrip("/").strip()
                comment.append("\n" + words if words.startswith("- ") else words or " ")
        elif bare in ("public:", "") or bare.startswith(("#", "}", "namespace ", "friend ")) or FORWARD.match(bare):
            if code:
                yield take()
            if bare == "namespace detail {":
                at = end_of_block(lines, at)
        elif bare in ("private:", "protected:"):
            comment, code = [], []
            closes = (i for i in range(at, len(lines)) if lines[i].strip() == "};")
            at = next(i for i in closes if indent_of(lines[i]) <= indent_of(line))
        else:
            code.append(line)
            if bare.endswith("{"):
                end = end_of_block(lines, at)
                whole = "\n".join(code)
                body = "\n".join(lines[at:end])
                is_short = end - at <= MOST_LINES_OF_STRUCT and "private:" not in body
                if opens_type(whole) and INTERNAL.search(body):
                    comment, code = [], []
                    at = end + 1
                    continue
                if opens_type(whole) and is_short:
                    code += lines[at + 1:end + 1]
                    at = end
                else:
                    code[-1] = line.rstrip(" {") + ";"
                    if not opens_type(whole):
                        at = end
                yield take()
            elif bare.endswith(";") and INTERNAL.search("\n".join(code)):
                comment, code = [], []
        at += 1


def statements(code):
    """The declarations of an entry, which may have several."""
    found, lines = [], []
    base = indent_of(code)
    for line in code.splitlines():
        lines.append(line)
        if indent_of(line) == base and line.rstrip().endswith("}") or line.rstrip().endswith(";") and (
                "{" not in lines[0] or indent_of(line) == base):
            found.append("\n".join(lines))
            lines = []
    return found + (["\n".join(lines)] if lines else [])


def name_in(code):
    """The function or type that a declaration declares, without its class; empty for others."""
    first = re.sub(r"^\s*(template <.*>|requires\(.*\))\n", "", code, flags=re.MULTILINE)
    of_type = re.match(r"\s*(?:class|struct|enum class)\s+(?:\[\[\w+\]\]\s+)?([\w:]+)", first)
    if of_type:
        return of_type[1]
    if re.match(r"\s*(using|extern|inline constexpr)\b", first) or "operator" in first or "= delete" in first:
        return ""
    of_function = re.search(r"(?<![\w~:])(\w+)\(", re.sub(r"\([^()]*\)>", "", first).replace("decltype(auto)", ""))
    return of_function[1] if of_function else ""


def named_entries(text):
    """Triples of names, prose and code. The name of a member begins with that of its class."""
    text = re.sub(r"^namespace detail \{$.*?^\}  // namespace detail$", "", text, flags=re.MULTILINE | re.DOTALL)
    classes = []
    hides = "namespace nn" not in text
    for prose, code in entries_of(text):
        indent = indent_of(code) if code.strip() else 0
        classes = [(at, of_class) for at, of_class in classes if at < indent or not code.strip()]
        scope = [of_class for _, of_class in classes]
        names = [name for name in map(name_in, statements(code)) if name]
        if names and not scope and hides and all(map(HIDDEN.fullmatch, names)):
            continue
        names = ["::".join(scope + [name]) for name in names]
        if names and opens_type(code) and code.rstrip().endswith(";") and "{" not in code:
            classes.append((indent, name_in(code)))
        yield names, prose, code


def functions_of(text):
    """Names of the functions of a header, except for constructors."""
    for names, _, code in named_entries(text):
        for name, statement in zip(names, filter(name_in, statements(code))):
            *scope, last = name.split("::")
            if not opens_type(statement) and (not scope or scope[-1] != last):
                yield name


def examples_of(page, of_first=False):
    """The examples of a page of the reference, by each of their names, or by the first one."""
    path = EXAMPLES / (page.replace("-", "_") + ".cpp")
    if not path.exists():
        return {}
    found = re.findall(r"^EXAMPLE\(([^)]*)\) \{\n(.*?)^\}$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    named = [([name.strip() for name in names.split(",")], dedented(code.strip("\n"))) for names, code in found]
    return {name: code for names, code in named for name in names[:1 if of_first else None]}


def formulas():
    """Value and derivative of an operation, by name, from docs/operations.md."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \| .*? \|$", text, re.MULTILINE)
    return {name: formula.replace(r"\|", "|") for name, formula in rows}


def costs():
    """Sentences about the cost of elementwise functions, by name, from their definitions."""
    found = {}
    for path in (ROOT / "autodiff/operations/functions").glob("*.h"):
        code = path.read_text(encoding="utf-8")
        for body in re.findall(r"^struct \w+ \{\n(.*?)^\};$", code, re.MULTILINE | re.DOTALL):
            text = re.search(r'Text text\{\s*"(\w+)".*?(?:,\s*([\d.]+))?\};', body, re.DOTALL)
            rules = re.findall(r" (?:adjoint|from_x|from_y|da|db)\(([^)]*)\)", body)
            if not text:
                continue
            reads = sorted({name for rule in rules for name in re.findall(r"& ([abxy])\b", rule)})
            flops = f"Cost: about {text[2] or 10} floating-point operations per element."
            kept = f" The backward part reads {' and '.join(reads)}." if reads else " The backward part reads nothing."
            found[text[1]] = flops + (kept if rules else "")
    return found


def dedented(code):
    lines = code.splitlines()
    indent = min((indent_of(line) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


class Header(Directive):
    required_arguments = 1

    def run(self):
        path = ROOT / self.arguments[0]
        for used in (path, *EXAMPLES.glob("*.cpp"), ROOT / "docs/operations.md", pathlib.Path(__file__)):
            self.state.document.settings.env.note_dependency(str(used))
        page = pathlib.Path(self.state.document.settings.env.docname).name
        made, examples, rows, sentences = [], examples_of(page, of_first=True), formulas(), costs()
        made.append(nodes.paragraph("", "", nodes.literal("", self.arguments[0], classes=["path"])))
        entries = list(named_entries(path.read_text(encoding="utf-8")))
        for i, (names, prose, code) in enumerate(entries):
            if prose.strip():
                holder = nodes.container()
                self.state.nested_parse(StringList(prose.replace("palimpsest::", "").splitlines()), 0, holder)
                made += holder.children
            if not code.strip():
                continue
            declaration = BODY.sub(r"\1;", dedented(code))
            made.append(nodes.literal_block(declaration, declaration, language="cpp"))
            later = {name for others, _, _ in entries[i + 1:] for name in others}  # overloads
            for name in dict.fromkeys(names):
                if name in later:
                    continue
                if name in rows:
                    formula = nodes.literal("", rows[name])
                    made.append(nodes.paragraph("", "", nodes.emphasis("", "Operation: "), formula))
                if name in sentences:
                    made.append(nodes.paragraph("", sentences[name]))
                if name in examples:
                    example = examples[name]
                    made.append(nodes.literal_block(example, example, language="cpp", classes=["example"]))
        return made


def setup(app):
    app.add_directive("header", Header)
    return {"parallel_read_safe": True}
