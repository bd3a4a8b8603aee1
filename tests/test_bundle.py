"""Modules that import each other become one text, in the order required by their imports."""

from __future__ import annotations

import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from mha_viz.browser import bundle
from tools.node import find_node


def write(folder: Path, **modules: str) -> Path:
    """Write modules with these names and texts; the path of the first."""
    paths = [folder / f"{name}.js" for name in modules]
    for path, source in zip(paths, modules.values(), strict=True):
        path.write_text(source, "utf-8")
    return paths[0]


def run(entry: Path) -> str:
    """What a joined text logs when node runs it."""
    done = _node("--input-type=module", "--eval", bundle.join_modules(entry))
    assert done.returncode == 0, done.stderr
    return done.stdout


def _node(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    node = find_node()
    assert node, "Node 20 or later was not found: pip install -r requirements-dev.txt"
    return subprocess.run([node, *arguments], capture_output=True, text=True, check=False)


def test_a_module_follows_what_it_imports_and_comes_once(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { right } from "./right.js";\nimport {\n  left,\n} from "./left.js";\n'
        "console.log(right, left);\n",
        left='import { base } from "./base.js";\nexport const left = base + "l";\n',
        right='import { base } from "./base.js";\nexport const right = base + "r";\n',
        base='console.log("once");\nexport const base = "b";\n',
    )
    assert run(entry) == "once\nbr bl\n"


def test_two_entries_share_what_both_import(tmp_path: Path) -> None:
    write(
        tmp_path,
        one='import { base } from "./base.js";\nexport const one = base;\n',
        other='import { base } from "./base.js";\nexport const other = base;\n',
        base="export const base = {};\n",
    )
    text = bundle.join_modules(tmp_path / "one.js", tmp_path / "other.js")
    assert text.count("const base = {};") == 1


def test_comments_and_indentation_are_left_out(tmp_path: Path) -> None:
    source = "/**\n * @param {string} a\n */\nfunction f(a) {\n  // why\n  return a; // how\n}\n"
    assert "{\nfunction f(a) {\nreturn a; // how\n}\nreturn {  };\n" in bundle.join_modules(
        write(tmp_path, entry=source)
    )


def test_what_a_module_imports_from_json_stands_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n  "b": "\\\\d"\n}\n', "utf-8")
    entry = write(tmp_path, entry='import A from "./a.json" with { type: "json" };\nconsole.log(A.b);\n')
    assert run(entry) == "\\d\n"


def test_a_comment_before_code_takes_none_of_it_along(tmp_path: Path) -> None:
    source = "/** @type {any} */ (a).b();\nkeep();\n/** @type {any} */\nconst c = 1;\n"
    left = "/** @type {any} */ (a).b();\nkeep();\nconst c = 1;\n"
    assert left in bundle.join_modules(write(tmp_path, entry=source))


@pytest.mark.parametrize("names", ["same", "same as another"])
def test_each_module_has_a_scope_of_its_own(tmp_path: Path, names: str) -> None:
    local = names.split()[-1]
    entry = write(
        tmp_path,
        entry=f'import {{ {names} }} from "./other.js";\nimport {{ f }} from "./f.js";\nconst inner = 1;\n'
        f"console.log(new {local}().inner(), inner, f());\n",
        other="const inner = 2;\nexport class same {\n  inner() {\n    return inner;\n  }\n}\n",
        f="let same = 3;\nexport function f() {\n  return same;\n}\n",
    )
    assert run(entry) == "2 1 3\n"


def test_every_kind_of_export_is_handed_on(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { C, a, f, g, h } from "./other.js";\nconsole.log(a, f(), typeof C, typeof g, ...h());\n',
        other="export const a = 1;\nexport function f() {\n  return 2;\n}\nexport class C {}\n"
        "export async function g() {\n  return 3;\n}\nexport function* h() {\n  yield 4;\n}\n",
    )
    assert run(entry) == "1 2 function function 4\n"


def test_the_default_export_of_a_component_can_be_called(tmp_path: Path) -> None:
    entry = write(tmp_path, entry="export default function (component) {\n  console.log(component);\n}\n")
    done = _node(
        "--input-type=module", "--eval", f'{bundle.join_modules(entry)}{bundle.name_constant(entry)}.default("c");'
    )
    assert (done.stdout, done.stderr) == ("c\n", "")


@pytest.mark.parametrize("statement", ["export let a = 1;", "export { a };", "export default a;", "export * from 'b';"])
def test_an_export_that_one_text_cannot_hand_on_is_refused(tmp_path: Path, statement: str) -> None:
    entry = write(tmp_path, entry=f"{statement}\n")
    with pytest.raises(ValueError, match=r"^entry\.js: “export .*” is not an export where a constant"):
        bundle.join_modules(entry)


def test_a_circle_is_refused_with_its_modules(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { a } from "./a.js";\n',
        a='import { b } from "./b.js";\nexport const a = 1;\n',
        b='import { a } from "./a.js";\nexport const b = 1;\n',
    )
    with pytest.raises(ValueError, match=r"in a circle .*: a\.js → b\.js → a\.js\."):
        bundle.join_modules(entry)


@pytest.mark.parametrize(
    "statement",
    [
        'import * as other from "./other.js";',
        'import other from "./other.js";',
        'import { a } from "somewhere";',
        'import "./other.js";',
    ],
)
def test_an_import_that_one_text_cannot_express_is_refused(tmp_path: Path, statement: str) -> None:
    entry = write(tmp_path, entry=f"{statement}\n", other="export const a = 1;\n")
    with pytest.raises(ValueError, match=r"^entry\.js: “import .* is not of the form import"):
        bundle.join_modules(entry)


PARSED = """
import { readFileSync } from "node:fs";
import { SourceTextModule } from "node:vm";
for (const file of process.argv.slice(1)) new SourceTextModule(readFileSync(file, "utf8"), { identifier: file });
"""


def test_each_component_is_one_module_that_node_can_read(tmp_path: Path) -> None:
    for component in bundle.COMPONENTS:
        (tmp_path / f"{component}.mjs").write_text(bundle.build_module(component), "utf-8")
        assert "\nimport " not in bundle.build_module(component)
    done = _node("--experimental-vm-modules", "--input-type=module", "--eval", PARSED, "--", *tmp_path.iterdir())
    assert done.returncode == 0, done.stderr


def test_the_components_are_those_that_have_a_folder() -> None:
    names = ("block", "compare", "explorer", "more", "player", "pointed", "reasons", "scheme", "search", "sentence")
    assert (*names, "tour") == bundle.COMPONENTS


def test_a_style_sheet_brings_what_it_imports_along(tmp_path: Path) -> None:
    (tmp_path / "base.css").write_text("p {\n  margin: 0;\n}\n", "utf-8")
    (tmp_path / "room").mkdir()
    sheet = tmp_path / "room" / "room.css"
    sheet.write_text('@import "../base.css";\nb {\n  color: red;\n}\n', "utf-8")
    assert bundle.join_styles(sheet) == "p {\n  margin: 0;\n}\nb {\n  color: red;\n}\n"


@pytest.mark.parametrize("component", bundle.COMPONENTS)
def test_a_component_imports_no_style_while_it_is_shown(component: str) -> None:
    assert "@import" not in bundle.build_style(component)


def test_explorer_and_compare_say_once_what_they_share() -> None:
    rules = {}
    for name in ("explorer", "compare"):
        sheet = (bundle.FOLDER / name / f"{name}.css").read_text("utf-8")
        rules[name] = {rule.strip() for rule in sheet.split("}\n") if rule.count("\n") > 2}
        assert bundle.build_style(name).count("clip-path: inset(50%)") == 1
    assert not {rule for rule in rules["explorer"] & rules["compare"] if not rule.startswith("@")}


@pytest.mark.parametrize("component", ["explorer", "compare"])
def test_a_page_that_stands_alone_calls_what_opens_it(component: str) -> None:
    text = bundle.build_standalone_script(component, "openAlone")
    assert text.endswith("$alone.openAlone($explorer_explorer.explorer);\n".replace("explorer", component))
    assert "import " not in text.replace("cannot import", "")


def test_every_style_sheet_of_the_pages_is_applied_by_one_or_sent_in_a_file() -> None:
    sheets = {path.stem for path in (bundle.FOLDER / "pages").glob("*.css")}
    app = bundle.FOLDER.with_name("app")
    sources = [path.read_text("utf-8") for path in app.rglob("*.py")]
    applied = {name for source in sources for name in re.findall(r'apply_style\("(\w+)"', source)}
    folders = (bundle.FOLDER.with_name("figures") / "files", app / "serving", bundle.FOLDER)
    files = [folder.rglob("*.py") for folder in folders]
    sent = {
        name
        for path in chain(*files)
        for name in re.findall(r"build_page_style\([\"'](\w+)[\"']", path.read_text("utf-8"))
    }
    assert sheets == applied | sent
    assert not applied & sent
    assert bundle.build_page_style("switch_off").startswith("@media (max-width: 1000px) {\n.stHorizontalBlock")


def test_no_module_takes_the_place_of_what_the_browser_offers_to_another(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { f } from "./other.js";\nconsole.log(f(), typeof queueMicrotask(() => {}));\n',
        other="function queueMicrotask() {\n  return 1;\n}\nexport const f = () => queueMicrotask();\n",
    )
    assert run(entry) == "1 undefined\n"
