"""Takes from a process, for good, what work on strangers' files does not need: the network, and writing files.

On Linux, Landlock refuses writing outside the given folders, reaching into other processes, and TCP; a seccomp filter
refuses every new socket, of whatever kind. Both hold for this thread and for all that it starts, so call it before
threads begin. What the process has open stays open. On other systems, or where the kernel lacks them, nothing is taken.

Landlock is three system calls: include/uapi/linux/landlock.h. The packages for it on PyPI are one in alpha without the
network, and wrappers of libseccomp, which the slim images of Python lack.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterable
from types import MappingProxyType

WRITING, NETWORK = "writing", "network"  # what can be taken

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # numbers of system calls, the same on every architecture
_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGE = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # to write, remove and make files and folders
_SINCE = MappingProxyType({2: 1 << 13, 3: _TRUNCATE})  # version → to move between folders, to shorten
_TCP, _TCP_SINCE = 0b11, 4  # bind and connect
_SCOPES, _SCOPES_SINCE = 0b11, 6  # abstract Unix sockets and signals: only among processes that are confined alike

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  # of prctl
_IO_URING_SETUP = 425  # opens sockets without the call for one
_SOCKET = MappingProxyType({"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)})  # AUDIT_ARCH, number of socket()
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions
_NR, _ARCH = 0, 4  # offsets in what a filter sees
_X32 = 0x40000000  # numbers from here on are the same calls by another name
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 13  # EACCES


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def confine(writable: Iterable[str] = (), network: bool = False) -> frozenset[str]:
    """Confine this process to writing below the folders ``writable``, and to no network, unless ``network``. Returns
    what was taken of WRITING and NETWORK: less than both where the kernel cannot do it, or a container forbids to ask
    for it."""
    if not sys.platform.startswith("linux"):
        return frozenset()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return frozenset()
    taken = {WRITING: _write_below(libc, writable, network), NETWORK: not network and _open_no_socket(libc)}
    return frozenset(name for name, done in taken.items() if done)


def _write_below(libc: ctypes.CDLL, writable: Iterable[str], network: bool) -> bool:
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return False
    change = _CHANGE | sum(right for since, right in _SINCE.items() if version >= since)
    tcp = _TCP * (version >= _TCP_SINCE and not network)
    rules = _Ruleset(change, tcp, _SCOPES * (version >= _SCOPES_SINCE))
    size = 8 * (1 + (version >= _TCP_SINCE) + (version >= _SCOPES_SINCE))
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        for path in (os.devnull, *writable):
            _allow(libc, ruleset, path, change & (_WRITE_FILE | _TRUNCATE) if path == os.devnull else change)
        return not libc.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # where nothing is, nothing can be written
        return
    try:
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Beneath(rights, folder)), 0)
    finally:
        os.close(folder)


def _open_no_socket(libc: ctypes.CDLL) -> bool:
    if platform.machine() not in _SOCKET:
        return False
    architecture, socket = _SOCKET[platform.machine()]
    steps = [  # the last two numbers: how many instructions to skip if so, and if not
        (_LOAD, _ARCH, 0, 0),
        (_EQUAL, architecture, 0, 5),
        (_LOAD, _NR, 0, 0),
        (_AT_LEAST, _X32, 3, 0),
        (_EQUAL, socket, 2, 0),
        (_EQUAL, _IO_URING_SETUP, 1, 0),
        (_RETURN, _ALLOW, 0, 0),
        (_RETURN, _REFUSE, 0, 0),
    ]
    instructions = (_Instruction * len(steps))(*(_Instruction(code, yes, no, k) for code, k, yes, no in steps))
    program = _Program(len(steps), ctypes.cast(instructions, ctypes.POINTER(_Instruction)))
    return not libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)
