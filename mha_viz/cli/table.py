"""All commands with their options and examples, and the scripts by which a shell completes them."""

from __future__ import annotations

import argparse

from mha_viz.cli import (
    attention,
    decoder_heads,
    effect,
    example,
    figure,
    groups,
    listing,
    pairs,
    patch,
    profile,
    publish,
    recipes,
    replicate,
    report,
    search,
    serve,
    toy,
    used,
    why,
)
from mha_viz.cli.options import Command, Parser, parse_folder
from mha_viz.cli.termination import format_exit_codes
from mha_viz.models.getting import catalog
from mha_viz.version import __version__

SHELLS = ("bash", "zsh", "fish")
FILE_ARGUMENTS = frozenset(("out", "corpus", "pairs"))  # arguments that are file names
EXAMPLES = """examples:
  mha-viz serve --port 8600
  mha-viz models
  mha-viz models --format json
  mha-viz attention "The cat sat on the mat." --out heads.npz
  mha-viz attention "Who sat?" --pair "The cat sat." --words --out heads.csv
  mha-viz attention - --model bert-base-uncased --out heads.json < sentence.txt
  mha-viz attention "The cat sat." --out - --format csv | head
  mha-viz attention "The cat sat." --quantity norm --out norms.npz
  mha-viz attention "The dog [MASK] the girl." --model toy --quantity gradient --out gradients.json
  mha-viz figure grid "The cat sat." --quantity rollout --out rollout.svg
  mha-viz figure links "The cat sat because it was tired." --head L3H1 --pin q5 --out links.svg
  mha-viz figure heatmap "The cat sat." --head L0H2 --special rescale --width-mm 85 --out L0H2.pdf
  mha-viz figure grid "The cat sat." --out grid.png --dpi 300
  mha-viz figure compare "It was too tired." --and "It was too wide." --head L3H1 --head L5H11 --out four.html
  mha-viz figure compare "Too tired." --and "Too wide." --head L3H1 --head L5H11 --columns 2 --out four.pdf
  mha-viz figure difference "It was too tired." --and "It was too wide." --head L3H1 --out difference.svg
  mha-viz figure heatmap "The cat sat." --all-heads heads/ --format svg
  mha-viz publish "The cat sat because it was tired." --head L3H1 --remark "Look at it." --out page.html
  mha-viz publish "The cat sat because it was tired." --head L3H1 --live site
  mha-viz example treebank.conllu
  mha-viz example other.conllu --grammar 1
  mha-viz profile treebank.conllu --out profile/
  mha-viz profile other.conllu --and profile/ --out second/
  mha-viz profile one.conllu --and two.conllu --chance 20 --out both/
  mha-viz replicate minilm treebank.conllu
  mha-viz replicate profile/ third.conllu --out outcomes.csv
  mha-viz replicate profile/ third.conllu --format csv | head
  mha-viz replicate toy grammar --beside toy@100
  mha-viz report minilm
  mha-viz report profile/ --replicated third/ --out roles.tex
  mha-viz report profile/ --format csv > roles.csv
  mha-viz recipes treebank.conllu --score other.conllu --out recipes/
  mha-viz recipes sentences.txt --model gpt2 --out recipes/
  mha-viz patch "The girl smiles because [MASK] sings ." "The boy smiles because [MASK] sings ." --model toy --to L1H1
  mha-viz recipes minilm --score other.conllu --out scored/
  mha-viz recipes minilm --and other.conllu --out compared/
  mha-viz search minilm/L3H1 treebank.conllu --relation nsubj --dependent-pos NOUN
  mha-viz search toy/L1H1 grammar --query-pos PRON --most 5 --out pronouns.csv
  mha-viz groups minilm/L3H1 treebank.conllu --out links.csv
  mha-viz effect grammar --model toy --heads L1H1 --relation nsubj
  mha-viz effect treebank.conllu --model bert-base-uncased --heads L7H9,L7H10 --relation obj --out effect.csv
  mha-viz used profile/ treebank.conllu --most 200
  mha-viz patch "The girl smiles because [MASK] sings ." "The boy smiles because [MASK] sings ." --model toy
  mha-viz pairs toy-pairs --model toy --out pairs.csv
  mha-viz pairs repeater-pairs --model repeater --heads L0H0,L0H3,L0H0+L0H3
  mha-viz pairs blimp/anaphor_gender_agreement.jsonl --model gpt2 --method mean
  mha-viz why treebank.conllu --model bert-base-uncased --out why.csv
  mha-viz why repeats --model repeater --most 20 --arrows --out arrows.csv
  mha-viz decoder-heads gpt2
  mha-viz decoder-heads repeater --draws 20 --out heads.csv
  mha-viz profile grammar --model distilbert-base-uncased --out profile/
  mha-viz toy train --seed 1 --out toy/
  mha-viz toy train --kind repeater --out repeater/
  mha-viz toy evaluate --seed 7 --sentences 500 --out scores.csv
  mha-viz toy history --sentences 300 --out history.csv
  mha-viz toy effects --sentences 300 --out effects.csv
  mha-viz completion bash > ~/.local/share/bash-completion/completions/mha-viz
  mha-viz completion zsh > ~/.zfunc/_mha-viz
  mha-viz completion fish > ~/.config/fish/completions/mha-viz.fish
"""
FIRST_STEPS = f"""first steps (the help of each command has more: mha-viz figure --help):
  mha-viz serve
  mha-viz figure grid "The cat sat on the mat." --out grid.png
  mha-viz example treebank.conllu
  mha-viz profile treebank.conllu --out profile/

{format_exit_codes()}"""


def build_parser() -> Parser:
    """Build the parser of the whole command line."""
    description, formatter = (
        "See what each attention head of a model does with a sentence.",
        argparse.RawDescriptionHelpFormatter,
    )
    root = Parser("mha-viz", description=description, epilog=FIRST_STEPS, formatter_class=formatter, allow_abbrev=False)
    root.add_argument("-V", "--version", action="version", version=f"mha-viz {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, run: Command | None, summary: str) -> Parser:
        return root.add_command(commands, name, run, summary, _find_examples(name))

    serve.add_options(add("serve", serve.serve, "Open the app in a browser."))
    listing.add_options(add("models", listing.run, "List the models that can be chosen by name."))
    attention.add_options(add("attention", attention.run, "Write the attention of every head to a file."))
    summary = "Draw heads, alone or side by side, for a paper or a page."
    figure.add_options(
        add("figure", figure.run, summary), {kind: _find_examples(f"figure {kind}") for kind in figure.KINDS}
    )
    publish.add_options(add("publish", publish.run, "Write heads with your remarks as one interactive web page."))
    example.add_options(add("example", example.run, "Write a small treebank to try the commands below with."))
    summary = "Measure what each head does over a corpus, with baselines."
    profile.add_options(add("profile", profile.run, summary))
    summary = "Measure whether roles of a profile hold on another corpus."
    replicate.add_options(add("replicate", replicate.run, summary))
    report.add_options(add("report", report.run, "Print the roles of a profile as a table for a paper."))
    summary = "Describe each head by a few simple rules and their shares."
    recipes.add_options(add("recipes", recipes.run, summary))
    summary = "Print the sentences where a head has its strongest links."
    search.add_options(add("search", search.run, summary))
    groups.add_options(add("groups", groups.run, "Print what a head does over a corpus, in groups."))
    summary = "Measure what switching heads off does over a corpus."
    effect.add_options(add("effect", effect.run, summary))
    summary = "Measure which roles of a profile the model uses."
    used.add_options(add("used", used.run, summary))
    summary = "Find heads that matter by patching outputs from another text."
    patch.add_options(add("patch", patch.run, summary))
    summary = "Measure over minimal pairs which heads a preference needs."
    pairs.add_options(add("pairs", pairs.run, summary))
    summary = "Measure what the attention of each head depends on."
    why.add_options(add("why", why.run, summary))
    summary = "Find induction heads and related heads of a causal model."
    decoder_heads.add_options(add("decoder-heads", decoder_heads.run, summary))
    summary = "Train the toy model from a seed, or measure its heads."
    toy.add_options(add("toy", None, summary), {job: _find_examples(f"toy {job}") for job in toy.JOBS})
    completion = add("completion", _print_completion, "Print a script that completes commands in the shell.")
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    return root


def _print_completion(args: argparse.Namespace) -> None:
    """Print the completion script for bash, zsh or fish.

    The script comes from a separate parser, in which --model accepts only the names to complete.
    """
    import shtab

    root = build_parser()
    _add_completions(root)
    print(shtab.complete(root, args.shell, root_prefix="mha_viz"), end="")


def _add_completions(root: argparse.ArgumentParser) -> None:
    import shtab

    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _add_completions(command)
        elif action.dest == "model":
            action.choices = list(catalog.CATALOG)
        elif action.type is parse_folder:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.dest in FILE_ARGUMENTS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def _find_examples(command: str) -> str:
    lines = [line for line in EXAMPLES.splitlines() if f"mha-viz {command} " in f"{line} "]
    return "\n".join(["examples:", *lines]) if lines else ""
