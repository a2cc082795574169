"""check_quotes.py ROOT DOCUMENT...: checks that code blocks after `<!-- FILE -->` occur in that file.

Ignores spacing. Exits non-zero and prints every block that is missing from its file, and every document without quotes.
"""
import pathlib
import re
import sys

QUOTE = re.compile(r"^<!-- (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def squeezed(text):
    return " ".join(text.split())


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = 0
    for document in sys.argv[2:]:
        quotes = QUOTE.findall(pathlib.Path(document).read_text(encoding="utf-8"))
        if not quotes:
            print(f"{document}: quotes nothing")
            wrong += 1
        for file, code in quotes:
            if squeezed(code) not in squeezed((root / file).read_text(encoding="utf-8")):
                print(f"{document}: this is not in {file}:\n{code}")
                wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main() > 0)
