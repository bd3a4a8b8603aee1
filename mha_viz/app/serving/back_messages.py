"""Filter the messages that browsers send to Streamlit.

Streamlit's protocol has kinds of messages that no page of this app sends, and no limits.

A message is checked in its encoded form, field by field, before it is parsed; a forbidden message is dropped. RULES
lists every kind and every field of the protocol, so that new ones are forbidden until they are listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from streamlit.proto.BackMsg_pb2 import BackMsg

MAX_FIELDS = 5_000  # maximum number of fields in a message, including its parts
_MAX_BYTES = 2_000_000  # maximum bytes of a field, the same as of a whole message
_MAX_ADDRESS = 200_000  # maximum bytes of an address with its parameters, which pages shorten
_MAX_JSON_MARKS = 100_000  # maximum brackets and commas in a JSON value, because lists take more memory than text


class FieldLimit(NamedTuple):
    """The limits of a field.

    Attributes:
        max_bytes: the maximum size.
        max_count: how many times the field may occur in a message.
        pattern: the pattern that its text must match.
        is_json: whether its text is JSON, whose number of parts is limited.
    """

    max_bytes: int = _MAX_BYTES
    max_count: int = 1
    pattern: re.Pattern[bytes] | None = None
    is_json: bool = False


def _limit_text(pattern: str, max_bytes: int, max_count: int = 1) -> FieldLimit:
    return FieldLimit(max_bytes, max_count, re.compile(pattern.encode("latin-1")))


_LINE = r"[^\x00-\x1f\x7f]*"
_ANY = FieldLimit()
_JSON = FieldLimit(is_json=True)
_NUMBERS = FieldLimit(8_000)
_FILE_NAME = r"(?:[\x00-\x7f\xc0-\xff][\x80-\xbf]*){0,255}"  # a name of at most 255 characters
_ID = _limit_text(_LINE, 400)
_FILE_ID = _limit_text(r"[0-9A-Za-z-]*", 64)
_HASH = r"(?:[0-9a-f]{32,64})?"
_DIGEST = _limit_text(_HASH, 64)
_WORD = _limit_text(_LINE, 100)
_FORBIDDEN = None  # for fields that no page of the app sends

# The fields of each message, by the name of the message in the protocol.
RULES: Mapping[str, Mapping[str, FieldLimit | None]] = {
    "BackMsg": {
        "rerun_script": _ANY,
        "stop_script": _ANY,
        "app_heartbeat": _ANY,
        "file_urls_request": _ANY,
        "backend_operation_request": _ANY,
        "clear_cache": _FORBIDDEN,
        "set_run_on_save": _FORBIDDEN,
        "load_git_info": _FORBIDDEN,
        "debug_disconnect_websocket": _FORBIDDEN,
        "debug_shutdown_runtime": _FORBIDDEN,
    },
    "ClientState": {
        "query_string": _limit_text(_LINE, _MAX_ADDRESS),
        "widget_states": _ANY,
        "page_script_hash": _DIGEST,
        "page_name": _limit_text(_LINE, 255),
        "fragment_id": _DIGEST,
        "is_auto_rerun": _ANY,
        "cached_message_hashes": _limit_text(_HASH, 64, 1_000),
        "context_info": _ANY,
        "is_history_navigation": _ANY,
    },
    "WidgetStates": {"widgets": FieldLimit(max_count=400)},
    "WidgetState": {
        "id": _ID,
        "trigger_value": _ANY,
        "bool_value": _ANY,
        "double_value": _ANY,
        "int_value": _ANY,
        "string_value": _ANY,
        "double_array_value": _ANY,
        "int_array_value": _ANY,
        "string_array_value": _ANY,
        "json_value": _JSON,
        "file_uploader_state_value": _ANY,
        "json_trigger_value": _JSON,
        "arrow_value": _FORBIDDEN,
        "bytes_value": _FORBIDDEN,
        "string_trigger_value": _FORBIDDEN,
        "chat_input_value": _FORBIDDEN,
    },
    "DoubleArray": {"data": _NUMBERS},
    "SInt64Array": {"data": _NUMBERS},
    "StringArray": {"data": FieldLimit(10_000, 1_000)},
    "FileUploaderState": {"uploaded_file_info": FieldLimit(10_000, 4)},
    "UploadedFileInfo": {"name": _limit_text(_FILE_NAME, 1_020), "size": _ANY, "file_id": _FILE_ID, "file_urls": _ANY},
    "FileURLs": {"file_id": _FILE_ID, "upload_url": _ID, "delete_url": _ID},
    "ContextInfo": {
        "timezone": _WORD,
        "timezone_offset": _ANY,
        "locale": _WORD,
        "url": _limit_text(_LINE, _MAX_ADDRESS),
        "is_embedded": _ANY,
        "color_scheme": _WORD,
    },
    "FileURLsRequest": {"request_id": _ID, "file_names": _limit_text(_FILE_NAME, 1_020, 4), "session_id": _FILE_ID},
    "BackendOperationRequest": {
        "request_id": _ID,
        "session_id": _FILE_ID,
        "deferred_file": _ANY,
        "install_skills": _FORBIDDEN,
        "dismiss_skills_nudge": _FORBIDDEN,
        "dataframe_chunk": _FORBIDDEN,
    },
    "DeferredFileRequestPayload": {"file_id": _limit_text(r"[0-9a-f]{32,64}", 64)},
    # Parts of forbidden messages.
    "ArrowTable": {"data": _FORBIDDEN, "index": _FORBIDDEN, "columns": _FORBIDDEN, "styler": _FORBIDDEN},
    "ArrowTableStyler": {"uuid": _FORBIDDEN, "caption": _FORBIDDEN, "styles": _FORBIDDEN, "display_values": _FORBIDDEN},
    "StringTriggerValue": {"data": _FORBIDDEN},
    "ChatInputValue": {"data": _FORBIDDEN, "file_uploader_state": _FORBIDDEN, "audio_file_info": _FORBIDDEN},
    "InstallSkillsRequestPayload": {},
    "DismissSkillsNudgeRequestPayload": {},
    "DataframeChunkRequestPayload": {
        "source_id": _FORBIDDEN,
        "offset": _FORBIDDEN,
        "limit": _FORBIDDEN,
        "sort": _FORBIDDEN,
    },
    "SortState": {"column": _FORBIDDEN, "direction": _FORBIDDEN},
}
# Required: exactly one field (1), or a field of this name. Without it, Streamlit would write to its log.
_REQUIRED = {"BackMsg": 1, "BackendOperationRequest": "deferred_file", "DeferredFileRequestPayload": "file_id"}
# Tokens per message of this kind; 1 for all others.
COSTS = {
    "file_urls_request": 4.0,
    "backend_operation_request": 4.0,
}
# A message costs one more token per this many bytes. The largest ordinary message (a page with 20 kB of annotation in
# its address) has 63 kB; a tab may send eight of them at once.
_BYTES_PER_TOKEN = 10_000

_VARINT, _FIXED, _LENGTH, _FIXED_32 = 0, 1, 2, 5  # wire types of protobuf
_WIRE_TYPES = {
    FieldDescriptor.TYPE_DOUBLE: _FIXED,
    FieldDescriptor.TYPE_FIXED64: _FIXED,
    FieldDescriptor.TYPE_SFIXED64: _FIXED,
    FieldDescriptor.TYPE_FLOAT: _FIXED_32,
    FieldDescriptor.TYPE_FIXED32: _FIXED_32,
    FieldDescriptor.TYPE_SFIXED32: _FIXED_32,
    FieldDescriptor.TYPE_STRING: _LENGTH,
    FieldDescriptor.TYPE_BYTES: _LENGTH,
    FieldDescriptor.TYPE_MESSAGE: _LENGTH,
}


class AllowedMessage(NamedTuple):
    """A message that may be passed on to Streamlit."""

    kind: str
    message: BackMsg


class _Field(NamedTuple):
    """An allowed field of a message.

    Attributes:
        name: its name.
        wire_type: the encoding of its value.
        rule: its limits.
        content: the kind of message that it contains, if any.
        is_text: whether its value is text.
    """

    name: str
    wire_type: int
    rule: FieldLimit
    content: Descriptor | None
    is_text: bool


class _NotAllowedError(Exception):
    """Raised for a message that must not be passed on."""


def read_allowed(data: bytes) -> AllowedMessage | None:
    """Return the message if it is allowed, else None."""
    try:
        kind = _MessageChecker(data).check(BackMsg.DESCRIPTOR, 0, len(data))
        message = BackMsg.FromString(data)
    except (_NotAllowedError, DecodeError):
        return None
    return AllowedMessage(kind, message) if message.WhichOneof("type") == kind else None


def compute_cost(kind: str, data: bytes) -> float:
    """Return how many tokens of its tab's rate limit a message costs, by its kind and size."""
    return COSTS.get(kind, 1.0) + len(data) / _BYTES_PER_TOKEN


class _MessageChecker:
    """Checks a message in its encoded form."""

    def __init__(self, data: bytes) -> None:
        self._data, self._fields_left = data, MAX_FIELDS

    def check(self, kind: Descriptor, position: int, end: int) -> str:
        """Check the message between ``position`` and ``end``; return the name of its last field."""
        fields, counts, name = _list_fields(kind), dict[str, int](), ""
        while position < end:
            key, position = self._read_number(position, end)
            field = fields.get(key >> 3)
            self._fields_left -= 1
            if field is None or key & 7 != field.wire_type or self._fields_left < 0:
                raise _NotAllowedError
            name, rule = field.name, field.rule
            counts[name] = counts.get(name, 0) + 1
            if counts[name] > rule.max_count:
                raise _NotAllowedError
            start, position = self._find_span(field.wire_type, position, end)
            if position - start > rule.max_bytes:
                raise _NotAllowedError
            if field.content is not None:
                self.check(field.content, start, position)
            elif field.is_text:
                self._check_text(self._data[start:position], rule)
        required = _REQUIRED.get(kind.full_name)
        if (required == 1 and len(counts) != 1) or (isinstance(required, str) and required not in counts):
            raise _NotAllowedError
        return name

    def _find_span(self, wire_type: int, position: int, end: int) -> tuple[int, int]:
        """Return the start and the end of a value."""
        if wire_type == _VARINT:
            start, (_, end_of_value) = position, self._read_number(position, end)
        elif wire_type == _LENGTH:
            size, start = self._read_number(position, end)
            end_of_value = start + size
        else:
            start, end_of_value = position, position + (8 if wire_type == _FIXED else 4)
        if end_of_value > end:
            raise _NotAllowedError
        return start, end_of_value

    def _read_number(self, position: int, end: int) -> tuple[int, int]:
        """Read a number of variable length; return it and the position after it."""
        value = shift = 0
        while position < end and shift < 70:
            byte = self._data[position]
            position, value, shift = position + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value, position
        raise _NotAllowedError

    @staticmethod
    def _check_text(text: bytes, rule: FieldLimit) -> None:
        try:
            text.decode()
        except UnicodeDecodeError:
            raise _NotAllowedError from None
        if rule.pattern and not rule.pattern.fullmatch(text):
            raise _NotAllowedError
        if rule.is_json and sum(map(text.count, (b"[", b"{", b","))) > _MAX_JSON_MARKS:
            raise _NotAllowedError


@cache
def _list_fields(kind: Descriptor) -> dict[int, _Field]:
    """Return the allowed fields of a kind of message, by number."""
    rules: Mapping[str, Any] = RULES.get(kind.full_name, {})
    return {
        field.number: _Field(
            field.name,
            _LENGTH if _is_packed(field) else _WIRE_TYPES.get(field.type, _VARINT),
            rules[field.name],
            field.message_type,
            field.type == FieldDescriptor.TYPE_STRING,
        )
        for field in kind.fields
        if rules.get(field.name)
    }


def _is_packed(field: FieldDescriptor) -> bool:
    """Return whether the field's numbers are packed into one value."""
    return bool(field.is_repeated and field.is_packed)
