"""Permanently remove rights that this process does not need to work on untrusted files.

On Linux, Landlock refuses writing outside the given folders, signals to other processes, and TCP. A seccomp filter
refuses system calls that Landlock does not cover: sockets of every kind, new processes and programs, limits and
priorities of other processes, shared memory, and changes to permissions, owners, times and attributes of any file.
Privileges of the superuser are dropped, except the one to read files. All restrictions hold for this thread and for
everything that it starts, so call :func:`confine` before starting threads. Open files stay open. On other systems, or
where the kernel lacks these features, nothing is removed.

Landlock is three system calls: include/uapi/linux/landlock.h. On PyPI, the package for Landlock is an alpha release
without the network rules, and those for seccomp wrap libseccomp, which the slim images of Python lack.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import NamedTuple

WRITING, NETWORK, PROCESSES = "writing", "network", "processes"  # the rights that can be removed
ALL_RIGHTS = frozenset({WRITING, NETWORK, PROCESSES})

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # numbers of system calls, the same on every architecture
_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGE_RIGHTS = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))  # to write, remove and create files and folders
_RIGHTS_SINCE = MappingProxyType({2: 1 << 13, 3: _TRUNCATE})  # version → right to move between folders, to truncate
_TCP, _TCP_SINCE = 0b11, 4  # rights to bind and to connect; the first version that has them
_SCOPES, _SCOPES_SINCE = 0b11, 6  # abstract Unix sockets and signals: only among processes that are confined alike

_SET_DUMPABLE, _GET_SECCOMP, _SET_SECCOMP, _NO_NEW_PRIVILEGES = 4, 21, 22, 38  # of prctl
_FILTER = 2  # SECCOMP_MODE_FILTER
_CAPABILITIES = 0x20080522  # version 3 of their interface
_READ_SEARCH = 1 << 2  # CAP_DAC_READ_SEARCH: a server that runs as root reads the files of all users


class _Machine(NamedTuple):
    """An architecture as the kernel numbers it (AUDIT_ARCH), and its column in the tables of system calls."""

    architecture: int
    column: int


_MACHINES = MappingProxyType({"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)})

# Refused system calls, with their numbers on x86_64 and aarch64; None where the call does not exist.
_SOCKET_CALLS = MappingProxyType(
    {
        "socket": (41, 198),
        "socketpair": (53, 199),
        "connect": (42, 203),
        "bind": (49, 200),
        "listen": (50, 201),
        "accept": (43, 202),
        "accept4": (288, 242),
        "sendto": (44, 206),
        "sendmsg": (46, 211),
        "sendmmsg": (307, 269),
    }
)
_OTHER_CALLS = MappingProxyType(
    {
        # new processes and programs (clone is below)
        **{"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)},
        # other processes: their priority, memory, descriptors and signals
        **{"setpriority": (141, 140), "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239)},
        **{"ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272)},
        **{"pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "process_madvise": (440, 440)},
        **{"process_mrelease": (448, 448), "tkill": (200, 130), "perf_event_open": (298, 241)},
        # memory and queues that outlive the process and are not limited
        **{"shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193)},
        **{"semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189)},
        **{"msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181)},
        # changes to files that Landlock does not refuse: permissions, owners, times, attributes
        **{"chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452)},
        **{"chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54)},
        **{"utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88)},
        **{"setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463)},
        **{"removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16)},
        **{"removexattrat": (466, 466), "file_setattr": (469, 469), "open_by_handle_at": (304, 265)},
        # large parts of the kernel that nothing here needs
        **{"io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427)},
        **{"bpf": (321, 280), "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217)},
        **{"request_key": (249, 218), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40)},
        **{"umount2": (166, 39), "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430)},
        **{"fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442)},
        **{"pivot_root": (155, 41), "chroot": (161, 51), "quotactl": (179, 60), "quotactl_fd": (443, 443)},
    }
)
# Calls that are refused unless their first argument creates a thread, is 0 (this process), or is this process's PID.
_THREAD_CALLS = MappingProxyType({"clone": (56, 220)})
_OWN_PROCESS_CALLS = MappingProxyType(
    {
        "prlimit64": (302, 261),
        "sched_setaffinity": (203, 122),
        "sched_setscheduler": (144, 119),
        "sched_setparam": (142, 118),
        "sched_setattr": (314, 274),
    }
)
_SIGNAL_CALLS = MappingProxyType(
    {"kill": (62, 129), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
)
_CLONE3, _IOCTL = 435, (16, 29)
_INJECT_INPUT = 0x5412  # TIOCSTI, which types into the terminal that a server runs in
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
# Offsets in struct seccomp_data; those of the two arguments are offsets of their lower halves.
_NR, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_X32 = 0x40000000  # call numbers of the x32 interface start here
_IS_THREAD, _IS_ZERO = (_HAS_BIT, 0x10000), (_EQUAL, 0)  # CLONE_THREAD
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000  # _FAIL is combined with an error number
_REFUSE = _FAIL | errno.EACCES

_Step = tuple[int, int, int, int]  # instruction, operand, instructions to skip if true, and if false


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _FolderRule(ctypes.Structure):
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
    """Confine this process: no writing outside some folders, no access to other processes, and no network.

    Args:
        writable: the folders that may be written to; by default none.
        network: whether the process keeps its network.

    Returns which of WRITING, NETWORK and PROCESSES were removed: fewer than :data:`ALL_RIGHTS` if the kernel cannot
    remove them or a container forbids it.
    """
    if not sys.platform.startswith("linux"):
        return frozenset()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return frozenset()
    hide_memory()
    _drop_privileges(libc)
    is_write_restricted = _restrict_writing(libc, writable, network)
    is_filtered = _filter_calls(libc, network)
    removals = {
        WRITING: is_write_restricted and is_filtered,
        NETWORK: is_filtered and not network,
        PROCESSES: is_filtered,
    }
    return frozenset(name for name, is_removed in removals.items() if is_removed)


def hide_memory() -> None:
    """Prevent other processes of the account from tracing this process or reading its memory, on Linux.

    This also hides its environment. The setting is PR_SET_DUMPABLE of prctl(2). Programs that this process starts do
    not inherit it.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def find_irremovable_rights() -> frozenset[str]:
    """Return the rights that :func:`confine` could not remove here, without confining this process."""
    if not sys.platform.startswith("linux"):
        return ALL_RIGHTS
    libc = ctypes.CDLL(None, use_errno=True)
    if platform.machine() not in _MACHINES or libc.prctl(_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return ALL_RIGHTS
    has_landlock = libc.syscall(_CREATE_RULESET, None, 0, _VERSION) >= 1
    return frozenset() if has_landlock else frozenset({WRITING})


def _drop_privileges(libc: ctypes.CDLL) -> None:
    """Drop all superuser privileges except the one to read files (capset(2)); some would override Landlock."""
    header, capabilities = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, capabilities) == 0 and any(capabilities):
        remaining_capabilities = [capabilities[number] & _READ_SEARCH if number < 3 else 0 for number in range(6)]
        libc.capset(header, (ctypes.c_uint32 * 6)(*remaining_capabilities))


def _restrict_writing(libc: ctypes.CDLL, writable: Iterable[str], network: bool) -> bool:
    """Restrict writing to folders with Landlock, and forbid TCP unless ``network``. Return whether that worked."""
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return False
    rights = _CHANGE_RIGHTS | sum(right for first_version, right in _RIGHTS_SINCE.items() if version >= first_version)
    tcp = _TCP * (version >= _TCP_SINCE and not network)
    rules = _Ruleset(rights, tcp, _SCOPES * (version >= _SCOPES_SINCE))
    size = 8 * (1 + (version >= _TCP_SINCE) + (version >= _SCOPES_SINCE))
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        for path in (os.devnull, *writable):
            _allow_folder(libc, ruleset, path, rights & (_WRITE_FILE | _TRUNCATE) if path == os.devnull else rights)
        return not libc.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_folder(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """Add a folder to a Landlock ruleset with these rights."""
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # the folder does not exist, so nothing can be written to it
        return
    try:
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_FolderRule(rights, folder)), 0)
    finally:
        os.close(folder)


def _filter_calls(libc: ctypes.CDLL, network: bool) -> bool:
    """Refuse the system calls in the tables; with ``network``, allow those of sockets. Return whether that worked."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    steps = [*_iter_filter_steps(machine, network)]
    instructions = (_Instruction * len(steps))(
        *(_Instruction(code, if_true, if_false, k) for code, k, if_true, if_false in steps)
    )
    program = _Program(len(steps), ctypes.cast(instructions, ctypes.POINTER(_Instruction)))
    return not libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)


def _iter_filter_steps(machine: _Machine, network: bool) -> Iterator[_Step]:
    """Yield the instructions of the filter. Each refusal is a block that calls with other numbers skip."""
    yield _LOAD, _ARCH, 0, 0
    yield _EQUAL, machine.architecture, 1, 0
    yield _RETURN, _REFUSE, 0, 0
    yield _LOAD, _NR, 0, 0
    yield _AT_LEAST, _X32, 0, 1
    yield _RETURN, _REFUSE, 0, 0
    for numbers in (_OTHER_CALLS if network else {**_SOCKET_CALLS, **_OTHER_CALLS}).values():
        number = numbers[machine.column]
        if number is not None:
            yield _EQUAL, number, 0, 1
            yield _RETURN, _REFUSE, 0, 0
    # A filter cannot see the arguments of clone3; without clone3, the C library calls clone.
    yield _EQUAL, _CLONE3, 0, 1
    yield _RETURN, _FAIL | errno.ENOSYS, 0, 0
    for condition, calls in (
        (_IS_THREAD, _THREAD_CALLS),
        (_IS_ZERO, _OWN_PROCESS_CALLS),
        ((_EQUAL, os.getpid()), _SIGNAL_CALLS),
    ):
        for numbers in calls.values():
            yield from _iter_refusal_steps(numbers[machine.column], condition)
    yield _EQUAL, _IOCTL[machine.column], 0, 3
    yield _LOAD, _SECOND_ARGUMENT, 0, 0
    yield _EQUAL, _INJECT_INPUT, 0, 1
    yield _RETURN, _REFUSE, 0, 0
    yield _RETURN, _ALLOW, 0, 0


def _iter_refusal_steps(number: int, condition: tuple[int, int]) -> Iterator[_Step]:
    """Yield instructions that refuse a call unless its first argument meets a condition (instruction, operand)."""
    yield _EQUAL, number, 0, 4
    yield _LOAD, _FIRST_ARGUMENT, 0, 0
    yield *condition, 0, 1
    yield _RETURN, _ALLOW, 0, 0
    yield _RETURN, _REFUSE, 0, 0
