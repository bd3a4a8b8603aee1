"""Make treebanks with documents, split corpora into shards, and run clusters."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.cutting import cut_file
from mha_viz.corpus.treebank import Sentence
from mha_viz.study.cluster.layout import Layout, lay_out, survey_shard
from tests.ports import find_free_port

if TYPE_CHECKING:
    from distributed import Client

# Libraries that take a worker seconds to import.
LARGE = ("distributed", "pandas", "torch", "transformers.modeling_utils", "transformers.models.bert.modeling_bert")


def make_document_sentences(count: int, per_document: int, seed: int = 0) -> list[Sentence]:
    """Return sentences of the grammar, in documents of ``per_document`` sentences."""
    sentences = grammar.corpus(count, seed).sentences
    return [replace(sentence, document=f"d{i // per_document}") for i, sentence in enumerate(sentences)]


def treebank(count: int, per_document: int = 5, seed: int = 0) -> str:
    """Return :func:`make_document_sentences` as CoNLL-U, with one heading per document."""
    text, previous = [], None
    for sentence in make_document_sentences(count, per_document, seed):
        text.append(format_conllu([sentence if sentence.document != previous else replace(sentence, document="")]))
        previous = sentence.document
    return "".join(text)


def lay_out_corpus(name: str, files: list[Path], size: int) -> Layout:
    """Return the layout of a corpus of these files, in shards of at least ``size`` bytes."""
    cuts = [cut_file(str(file), size) for file in files]
    return lay_out(name, cuts, [[survey_shard(shard, cut.kind) for shard in cut.shards] for cut in cuts])


@contextmanager
def open_cluster(count: int = 2) -> Iterator[Client]:
    """Yield a client of a cluster of worker processes.

    They are forked from a process that has imported the large libraries, because each worker would take seconds to do
    so. Workers import the main module of this process, which the app replaces if a test has run a page.
    """
    import dask
    from distributed.utils import get_mp_context

    from mha_viz.study.cluster.connection import connect

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
            get_mp_context()  # before the next line, because it sets its own list of libraries
            multiprocessing.set_forkserver_preload([*LARGE])
            forkserver.ensure_running()
            with connect(workers=count) as client:
                yield client


def get_trust(client: Client) -> dict[str, str]:
    """Return Dask's configuration for another client of the same cluster: the certificate and its key."""
    tls = client.security.get_tls_config_for_role("client")
    names = {"ca-file": "ca_file", "client.cert": "cert", "client.key": "key"}
    return {f"distributed.comm.tls.{setting}": tls[name] for setting, name in names.items()}


@contextmanager
def scheduler() -> Iterator[tuple[str, BaseProcess]]:
    """Run a scheduler in a separate process, within :func:`open_cluster`; yield the process and its address."""
    port = str(find_free_port())
    options = ("--host", "127.0.0.1", "--port", port, "--dashboard-address", "127.0.0.1:0")
    with run_module("distributed.cli.dask_scheduler", *options) as process:
        yield f"tcp://127.0.0.1:{port}", process


def worker(address: str) -> AbstractContextManager[BaseProcess]:
    """Run a worker with one thread in a separate process, within :func:`open_cluster`."""
    options = (address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "5")
    return run_module("distributed.cli.dask_worker", *options)


@contextmanager
def run_module(module: str, *arguments: str, trust: Mapping[str, str] | None = None) -> Iterator[BaseProcess]:
    """Run a module in a separate process with these arguments, within :func:`open_cluster`.

    ``trust`` is its configuration of Dask. The process is killed at the end.
    """
    process = multiprocessing.get_context("forkserver").Process(target=_run, args=(module, arguments, trust or {}))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _run(module: str, arguments: tuple[str, ...], trust: Mapping[str, str]) -> None:
    import dask

    dask.config.set(trust)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    importlib.import_module(module).main([*arguments])
