"""check_site.py ROOT: checks the links between documents, and the names in docs/find-a-name.md.

Every relative link must lead to a file, and to a heading of it where it has a `#`. Every name in the second column of
the table must be declared in a header. Exits non-zero and prints what is wrong.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LEAST_NAMES = 60


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


def check_names(root):
    headers = "\n".join(path.read_text(encoding="utf-8") for folder in ("autodiff", "checkpoint", "strategy", "data", "nn")
                        for path in sorted((root / folder).rglob("*.h")))
    table = root / "docs/find-a-name.md"
    rows = [line.split("|")[1:4] for line in table.read_text(encoding="utf-8").splitlines()
            if line.startswith("| ") and not line.startswith("| you look for")]
    if len(rows) < LEAST_NAMES:
        yield f"{table}: {len(rows)} rows, at least {LEAST_NAMES} are needed"
    for _, here, page in rows:
        if not LINK.search(page):
            yield f"{table}: no page for {here}"
        for name in re.findall(r"`(\w+)`", here):
            if not re.search(rf"\b{name}\b\s*[({{;:=]|(class|struct|using) {name}\b", headers):
                yield f"{table}: no header declares {name}"


def main():
    root = pathlib.Path(sys.argv[1])
    anchors = {}
    wrong = [problem for document in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
             for problem in check_links(document, anchors)]
    wrong += check_names(root)
    print(*wrong, sep="\n")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
