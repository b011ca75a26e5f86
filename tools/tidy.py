#!/usr/bin/env python3
"""A test over the source text: layers, banned words, sizes, first lines, dead files, dead links.

usage: tidy.py ROOT          prints `file:line: message` and exits 1 if a rule is broken
       tidy.py --self-test   shows that every check fires on a bad sample
"""
import functools
import os
import re
import sys
from pathlib import Path, PurePosixPath

LINE_WIDTH, FILE_LINES_MAX = 100, 800
FUNCTION_LINES_NOTE, FUNCTION_LINES_MAX = 60, 80
# Functions and files that were too large before the rule, with the size they must not exceed:
# {"src/x/y.cpp": 850, "src/x/y.cpp:function": 90}. Sizes here only ever go down.
RATCHET = {}

# What every layer may include, and what each layer may include beside itself. `lib:` names a
# third-party library (.cpp files only). Every entry is a prefix of a path.
VOCABULARY = ["baton/result.hpp", "baton/types.hpp", "baton/engine.hpp"]
ALL_BELOW = ["baton/", "base/", "core/", "plan/", "wire/", "obs/", "engine/", "net/", "bootstrap/",
             "runtime/"]
LAYERS = {
    "src/base": [],
    "src/core": ["base/"],
    "src/plan": ["base/"],
    "src/wire": ["base/", "core/messages.hpp"],
    "src/obs": ["base/", "lib:spdlog", "lib:fmt"],
    "src/engine": ["base/", "plan/", "obs/", "baton/shared_memory.hpp", "lib:nlohmann"],
    "src/net": ["base/", "obs/", "lib:zmq", "lib:boost"],
    "src/bootstrap": ["base/", "net/", "obs/", "core/messages.hpp", "baton/boot", "lib:nlohmann"],
    "src/runtime": ALL_BELOW,
    "src/api": ALL_BELOW,
    "src/cli": ["baton/", "base/", "refengine/", "net/http_", "net/line_splitter.hpp",
                "bootstrap/", "obs/", "engine/faulty_engine.hpp", "lib:CLI", "lib:nlohmann",
                "lib:fmt"],
    "refengine": ["baton/", "lib:nlohmann", "lib:xxhash"],
    "include/baton": ["baton/"],
}
STD_ONLY = ("src/base", "src/core", "src/plan", "src/wire", "include/baton")  # no POSIX either
LIBRARIES = {"zmq.h": "zmq", "zmq.hpp": "zmq", "xxhash.h": "xxhash", **{name: name for name in (
    "spdlog", "fmt", "nlohmann", "boost", "CLI", "gtest", "gmock", "benchmark")}}

# (pattern, where it is banned, where it is allowed all the same, what to do instead)
CODE = ("src/", "include/", "refengine/", "tests/", "bench/")
PURE = ("src/core/", "src/plan/")
BANNED_IN_CODE = [
    (r"\bstd::(jthread|thread|this_thread)\b|<thread>", PURE, (), "runtime/ owns the threads"),
    (r"\bmutex\b", PURE, (), "the caller holds the one lock (runtime/node_runner.hpp)"),
    (r"\batomic\b", PURE, (), "plain values; runtime/ publishes them"),
    (r"\bunordered_\w+", PURE, (), "std::map or std::set: the order must not depend on a hash"),
    (r"\b(getenv|s?rand|random_device|mt19937\w*)\b", PURE, (), "an argument"),
    (r"<iostream>|\bw?printf\b|\bspdlog\b|\bBATON_LOG", PURE, (), "an action or a Result"),
    (r"::now\s*\(", CODE, ("src/runtime/clock.hpp", "src/net/", "src/engine/", "src/cli/", "tests/",
                           "src/bootstrap/client.cpp", "src/bootstrap/server.cpp",
                           "src/obs/log.cpp", "bench/"), "pass an Instant"),
    (r"\bsystem_clock\b", CODE, (), "baton::Clock, which never jumps"),
    (r"\bvolatile\b", CODE, ("src/engine/remote_write.cpp",), "std::atomic"),
    (r"\bstd::endl\b", CODE, (), r"'\n'"),
    (r"\busing\s+namespace\s+std\b", CODE, (), "full names"),
    (r"(?<![\w.])assert\s*\(", CODE, (), "BATON_ASSERT, which stays on"),
    (r"\bthrow\b", ("src/", "include/", "refengine/"), ("src/cli/",), "return a Result"),
    (r"\b(cout|cerr|f?printf)\b", ("src/",), ("src/cli/", "src/base/assert.cpp"), "BATON_LOG"),
]
# These are looked for in comments and texts too, in every file.
BANNED_ANYWHERE = [
    (r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", "TODO(#number), with an issue to it"),
    (r"(?<![\w.~-])/wo" r"rk/|(?<![\w/.-])sha" r"red/(spec|model|\w+\.md)",
     "a path inside the repository, or [spec n.n]"),
]
CPP, SCRIPTS, ROOT_FILES = (".cpp", ".hpp"), (".py", ".sh", ""), ("dev", "LICENSE")


LITERALS = re.compile(r'(?P<include>#\s*include\s*"[^"\n]*")|'
                      r'R"(?P<mark>[^(\s]*)\((?:.|\n)*?\)(?P=mark)"|//[^\n]*|/\*(?:.|\n)*?\*/|'
                      r'"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'')


@functools.lru_cache(maxsize=None)
def blank(text):
    """C++ with comments and literals blanked out; lines and include targets stay in place."""
    return LITERALS.sub(lambda m: m[0] if m["include"] else re.sub(r"[^\n]", " ", m[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def layer_of(path):
    return next((layer for layer in LAYERS if path.startswith(layer + "/")), None)


def check_includes(path, text, files):
    layer = layer_of(path)
    own = "" if layer is None else layer.split("/")[-1] + "/"
    for match in re.finditer(r'^\s*#\s*include\s*(["<])([^">]+)[">]', blank(text), re.M):
        line, quoted, target = line_of(text, match.start(2)), match[1] == '"', match[2]
        library = LIBRARIES.get(target.split("/")[0])
        if quoted and not resolve(path, target, files):
            yield line, f'"{target}" is no file of this project; use <> for others'
        if library and path.endswith(".hpp") and not path.startswith("tests/"):
            yield line, f"<{target}>: third-party headers belong into .cpp files"
        if layer is None:
            continue
        allowed = LAYERS[layer] + VOCABULARY + [own]
        if library and f"lib:{library}" not in allowed:
            yield line, f"{layer} may not use {library}: see LAYERS in tools/tidy.py"
        elif quoted and not target.startswith(tuple(allowed)):
            yield line, f"{layer} may not include {target}: see LAYERS in tools/tidy.py"
        elif not quoted and not library and "." in target and layer in STD_ONLY:
            yield line, f"{layer} may include only the C++ standard library, not <{target}>"


def resolve(path, target, files):
    roots = ("src", "include", "", "tests", str(PurePosixPath(path).parent))
    return next((p for p in (str(PurePosixPath(r) / target) for r in roots) if p in files), None)


def check_words(path, text):
    if path.endswith(CPP):
        code = blank(text)
        for pattern, where, but, instead in BANNED_IN_CODE:
            if path.startswith(where) and not path.startswith(but or ("\0",)):
                for match in re.finditer(pattern, code):
                    yield line_of(text, match.start()), f"`{match[0].strip()}`: use {instead}"
    for pattern, instead in BANNED_ANYWHERE:
        if path != "tools/tidy.py":
            for match in re.finditer(pattern, text):
                yield line_of(text, match.start()), f"`{match[0]}`: use {instead}"


def check_form(path, text):
    lines = text.split("\n")
    if path.endswith(CPP) and not re.match(r"// \S.*", lines[0]):
        yield 1, "the first line must be a comment that says what the file is for"
    if not path.endswith((".md", ".txt")) and PurePosixPath(path).suffix in SCRIPTS:
        opening = lines[1] if lines[0].startswith("#!") else lines[0]
        if not opening.startswith('"""' if path.endswith(".py") else "# "):
            yield 1, "a script must say what it is for right behind its first line"
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_WIDTH and (path.endswith(CPP + (".py", "Lists.txt")) or path == "dev"):
            yield number, f"{len(line)} columns; the limit is {LINE_WIDTH}"
        if re.search(r"\s$|\t", line):
            yield number, "a tab, a carriage return or a blank at the end of the line"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield len(lines), "a file ends with exactly one line end"


def functions(code):
    """(name, first line, lines) of every outermost C++ function body, by counting braces."""
    opened, inside, begin, visible = 0, None, 0, re.compile(r"\S")
    for match in re.finditer(r"[{};]|\n[ \t]*#(?:\\\n|[^\n])*", code):
        if match[0] == "{":
            head = re.sub(r"\b(template|requires)\b[^\n]*\n", "", code[begin:match.start()])
            named = re.search(r"([\w:~]+|operator\s*\S+)\s*\(", head)
            kind = re.search(r"\b(namespace|class|struct|enum|union)\b|=\s*$", head)
            if inside is None and named and not kind:
                name, inside, start = named[1], opened, visible.search(code, begin).start()
            opened += 1
        elif match[0] == "}":
            opened -= 1
            if inside is not None and opened == inside:
                inside = None
                if re.compile(r"\s*[,{]").match(code, match.end()):
                    begin = start  # it was a member's initialiser; the body is still to come
                    continue
                yield name, line_of(code, start), code.count("\n", start, match.start()) + 1
        begin = match.end()


def check_size(path, text, notes):
    lines = text.count("\n")
    if path.endswith(CPP + (".py",)) and lines > RATCHET.get(path, FILE_LINES_MAX):
        yield 1, f"{lines} lines; the limit is {RATCHET.get(path, FILE_LINES_MAX)}"
    for name, first, length in functions(blank(text)) if path.endswith(CPP) else ():
        limit = RATCHET.get(f"{path}:{name}", FUNCTION_LINES_MAX)
        if length > limit:
            yield first, f"{name} has {length} lines; the limit is {limit}"
        elif length > FUNCTION_LINES_NOTE:
            notes.append(f"{path}:{first}: note: {name} has {length} lines; aim at 30")


def check_dead(files):
    used = {resolve(path, target, files) for path, text in files.items()
            for target in re.findall(r'#\s*include\s*"([^"]+)"', text) if path.endswith(CPP)}
    cmake = files.get("tests/CMakeLists.txt", "")
    tests = [t for p, t in files.items() if p.startswith("tests/") and p.endswith(CPP)]
    for path in files:
        part = PurePosixPath(path)
        if path.endswith(".hpp") and path not in used:
            yield path, "nobody includes this header"
        if path.startswith("src/") and path.endswith(CPP) and str(part.parent) not in LAYERS:
            yield path, "not in the folder of a layer, so it is not built"
        if path.startswith("tests/") and path.endswith(".cpp"):
            built = rf"baton_tests\({part.parent.name}\b|{part.parent.name}/{re.escape(part.name)}"
            if not re.search(built, cmake):
                yield path, "tests/CMakeLists.txt builds neither this file nor its folder"
        if path.startswith(("tests/golden/", "tests/scenario/")):
            if not any(part.name in t or ("directory_iterator" in t and part.parent.name in t)
                       for t in tests):
                yield path, "no test names this file or lists its folder"


def check_links(path, text, files):
    for match in re.finditer(r"\]\(([^)#:\s]+)(#[^)]*)?\)|src=\"([^\":]+)\"", text):
        target = PurePosixPath(path).parent / (match[1] or match[3])
        name = os.path.normpath(target)
        if name not in files and not any(p.startswith(name + "/") for p in files):
            yield line_of(text, match.start()), f"{name} does not exist"


def check_tree(files, notes):
    for path, text in sorted(files.items()):
        found = [*check_words(path, text), *check_form(path, text), *check_size(path, text, notes)]
        if path.endswith(CPP):
            found += check_includes(path, text, files)
        if path.endswith(".md"):
            found += check_links(path, text, files)
        yield from (f"{path}:{line}: {message}" for line, message in sorted(found))
    yield from (f"{path}:1: {message}" for path, message in check_dead(files))


def read_tree(root):
    folders = ("src", "include", "refengine", "tests", "bench", "tools", "docs", ".ci", "cmake")
    paths = [p for folder in folders for p in (root / folder).rglob("*")] + [
        p for p in root.glob("*") if p.suffix in (".md", ".txt") or p.name in ROOT_FILES]
    wanted = CPP + (".py", ".sh", ".md", ".txt", ".json", ".jsonl", ".svg", "")
    files = {}
    for path in paths:
        name = path.relative_to(root).as_posix()
        if path.is_file() and path.suffix in wanted and "__pycache__" not in name:
            data = name.startswith(("tests/golden/", "refengine/data/")) or name == "LICENSE"
            files[name] = "# data\n" if data or path.suffix == ".svg" else path.read_text("utf-8")
    return files


GOOD = {
    "src/base/a.hpp": "// A.\n#pragma once\n", "src/net/b.hpp": '// B.\n#include "base/a.hpp"\n',
    "src/net/b.cpp": '// B.\n#include "net/b.hpp"\n\n#include <zmq.h>\n\nvoid f() {\n}\n',
    "tests/CMakeLists.txt": "# Tests.\nbaton_tests(core)\n",
    "tests/core/a_test.cpp": '// T.\nconst char* file = "tests/golden/g.txt";\n',
    "tests/golden/g.txt": "# data\n", "README.md": "[net](src/net) [b](src/net/b.cpp)\n",
}
LONG = "void f() {\n" + "  g();\n" * 79 + "}\n"
BAD = [  # (file, text, what must be said)
    ("src/core/x.cpp", '// X.\n#include "net/b.hpp"\n', "src/core may not include net/b.hpp"),
    ("src/wire/x.cpp", '// X.\n#include "core/y.hpp"\n', "src/wire may not include core/y.hpp"),
    ("src/base/x.cpp", "// X.\n#include <poll.h>\n", "only the C++ standard library"),
    ("src/net/x.cpp", "// X.\n#include <fmt/core.h>\n", "src/net may not use fmt"),
    ("refengine/x.cpp", '// X.\n#include "base/a.hpp"\n', "refengine may not include base/a.hpp"),
    ("src/net/b.hpp", "// B.\n#include <zmq.h>\n", "third-party headers belong into .cpp"),
    ("src/net/x.cpp", '// X.\n#include "net/none.hpp"\n', "is no file of this project"),
    ("src/core/x.cpp", "// X.\nstd::mutex m;\n", "`mutex`: use the caller"),
    ("src/core/x.cpp", "// X.\nauto t = Clock::now();\n", "`::now(`: use pass an Instant"),
    ("src/plan/x.cpp", "// X.\n#include <unordered_map>\n", "`unordered_map`: use std::map"),
    ("src/runtime/x.cpp", "// X.\nauto t = Clock::now();\n", "pass an Instant"),
    ("src/net/x.cpp", "// X.\nvolatile int x;\n", "`volatile`: use std::atomic"),
    ("src/net/x.cpp", "// X.\nvoid f() { throw 1; }\n", "return a Result"),
    ("src/net/x.cpp", "// X.\n// TO" "DO later\n", "TO" "DO(#number)"),
    ("README.md", "See /wo" "rk/main.\n", "a path inside the repository"),
    ("src/net/x.cpp", "#include <zmq.h>\n", "the first line must be a comment"),
    ("tools/x.py", "#!/usr/bin/env python3\nimport sys\n", "a script must say what it is for"),
    ("src/net/x.cpp", "// " + "x" * 98 + "\n", "101 columns"),
    ("src/net/x.cpp", "// X. \n", "a blank at the end"),
    ("src/net/x.cpp", "// X.\n\n", "exactly one line end"),
    ("src/net/x.cpp", "// X.\n" + LONG, "f has 81 lines"),
    ("src/net/x.cpp", "// X.\nclass C {\n  " + LONG + "};\n", "f has 81 lines"),
    ("src/net/x.cpp", "// X.\n" + "int x;\n" * 800, "801 lines"),
    ("src/net/x.hpp", "// X.\n", "nobody includes this header"),
    ("src/nut/x.cpp", "// X.\n", "not in the folder of a layer"),
    ("tests/support/x.cpp", "// X.\n", "builds neither this file"),
    ("tests/new/x.cpp", "// X.\n", "nor its folder"),
    ("tests/scenario/x.txt", "x\n", "no test names this file"),
    ("README.md", "[x](docs/none.md)\n", "docs/none.md does not exist"),
]


def self_test():
    quiet = '// X.\n// std::mutex, volatile\nconst char* a = "throw";\nint b = 1\'000;\n'
    missed = [f"good sample: {p}" for p in check_tree({**GOOD, "src/core/x.cpp": quiet}, [])]
    for path, text, expected in BAD:
        problems = list(check_tree({**GOOD, path: text}, []))
        if not any(p.startswith(path + ":") and expected in p for p in problems):
            missed.append(f"{path}: expected `{expected}`, got {problems}")
    return missed


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    root, notes = arguments[0], []
    problems = (self_test() if root == "--self-test"
                else list(check_tree(read_tree(Path(root)), notes)))
    print("\n".join(notes + problems + [f"tidy: {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
