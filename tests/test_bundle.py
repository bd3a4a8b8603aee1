"""Modules that import each other become one text, in the order required by their imports."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mha_viz.browser import bundle
from tools.node import find


def write(folder: Path, **modules: str) -> Path:
    """Write modules with these names and texts; the path of the first."""
    paths = [folder / f"{name}.js" for name in modules]
    for path, source in zip(paths, modules.values(), strict=True):
        path.write_text(source, "utf-8")
    return paths[0]


def test_a_module_follows_what_it_imports_and_comes_once(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { right } from "./right.js";\nimport {\n  left,\n} from "./left.js";\nlog(right, left);\n',
        left='import { base } from "./base.js";\nexport const left = base + "l";\n',
        right='import { base } from "./base.js";\nexport const right = base + "r";\n',
        base='export const base = "b";\n',
    )
    assert bundle.one_module(entry).split("\n") == [
        'const base = "b";',
        'const right = base + "r";',
        'const left = base + "l";',
        "log(right, left);",
        "",
    ]


def test_comments_and_indentation_are_left_out(tmp_path: Path) -> None:
    source = "/**\n * @param {string} a\n */\nfunction f(a) {\n  // why\n  return a; // how\n}\n"
    assert bundle.one_module(write(tmp_path, entry=source)) == "function f(a) {\nreturn a; // how\n}\n"


def test_what_a_module_imports_from_json_stands_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n  "b": "\\\\d"\n}\n', "utf-8")
    entry = write(tmp_path, entry='import A from "./a.json" with { type: "json" };\nlog(A.b);\n')
    assert bundle.one_module(entry) == 'const A = {"b":"\\\\d"};\nlog(A.b);\n'


def test_a_comment_before_code_takes_none_of_it_along(tmp_path: Path) -> None:
    source = "/** @type {any} */ (a).b();\nkeep();\n/** @type {any} */\nconst c = 1;\n"
    assert bundle.one_module(write(tmp_path, entry=source)) == "/** @type {any} */ (a).b();\nkeep();\nconst c = 1;\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("const same = 1;", "const same = 2;"),
        ("export function same() {}", "let same = 2;"),
        ("export async function same() {}", "export class same {}"),
        ("const { a, same } = f();", "const [same, b] = g();"),
        ("const {\n  a: same,\n} = f();", "function* same() {}"),
    ],
)
def test_equal_names_at_the_top_level_are_refused(tmp_path: Path, first: str, second: str) -> None:
    entry = write(tmp_path, entry=f'import {{ x }} from "./other.js";\n{first}\n', other=f"{second}\n")
    with pytest.raises(ValueError, match=r"^other\.js and entry\.js both declare “same” at their top level\. They"):
        bundle.one_module(entry)


def test_equal_names_inside_functions_are_no_matter(tmp_path: Path) -> None:
    body = "export function {}() {{\n  const same = 1;\n  return same;\n}}\n"
    entry = write(tmp_path, entry='import { g } from "./other.js";\n' + body.format("f"), other=body.format("g"))
    assert bundle.one_module(entry).count("const same = 1;") == 2


def test_a_circle_is_refused_with_its_modules(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { a } from "./a.js";\n',
        a='import { b } from "./b.js";\nexport const a = 1;\n',
        b='import { a } from "./a.js";\nexport const b = 1;\n',
    )
    with pytest.raises(ValueError, match=r"in a circle .*: a\.js → b\.js → a\.js\."):
        bundle.one_module(entry)


@pytest.mark.parametrize(
    "statement",
    [
        'import { a as b } from "./other.js";',
        'import * as other from "./other.js";',
        'import other from "./other.js";',
        'import { a } from "somewhere";',
        'import "./other.js";',
    ],
)
def test_an_import_that_one_text_cannot_express_is_refused(tmp_path: Path, statement: str) -> None:
    entry = write(tmp_path, entry=f"{statement}\n", other="export const a = 1;\n")
    with pytest.raises(ValueError, match=r"^entry\.js: “import .* is not of the form import"):
        bundle.one_module(entry)


PARSED = """
import { readFileSync } from "node:fs";
import { SourceTextModule } from "node:vm";
for (const file of process.argv.slice(1)) new SourceTextModule(readFileSync(file, "utf8"), { identifier: file });
"""


def test_each_component_is_one_module_that_node_can_read(tmp_path: Path) -> None:
    for component in bundle.COMPONENTS:
        (tmp_path / f"{component}.mjs").write_text(bundle.module(component), "utf-8")
        assert "\nimport " not in bundle.module(component)
    node = find()
    assert node, "Node 20 or later was not found: pip install -r requirements-dev.txt"
    command = [node, "--experimental-vm-modules", "--input-type=module", "--eval", PARSED, "--"]
    done = subprocess.run([*command, *tmp_path.iterdir()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_components_are_those_that_have_a_folder() -> None:
    names = ("block", "compare", "explorer", "player", "pointed", "scheme", "search", "sentence", "share", "tour")
    assert names == bundle.COMPONENTS


def test_a_style_sheet_brings_what_it_imports_along(tmp_path: Path) -> None:
    (tmp_path / "base.css").write_text("p {\n  margin: 0;\n}\n", "utf-8")
    (tmp_path / "room").mkdir()
    sheet = tmp_path / "room" / "room.css"
    sheet.write_text('@import "../base.css";\nb {\n  color: red;\n}\n', "utf-8")
    assert bundle.joined_style(sheet) == "p {\n  margin: 0;\n}\nb {\n  color: red;\n}\n"


@pytest.mark.parametrize("component", bundle.COMPONENTS)
def test_a_component_imports_no_style_while_it_is_shown(component: str) -> None:
    assert "@import" not in bundle.style(component)


def test_explorer_and_compare_say_once_what_they_share() -> None:
    rules = {}
    for name in ("explorer", "compare"):
        sheet = (bundle.FOLDER / name / f"{name}.css").read_text("utf-8")
        rules[name] = {rule.strip() for rule in sheet.split("}\n") if rule.count("\n") > 2}
        assert bundle.style(name).count("clip-path: inset(50%)") == 1
    assert not {rule for rule in rules["explorer"] & rules["compare"] if not rule.startswith("@")}


@pytest.mark.parametrize("component", ["explorer", "compare"])
def test_what_opens_a_page_that_stands_alone_fits_into_one_text_with_it(component: str) -> None:
    entries = [bundle.FOLDER / name for name in (f"{component}/{component}.js", "alone.js")]
    paths = {path for entry in entries for path in bundle._in_order(entry.resolve(), ())}
    bundle._refuse_equal_names({path: bundle._source(path) for path in paths})
    assert len(paths) > 5


def test_every_style_sheet_of_the_pages_is_applied_by_one() -> None:
    sheets = {path.stem for path in (bundle.FOLDER / "pages").glob("*.css")}
    sources = [path.read_text("utf-8") for path in bundle.FOLDER.with_name("ui").rglob("*.py")]
    assert sheets == {name for source in sources for name in re.findall(r'style\.apply\("(\w+)"', source)}
    assert bundle.page_style("switch_off").startswith("@media (max-width: 1000px) {\n.stHorizontalBlock")
