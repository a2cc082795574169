"""A Sphinx directive that shows the public declarations of a header, with their `///` sentences.

It relies on the style of the headers: comments come before declarations, and clang-format has placed the braces.
"""
import pathlib
import re

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

ROOT = pathlib.Path(__file__).parent.parent
MOST_LINES_OF_STRUCT = 40


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
            if not bare.startswith(("// NOLINT", "// -")):
                comment.append(bare.lstrip("/").strip() or " ")
        elif bare in ("public:", "") or bare.startswith(("#", "}", "namespace ", "friend ")):
            if code:
                yield take()
            if bare == "namespace detail {":
                at = end_of_block(lines, at)
        elif bare == "private:":
            comment, code = [], []
            at = next(i for i in range(at, len(lines)) if lines[i].strip() == "};" and indent_of(lines[i]) < indent_of(line) + 1)
        else:
            code.append(line)
            if bare.endswith("{"):
                end = end_of_block(lines, at)
                whole = "\n".join(code)
                is_short = end - at <= MOST_LINES_OF_STRUCT and "private:" not in "\n".join(lines[at:end])
                if opens_type(whole) and is_short:
                    code += lines[at + 1:end + 1]
                    at = end
                elif opens_type(whole):
                    code[-1] = line.rstrip(" {") + ";"
                else:
                    code[-1] = line.rstrip(" {") + ";"
                    at = end
                yield take()
        at += 1


def dedented(code):
    lines = code.splitlines()
    indent = min((indent_of(line) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


class Header(Directive):
    required_arguments = 1

    def run(self):
        path = ROOT / self.arguments[0]
        self.state.document.settings.env.note_dependency(str(path))
        made = []
        for prose, code in entries_of(path.read_text(encoding="utf-8")):
            if prose.strip():
                holder = nodes.container()
                self.state.nested_parse(StringList(prose.replace("palimpsest::", "").splitlines()), 0, holder)
                made += holder.children
            if code.strip():
                block = nodes.literal_block(dedented(code), dedented(code), language="cpp")
                made.append(block)
        return made


def setup(app):
    app.add_directive("header", Header)
    return {"parallel_read_safe": True}
