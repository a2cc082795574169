"""tensor_functions.py [--check] ROOT: writes the functions of tensors from the declarations of the functions of Vars.

It reads the headers in autodiff/operations/ that palimpsest.h includes, and writes in that folder:
- tensor_*.h and tensor_*.cpp: each function with a Tensor for each Var. A function that draws random numbers takes a
  seed instead of the tape, or before the tensors.
- mixed_*.h: each function of several Vars or of a list of them, for Vars and Tensors together.

With --check it writes nothing, and exits non-zero when a file is not up to date.
"""
import itertools
import pathlib
import re
import subprocess
import sys

FOLDER = "autodiff/operations/"
RANDOM_HEADER = FOLDER + "random.h"
WRITTEN = re.compile(FOLDER + r"(tensor|mixed)_\w+\.h")
INCLUDE = re.compile(rf'^#include "({FOLDER}[\w/]+\.h)"', re.MULTILINE)
# For tapes and adjoints only, or the same as a function of `Tensor`.
LEFT_OUT = {"identity", "matmul_sum", "number_like", "record_binary", "record_comparison", "softmax_adjoint",
            "stop_gradient"}
DECLARATION = re.compile(r"^(?:inline )?(auto|Var|std::vector<Var>|[A-Z]\w+) ([a-z]\w*)\(((?:[^;{]|\{\})*)\)(?: \{|;)",
                         re.MULTILINE)
# Attention with dropout draws random numbers, for which these functions take no seed.
LEFT_OUT_MEMBERS = {"dropout"}
STRUCT = re.compile(r"^struct (\w+) \{\n((?:  .*\n|\n)+)\};", re.MULTILINE)
MEMBERS = re.compile(r"([\w:<>]+) (\w+(?: = [\w:.{}]+)?(?:, \w+(?: = [\w:.{}]+)?)*)")
NOTE = "// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.\n"


def without_comments(text):
    return re.sub(r"//.*", "", text)


class Member:
    def __init__(self, type_, text):
        self.type = type_
        self.name, _, self.default = text.partition(" = ")


def members_of(body):
    """The members of a struct, or none if it has functions."""
    members = []
    for declaration in body.split(";")[:-1]:
        found = MEMBERS.fullmatch(" ".join(declaration.split()))
        if not found:
            return []
        members += [Member(found[1], text) for text in found[2].split(", ")]
    return members


def structs_of_vars(texts):
    """The members of each struct that has a Var or another such struct, by name."""
    structs = {}
    for text in texts:
        for name, body in STRUCT.findall(text):
            members = members_of(body)
            if any(member.type == "Var" or member.type in structs for member in members):
                structs[name] = members
    return structs


def split(parameters):
    """The parameters, separated by the commas that are not inside brackets."""
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "<({") - (character in ">)}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [" ".join(part.split()) for part in parts]


START_CPP = NOTE + """#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {
"""
START_MIXED = NOTE + """#pragma once

#include <initializer_list>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operations/constants.h"
INCLUDES#include "autodiff/operations/unary.h"

/// Functions of `Var`s and tensors together. Each use of a tensor makes it a constant on the tape.
namespace palimpsest PALIMPSEST_EXPORT {
"""


KINDS = {
    "binary": ("functions/binary_functions.h", "binary.h"),
    "reductions": ("elementwise.h", "reduce.h"),
    "sorting": ("sorting.h",),
    "shapes": ("construction.h", "index.h", "leaf.h", "shape.h"),
    "layers": ("convolution.h", "image.h", "normalization.h", "sequence.h"),
    "losses": ("loss.h",),
    "matrices": ("linalg.h", "products.h", "sparse.h"),
    "random": ("random.h",),
}
HEADER_OF_KIND = {"random": "random", "elementwise": "elementwise", "binary": "elementwise", "reductions": "functions", "sorting": "functions",
                  "shapes": "functions", "layers": "layers", "losses": "layers", "matrices": "layers"}


def kind_of(header):
    """The part of a file's name for the functions of a header."""
    name = header.removeprefix(FOLDER)
    return next((kind for kind, headers in KINDS.items() if name in headers), "elementwise")


class Parameter:
    def __init__(self, text):
        declared, _, self.default = text.partition(" = ")
        self.type, _, self.name = declared.rpartition(" ")
        self.is_value = self.type in ("const Var&", "const IsVar auto&", "const IsVarOrNumber auto&")
        self.may_be_number = self.type == "const IsVarOrNumber auto&"
        self.is_list = self.type in ("std::span<const Var>", "std::initializer_list<Var>")
        self.is_optional = self.is_value and self.default == "{}"
        self.struct = self.type.removeprefix("const ").removesuffix("&")

    def tensor_type(self, structs):
        if self.struct in structs:
            return f"const Tensor{self.struct}&"
        return "const Tensor&" if self.is_value else self.type.replace("Var", "Tensor")

    def as_number(self):
        return Parameter("double " + self.name)

    def declared(self, type_, with_default=True):
        return f"{type_} {self.name}" + (f" = {self.default}" if self.default and with_default else "")


class Function:
    def __init__(self, result, name, parameters, structs, is_random=False):
        self.result = "Var" if result == "auto" else result
        self.name = name
        self.is_random = is_random
        self.takes_tape = parameters[0].type == "Tape&"
        self.parameters = parameters[1:] if is_random and self.takes_tape else parameters
        parameters = self.parameters
        self.structs = structs
        self.values = [p for p in parameters if p.is_value or p.is_list]
        self.where = parameters[-1].name

    def is_wanted(self):
        types = [p.type for p in self.parameters]
        return (self.name not in LEFT_OUT and (self.values or self.is_random) and types[-1] == "Where" and
                not any("Tape" in t or "Located" in t or "RandomStream" in t for t in types) and
                self.result in ("Var", "std::vector<Var>", *self.structs))

    def with_number(self):
        """The function with a number for the parameter that may be one."""
        parameters = [p.as_number() if p.may_be_number else p for p in self.parameters]
        return Function(self.result, self.name, parameters, self.structs)

    # Calls are qualified, because std::equal takes a `Where` as an iterator.
    def arguments(self, on):
        return ", ".join((f"{on}.optional({p.name})" if p.is_optional else f"{on}({p.name})")
                         if p.is_value or p.is_list else p.name for p in self.parameters)

    def constants_of(self, struct, name):
        """A struct of Vars for a struct of tensors."""
        values = []
        for member in self.structs[struct]:
            if member.name in LEFT_OUT_MEMBERS:
                continue
            value = f"{name}.{member.name}"
            if member.type in self.structs:
                value = self.constants_of(member.type, value)
            elif member.type == "Var":
                value = f"on{'.optional' if member.default == '{}' else ''}({value})"
            values.append(f".{member.name} = {value}")
        return "{" + ", ".join(values) + "}"

    def values_of(self, struct, name):
        """The Vars of a struct."""
        values = []
        for member in self.structs[struct]:
            value = f"{name}.{member.name}"
            values += [value] if member.type == "Var" else self.values_of(member.type, value)
        return values

    def filled(self, struct, numbers):
        """A struct of tensors, from the next elements of `all`."""
        return "{" + ", ".join(f"all[{next(numbers)}]" if member.type == "Var" else self.filled(member.type, numbers)
                               for member in self.structs[struct]) + "}"

    def tensor_result(self):
        return "Tensor" + self.result if self.result in self.structs else self.result.replace("Var", "Tensor")

    def head(self, with_defaults):
        declared = ["RandomSeed seed"] if self.is_random else []
        declared += [p.declared(p.tensor_type(self.structs), with_defaults) for p in self.parameters]
        return f"{self.tensor_result()} {self.name}(" + ", ".join(declared) + ")"

    def definition(self):
        body = f'  Evaluation on("{self.name}", {self.where}{", seed.number" if self.is_random else ""});\n'
        given = [p for p in self.parameters if p.struct in self.structs]
        if len(self.values) + len(given) <= 1 and not given:
            tape = "on.tape(), " if self.is_random and self.takes_tape else ""
            call = f"palimpsest::{self.name}({tape}{self.arguments('on')})"
        else:
            # The order in which C++ evaluates arguments is not specified.
            for p in self.values:
                type_ = "std::vector<Var>" if p.is_list else "Var"
                body += f"  const {type_} on_{p.name} = on{'.optional' if p.is_optional else ''}({p.name});\n"
            for p in given:
                body += f"  const {p.struct} on_{p.name}{self.constants_of(p.struct, p.name)};\n"
            call = f"palimpsest::{self.name}(" + ", ".join("on_" + p.name if p in self.values + given else p.name
                                               for p in self.parameters) + ")"
        if self.result in self.structs:
            body += f"  const {self.result} made = {call};\n  const Var values[] = {{"
            body += ", ".join(self.values_of(self.result, "made")) + "};\n"
            body += "  const std::vector<Tensor> all = on.results(values);\n"
            body += f"  return {self.filled(self.result, itertools.count())};\n"
        elif self.result == "Var":
            body += f"  return on.result({call});\n"
        else:
            body += f"  return on.results({call});\n"
        return self.head(False) + " {\n" + body + "}\n"

    def mixed(self):
        letters = dict(zip([p.name for p in self.values], "ABCDEFGH"))
        typenames = ", ".join(f"IsValue {letter}" + (" = A" if p.is_optional else "")
                              for p, letter in zip(self.values, letters.values()))
        all_letters = ", ".join(letters.values())
        heads = ", ".join(p.declared(f"const {letters[p.name]}&" if p.is_value else p.type) for p in self.parameters)
        body = f'  const Constants on("{self.name}", {self.where}, {", ".join(letters)});\n'
        for p in self.values:
            body += f"  const Var on_{p.name} = on{'.optional' if p.is_optional else ''}({p.name});\n"
        call = ", ".join("on_" + p.name if p.is_value else p.name for p in self.parameters)
        return (f"template <{typenames}>\n  requires AreMixed<{all_letters}>\n{self.result} {self.name}({heads}) {{\n"
                f"{body}  return palimpsest::{self.name}({call});\n}}\n")

    def mixed_list(self):
        heads = ", ".join(p.declared("const VarOrTensor&" if p.is_value else p.type.replace("Var", "VarOrTensor"))
                          for p in self.parameters)
        names = ", ".join(p.name for p in self.values)
        body = f'  const Constants on("{self.name}", {self.where}, {names});\n'
        for p in self.values:
            body += f"  const {'std::vector<Var>' if p.is_list else 'Var'} on_{p.name} = on({p.name});\n"
        call = ", ".join("on_" + p.name if p in self.values else p.name for p in self.parameters)
        return f"inline {self.result} {self.name}({heads}) {{\n{body}  return palimpsest::{self.name}({call});\n}}\n"

    def can_mix(self):
        return len(self.values) > 1 and not any(p.is_list for p in self.values)

    def has_braces(self):
        return any(p.type == "std::initializer_list<Var>" for p in self.values)


def headers(root):
    """The headers of functions of Vars: those that palimpsest.h includes, and those that they include, in order."""
    found, unread = set(), ["palimpsest.h"]
    while unread:
        for header in INCLUDE.findall((root / unread.pop()).read_text(encoding="utf-8")):
            if header not in found and not WRITTEN.fullmatch(header):
                found.add(header)
                unread.append(header)
    return sorted(found, key=lambda header: (not header.startswith(FOLDER + "functions/"), header))


def read(root):
    """The structs of Vars that functions return, by name, and each header with its functions."""
    texts = {header: without_comments((root / header).read_text(encoding="utf-8")) for header in headers(root)}
    structs = structs_of_vars(texts.values())
    parts = []
    for header, text in texts.items():
        functions = [Function(result, name, [Parameter(p) for p in split(parameters)], structs, header == RANDOM_HEADER)
                     for result, name, parameters in DECLARATION.findall(text)]
        functions = [function for function in functions if function.is_wanted()]
        for function in functions:
            if any(p.type == "const auto&" for p in function.parameters):
                sys.exit(f"{header}: {function.name} takes a const auto&; write const IsVarOrNumber auto&")
        if functions:
            parts.append((header, functions))
    used = {name for _, functions in parts for function in functions
            for name in (function.result, *(p.struct for p in function.parameters))}
    used |= {member.type for name in used & set(structs) for member in structs[name]}
    return {name: members for name, members in structs.items() if name in used}, parts


def formatted(path, text):
    command = ["clang-format-19", "--assume-filename", str(path)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def write(root):
    """The text of each file."""
    structs, parts = read(root)
    includes = "".join(f'#include "{header}"\n' for header, _ in parts)
    tensor_start = NOTE + "#pragma once\n\n#include <initializer_list>\n#include <span>\n#include <vector>\n\n"
    tensor_start += '#include "autodiff/export.h"\n' + includes
    tensor_start += f'#include "{FOLDER}tensor_results.h"\n'
    tensor_start += '#include "autodiff/operations/unary.h"\n#include "autodiff/tensor.h"\n\n'
    tensor_start += """/// The functions of `Var`, for tensors. They compute at once, by the same kernels, and need no tape
/// of users. dtypes, broadcasting and errors are those of the functions of `Var`, which the named
/// headers document. Nothing is kept for derivatives, and no budget counts the memory. Functions that
/// compute nothing, such as `reshape`, return a tensor that shares the storage of their argument.
namespace palimpsest PALIMPSEST_EXPORT {
"""
    tensor_hs = {}
    tensor_cpps = {}
    mixed_hs = {}
    results_h = NOTE + """#pragma once

#include <cstdint>
#include <optional>

#include "autodiff/operations/sorting.h"
#include "autodiff/tensor.h"

/// Results of functions of tensors that return several, and options that have tensors.
namespace palimpsest {
"""
    for name, members in structs.items():
        without = [member.name for member in members if member.name in LEFT_OUT_MEMBERS]
        note = f" There is no {without[0]}, which draws random numbers." if without else ""
        results_h += f"\n/// `{name}` of tensors.{note}\nstruct Tensor{name} {{\n"
        for member in members:
            if member.name not in LEFT_OUT_MEMBERS:
                type_ = "Tensor" + member.type.removeprefix("Var") if member.type in (*structs, "Var") else member.type
                results_h += f"  {type_} {member.name}{' = ' + member.default if member.default else ''};\n"
        results_h += "};\n"
    for header, functions in parts:
        kind = kind_of(header)
        tensor_cpp = tensor_cpps.setdefault(f"tensor_{kind}.cpp", [])
        tensor_h = f"\n// {header}\n\n"
        for function in functions:
            forms = [function]
            if any(p.may_be_number for p in function.parameters):
                forms.append(function.with_number())
            for form in forms:
                tensor_h += form.head(True) + ";\n"
                tensor_cpp.append("\n" + form.definition())
        tensor_hs.setdefault(f"tensor_{HEADER_OF_KIND[kind]}.h", []).append(tensor_h)
        mixes = [function.mixed() for function in functions if function.can_mix() and not function.is_random]
        mixes += [function.mixed_list() for function in functions if function.has_braces()]
        if mixes:
            name = kind if kind == "matrices" else HEADER_OF_KIND[kind]
            mixed_h = mixed_hs.setdefault(f"mixed_{name}.h", [])
            mixed_h.append(f"\n// {header}\n")
            mixed_h.extend("\n" + text for text in mixes)
    end = "\n}  // namespace palimpsest\n"
    texts = {FOLDER + name: tensor_start + "".join(declarations) + end for name, declarations in tensor_hs.items()}
    texts[FOLDER + "tensor_results.h"] = results_h + end
    for name, definitions in tensor_cpps.items():
        kind = name.removeprefix("tensor_").removesuffix(".cpp")
        texts[FOLDER + name] = (START_CPP.replace("tensor_functions.h", f"tensor_{HEADER_OF_KIND[kind]}.h") +
                                "".join(definitions) + end)
    for name, definitions in mixed_hs.items():
        texts[FOLDER + name] = START_MIXED.replace("INCLUDES", includes) + "".join(definitions) + end
    return texts


def main():
    check = sys.argv[1] == "--check"
    root = pathlib.Path(sys.argv[-1])
    wrong = 0
    for path, text in write(root).items():
        text = formatted(root / path, text)
        if not check:
            (root / path).write_text(text, encoding="utf-8")
        elif (root / path).read_text(encoding="utf-8") != text:
            print(f"{path} is not up to date; run ./dev docs")
            wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main() > 0)
