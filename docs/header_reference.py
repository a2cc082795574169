"""A Sphinx directive that shows the public declarations of a header, as header_entries.py finds them.

Each function or type has a heading. A declaration is followed by its sentences, by its row in docs/operations.md, and by
the example of its name, from docs/snippets/reference/.

Its options name members, sections of a class that end with dashes, or a list of `LISTS`: `:without:` leaves these out,
`:only:` all others.
"""
import pathlib

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from header_entries import (EXAMPLES, OF_OTHERS, ROOT, costs, examples_of, formulas, listed, named_entries, shown,
                            title_of)


class Header(Directive):
    required_arguments = 1
    option_spec = {"only": directives.unchanged, "without": directives.unchanged}

    def run(self):
        path = ROOT / self.arguments[0]
        for used in (path, *EXAMPLES.glob("*.cpp"), ROOT / "docs/operations.md",
                     *pathlib.Path(__file__).parent.glob("header_*.py")):
            self.state.document.settings.env.note_dependency(str(used))
        page = pathlib.Path(self.state.document.settings.env.docname).name
        self.examples = examples_of(page, of_first=True)
        # Other functions, such as initializers, have names of operations too.
        of_operations = self.arguments[0].startswith("autodiff/operations/")
        self.rows, self.sentences = (formulas(), costs()) if of_operations else ({}, {})
        self.made = [nodes.paragraph("", "", nodes.literal("", self.arguments[0], classes=["path"]))]
        section, title = None, ""
        only, without = listed(self.options.get("only")), listed(self.options.get("without"))
        entries = list(named_entries(path.read_text(encoding="utf-8"), only, without))
        for i, (names, prose, code) in enumerate(entries):
            if not code.strip():  # about several declarations
                if not code:
                    section, title = None, ""
                (self.made if section is None else section).extend(self.parsed(prose, "group"))
                continue
            of_entry = ", ".join(dict.fromkeys(name.split("::")[0] for name in names)) or title_of(shown(code))
            if of_entry and of_entry != title:
                section, title = self.section_of(of_entry), of_entry
                self.made.append(section)
            holder = self.made if section is None else section
            holder.append(nodes.literal_block(shown(code), shown(code), language="cpp"))
            holder += self.parsed(prose, "prose")
            later = {name for others, _, _ in entries[i + 1:] for name in others}  # overloads
            last = [name for name in dict.fromkeys(names) if name not in later]
            holder += self.notes_on(last, not OF_OTHERS.search(code))
        return self.made

    def section_of(self, title):
        """The section of one declaration, with a heading that the search finds."""
        section = nodes.section("", nodes.title("", "", nodes.Text(title)), classes=["entry"], names=[title.lower()])
        self.state.document.note_implicit_target(section, section)
        return section

    def parsed(self, prose, kind):
        if not prose.strip():
            return []
        holder = nodes.container(classes=[kind])
        self.state.nested_parse(StringList(prose.replace("palimpsest::", "").splitlines()), 0, holder)
        return [holder]

    def notes_on(self, names, is_operation):
        """Operations and costs of names that are declared together, if they are their own, and the examples."""
        for facts, kind in ((self.rows, nodes.literal), (self.sentences, nodes.inline)):
            known = [name for name in names if is_operation and name in facts]
            for fact in dict.fromkeys(facts[name] for name in known):
                of = [name for name in known if facts[name] == fact]
                paragraph = nodes.paragraph()
                if len(of) < len(names):  # not of all that are declared together
                    for name in of:
                        paragraph += [nodes.literal("", name), nodes.Text(", " if name != of[-1] else ": ")]
                elif kind is nodes.literal:
                    paragraph += nodes.emphasis("", "Operation: ")
                paragraph += kind("", fact)
                yield paragraph
        for name in names:
            if name in self.examples:
                example = self.examples[name]
                yield nodes.literal_block(example, example, language="cpp", classes=["example"])


def setup(app):
    app.add_directive("header", Header)
    return {"parallel_read_safe": True}
