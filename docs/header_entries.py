"""Public declarations of a header, with their `///` sentences, and the facts that the reference adds to them.

They rely on the style of the headers: comments come before declarations, and clang-format has placed the braces.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
EXAMPLES = ROOT / "docs/snippets/reference"
MOST_LINES_OF_STRUCT = 40
ONE_EXAMPLE = re.compile(r"^EXAMPLE\(([^)]*)\) \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
INTERNAL = re.compile(r"static constexpr Text text|gelu_tanh_factor|^using \w+ = List<|\bplace_of<|^using Neutral\b"
                      r"|PALIMPSEST_\w+\(")

# Functions that headers need for their templates, or that other parts of the library call.
HIDDEN = re.compile(
    r"(record_(unary|binary|comparison)|require_(sound|value|floating|axes|graph|position)|throw_(foreign|stopped)"
    r"|full_attributes|broadcast_access|number_like|binary_operation|binary|comparison|unary|unary_index|at_least"
    r"|exponential_below|softplus_of|gelu_of|gelu_tanh_\w+|(silu|mish)_(of|slope)"
    r"|gated|one_less_square|bounded_square|logistic_of|logistic_with_slope|gelu_slope|add_sizes|multiply_sizes|eigen_dtype"
    r"|eigen_shape|adopt|common_tape|checked_threads|is_controlled|visit_floating|visit_numeric|eager_of_execution"
    r"|\w+_adjoint|internal_check|same_line|append_fingerprint|check|Logistic|Parameters)")
# Declarations whose formula and cost are not those of the operation of their name.
OF_OTHERS = re.compile(r"clamp\(const Var& x, const Var& low|logit\(const Var& x, double|pow\(const IsVar auto& x, double"
                       r"|huber_loss\(|PadMode mode|batch_norm\(const Var& x, const Var& mean")
# The body of a function in one line, with the initializers of a constructor.
BODY = re.compile(r"(\)(?: const)?(?: noexcept)?)"
                  r"(?:\s+: (?:[\w:<>]+(?:\([^;]*?\)|\{[^;{}]*\})(?:,\s+)?)+?)? \{(?: .* )?\}(?:( )\s*(?=//)|$)", re.MULTILINE)
INITIALIZERS = re.compile(r"(\)(?: noexcept)?)\s+: \w+_?[({](?:(?!\n\s*\};).)*;\Z", re.DOTALL)
FORWARD = re.compile(r"(class|struct|enum class) \w+( : [\w:]+)?;$")
DESTRUCTOR = re.compile(r"(virtual )?~\w+\(\)")
COPY_OR_MOVE = re.compile(r"(.*\boperator=\(|(\w+)\((const )?\2&&?( \w+)?\)).*;$")
# The definition in one line of a member that its class declares.
MEMBER = re.compile(r"inline [^()]*\w+::\w+\(.*\}$")
SECTION = re.compile(r"// (\S.*?) -{5,}$")
# After this section, or instead of it, come definitions that have been declared above.
DEFINITIONS = "Definitions of templates"
# Members of tapes for code that reads, copies or extends what was recorded.
LISTS = {"internals of tapes": (
    "Which values are present", "copy_nodes", "accompany", "share_streams", "begins", "identity", "has_kept",
    "expire_handles", "WithGradient", "is_temporary", "is_program", "require_fixed", "recording", "here", "placeholder",
    "fresh_stream", "in_use")}
DIRECTIVE = re.compile(r"\{header\} (\S+)\n((?::\w+: .*\n)*)")


def indent_of(line):
    return len(line) - len(line.lstrip())


def end_of_block(lines, at, indent):
    """The line that closes the block which line `at` opens, of a declaration that begins at `indent`."""
    return next((i for i in range(at + 1, len(lines)) if lines[i].strip() and indent_of(lines[i]) <= indent
                 and lines[i].lstrip().startswith("}")), len(lines) - 1)


def opens_type(code):
    return re.match(r"\s*(template .*)?(class|struct|enum class)\b", code) and "(" not in code.split("{")[0]


def markdown_of(comment):
    """Lines of a comment as Markdown. Indented lines are code. Symbols of Markdown in sentences mean themselves."""
    made, fence = [], []

    def close():
        if fence:
            language = "cpp" if any(line.rstrip().endswith((";", "{")) for line in fence) else "text"
            made.extend(["", "```" + language, *dedented("\n".join(fence)).splitlines(), "```", ""])
            fence.clear()

    for line in comment:
        if line.startswith("    ") and (fence or not made or not made[-1]):
            fence.append(line)
            continue
        if not line.strip() and fence:
            fence.append("")
            continue
        close()
        parts = re.split(r"(`[^`]*`)", line)
        made.append("".join(part if part.startswith("`") else re.sub(r"(?<!\\)([<_*])", r"\\\1", part)
                            for part in parts))
    close()
    return joined_lists(made)


def joined_lists(lines):
    """Text in which lists and tables are paragraphs of their own."""
    made = []
    for i, line in enumerate(lines):
        begins = line.startswith("- ") or line.startswith(("| ", "|-")) and not lines[i - 1].startswith("|")
        if begins and made and made[-1].strip():
            made.append("")
        made.append(line)
    return "\n".join(made).strip("\n")


def entries_of(text):
    """Prose, code and section, in the order of the header. Prose may be empty, code be nothing but its indent."""
    start = text.index("namespace palimpsest")
    lines = text[start:].splitlines()
    comment, code, section, indent = [], [], "", 0
    above = [line[4:] for line in text[:start].splitlines() if line.startswith("///")]
    if above:
        yield markdown_of(above), "", section
    at = 1

    def take():
        nonlocal comment, code
        entry = markdown_of(comment), "\n".join(code) or " " * indent, section
        comment, code = [], []
        return entry

    while at < len(lines):
        line, bare = lines[at], lines[at].strip()
        title = SECTION.match(bare)
        if title:
            if code or comment:
                yield take()
            section = title[1]
            if section == DEFINITIONS:
                return
            if indent_of(line) > 0:
                yield f"**{section}**", " " * indent_of(line), section
        elif bare.startswith("// NOLINT") and code and is_begun(code[-1]):
            pass
        elif bare.startswith("//"):
            if code:
                yield take()
            if not bare.startswith(("// NOLINT", "// --")):
                indent = indent_of(line)
                comment.append(bare.lstrip("/").removeprefix(" ").rstrip())
        elif bare in ("public:", "") or bare.startswith(("#", "}", "namespace ", "friend ", "extern template")) \
                or FORWARD.match(bare) or MEMBER.match(bare):
            if code or comment:  # a comment before an empty line is about several declarations
                yield take()
            if bare == "namespace detail {":
                at = end_of_block(lines, at, indent_of(line))
        elif bare in ("private:", "protected:"):
            comment, code, section = [], [], ""
            at = next(i for i in range(at, len(lines)) if indent_of(lines[i]) <= indent_of(line)
                      and lines[i].strip() in ("};", "public:"))
        elif DESTRUCTOR.match(bare) and (code or not comment):
            at = end_of_block(lines, at, indent_of(line)) if bare.endswith("{") else at
        else:
            line = re.sub(r"\s*// NOLINT.*", "", line)
            bare = line.strip()
            if (code and COPY_OR_MOVE.match(bare) and not COPY_OR_MOVE.match(code[-1].strip())
                    and not is_begun(code[-1])):
                yield take()
            code.append(line)
            if bare.endswith("{"):
                end = end_of_block(lines, at, indent_of(code[0]))
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


def is_begun(line):
    """Whether a line is the begin of a declaration: a list of template parameters or a constraint."""
    return re.match(r"\s*(template <|requires\b)", line) and not line.endswith((";", "}"))


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
    if re.match(r"\s*(using|extern|concept|inline constexpr)\b", first) or "operator" in first or "= delete" in first:
        return ""
    of_function = re.search(r"(?<![\w~:])(\w+)\(", re.sub(r"\([^()]*\)>", "", first).replace("decltype(auto)", ""))
    return of_function[1] if of_function else ""


def title_of(code):
    """The name of a declaration that needs no example: of a type, a concept or a constant."""
    found = re.search(r"^(?:using|concept) (\w+)|^(?:extern |inline )?(?:const|constexpr)\b[^=(;]*?(\w+)(?: =|;|\{)",
                      re.sub(r"^template <.*>\n", "", code.strip(), flags=re.MULTILINE), re.MULTILINE)
    return found and (found[1] or found[2]) or ""


def is_chosen(names, scope, section, only, without):
    """Whether the options of the directive show an entry, which may be in classes."""
    own = {section, *scope, *names, *(name.split("::")[-1] for name in names)}
    return not own & set(without) and (not only or bool(own & set(only)))


def named_entries(text, only=(), without=()):
    """Names, prose and code. The name of a member begins with that of its class."""
    text = re.sub(r"^namespace ((?:palimpsest::)?)detail \{$.*?^\}  // namespace \1detail$",
                  lambda found: "namespace palimpsest {" if found[1] else "", text, flags=re.MULTILINE | re.DOTALL)
    classes, pending, has_hidden = [], [], False
    hides = "namespace nn" not in text
    for prose, code, section in entries_of(text):
        indent = indent_of(code) if code.strip() else len(code)
        classes = [(at, of_class) for at, of_class in classes if at < indent]
        scope = [of_class for _, of_class in classes]
        names = [name for name in map(name_in, statements(code)) if name]
        if names and not scope and hides and all(map(HIDDEN.fullmatch, names)):
            has_hidden = True
            continue
        names = ["::".join(scope + [name]) for name in names]
        if names and opens_type(code) and code.rstrip().endswith(";") and "{" not in code:
            classes.append((indent, name_in(code)))
        if not is_chosen(names, scope, section, only, without):
            continue
        if code.strip():
            yield from [*pending, (names, prose, code)]
            pending = []
        else:  # about the declarations that follow, of which some must be shown
            pending = [*([] if has_hidden else pending), (names, prose, code)]
        has_hidden = False
    yield from pending


def directives_of(text):
    """The header, `only` and `without` of each directive of a page."""
    for header, given in DIRECTIVE.findall(text):
        options = dict(re.findall(r"^:(\w+): (.*)$", given, re.MULTILINE))
        yield header, listed(options.get("only")), listed(options.get("without"))


def listed(option):
    """The names that an option lists."""
    return LISTS.get(option) or tuple(name.strip() for name in (option or "").split(",") if name.strip())


def functions_of(text, only=(), without=()):
    """Names of the functions of a header, except for constructors."""
    for names, _, code in named_entries(text, only, without):
        for name, statement in zip(names, filter(name_in, statements(code))):
            *scope, last = name.split("::")
            if not opens_type(statement) and (not scope or scope[-1] != last):
                yield name


def with_helpers(example, helpers):
    """An example after the definitions that it uses of those that the examples of its file share."""
    used = [code for name, code in helpers.items()
            if re.search(rf"\b{name}\b", example) and not re.search(rf"[>\w] {name}(\{{| =|;)", example)]
    return "\n".join([*used, example])


def examples_of(page, of_first=False):
    """The examples of a page of the reference, by each of their names, or by the first one."""
    examples = {}
    for path in (EXAMPLES / (page.replace("-", "_") + kind + ".cpp") for kind in ("", "_ranks")):
        code = path.read_text(encoding="utf-8") if path.exists() else ""
        found = ONE_EXAMPLE.findall(code)
        blocks = re.split(r"\n\n|\n(?=const )", ONE_EXAMPLE.sub("", code))
        helpers = {re.search(r"^[^/].*?(\w+)(?=\(|\{| :)", block, re.MULTILINE)[1]: block.strip() for block in blocks
                   if re.match(r"\s*(///|const )", block)}
        for names, body in found:
            example = with_helpers(dedented(body.strip("\n")), helpers)
            for name in names.split(",")[:1 if of_first else None]:
                examples[name.strip()] = example
    return examples


def formulas():
    """Value and derivative of an operation, by name, from docs/operations.md."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \| .*? \|$", text.split("\n## ")[0], re.MULTILINE)
    return {name: formula.replace(r"\|", "|") for name, formula in rows}


def costs_of_operations():
    """Sentences about the costs of functions, by name, from docs/operations.md."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8").partition("\n## Cost\n")[2]
    found = {}
    rows = re.findall(r"^\| (`[^|]*`) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    for names, operands, work, backward, reads in rows:
        of = f" of {operands}" if operands else ""
        work, backward = (text.replace("none", "no arithmetic") for text in (work, backward))
        is_work = not work.startswith(("moves ", "no "))
        sentence = f"Cost{of}: " + (f"about {work} floating-point operations" if is_work else work)
        if backward:
            sentence += f"; {backward} in the backward part, which reads {reads}"
        for name in re.findall(r"`(\w+)`", names):
            found[name] = sentence + "."
    return found


def costs():
    """Sentences about the costs of functions, by name. Those of elementwise ones are from their definitions."""
    found = costs_of_operations()
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


def shown(code):
    """A declaration as the reference shows it, without bodies."""
    code = re.sub(r"^ *// NOLINT.*\n| *// NOLINT.*", "", code, flags=re.MULTILINE)
    return re.sub(r"///<?", "//", INITIALIZERS.sub(r"\1;", BODY.sub(r"\1;\2\2", dedented(code))))
