#!/usr/bin/env python3
"""Writes the public headers as users see them: palimpsest.h, and the others in a folder palimpsest/.

usage: export_headers.py ROOT FOLDER HEADER...
       export_headers.py --install ROOT INCLUDEDIR HEADER...    into the include folder of `meson install`

In the source tree headers include each other by their path from ROOT, such as "autodiff/tape.h". Here they become
<palimpsest/autodiff/tape.h>, so that no other library's folder of that name is in the way.
"""

import os
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "((?:autodiff|checkpoint|strategy|data|nn)/[^"]+)"', re.MULTILINE)


def export(root, folder, headers):
    """Writes what differs. Returns all paths."""
    paths, is_changed = [], False
    for name in [*headers, "palimpsest.h"]:
        target = folder / name if name == "palimpsest.h" else folder / "palimpsest" / name
        text = (root / name).read_text(encoding="utf-8")
        text = INCLUDE.sub(r"#include <palimpsest/\1>", text)
        target.parent.mkdir(parents=True, exist_ok=True)
        paths.append(target)
        # The build only knows palimpsest.h: it is written again whenever another one was.
        if not target.exists() or target.read_text(encoding="utf-8") != text or (is_changed and name == "palimpsest.h"):
            target.write_text(text, encoding="utf-8")
            is_changed = True
    return paths


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--install":
        _, root, includedir, *headers = arguments
        export(pathlib.Path(root), pathlib.Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"]) / includedir, headers)
    else:
        root, folder, *headers = arguments
        paths = export(pathlib.Path(root), pathlib.Path(folder), headers)
        for path in (pathlib.Path(folder) / "palimpsest").rglob("*.h"):
            if path not in paths:
                path.unlink()  # no longer public


if __name__ == "__main__":
    main()
