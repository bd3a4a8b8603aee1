"""List the parts of Streamlit that this app replaces, and the private parts that it reads.

A row is checked before its part is imported (:mod:`mha_viz.library_parts`). A replacement wraps the function that it
finds when it is installed, so several replacements of one function are applied one after the other.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Sequence

from mha_viz.library_parts import LibraryPart, describe_missing, describe_remedy, find_losses

_LOG = logging.getLogger(__name__)

_SESSION = "streamlit.runtime.app_session:AppSession"
_FILES = "streamlit.runtime.media_file_manager:MediaFileManager"
_SESSIONS = "streamlit.runtime.websocket_session_manager:WebsocketSessionManager"
_SERVER = "streamlit.web.server.starlette"
_CONNECTION = "uvicorn.protocols.http.auto:AutoHTTPProtocol"
_RENDERER = "streamlit.components.v2"
# What is lost if a part is missing.
_LOST_CLICK = "A click may be lost on a page that watches a measurement."
_CACHE_MISS = "A page may stop with “Cached ForwardMsg MISS”."
_ENDED_RUN = "A run may end because the previous run is still adding a control."
_STALE_DOWNLOAD = "A download may lack what was typed just before the click."
_DELETED_DOWNLOAD = "A file made for a download may be deleted before it is fetched."
_REPEATED_CODE = "The code of drawings is sent with every page."
_ERROR_BOX = "A value that no control can send shows Streamlit's error box instead of a message."

PARTS: tuple[LibraryPart, ...] = (
    LibraryPart(
        _SESSION,
        "request_rerun",
        "timed reruns do not interrupt a run that a user started",
        _LOST_CLICK,
        "mha_viz.app.serving.timers:patch_timer_reruns",
        "self, client_state",
        "streamlit/streamlit#9921",
    ),
    LibraryPart(_SESSION, "_scriptrunner", "tells whether a run is under way", _LOST_CLICK),
    LibraryPart(
        _SESSION,
        "request_rerun",
        "runs refer only to messages that the browser still has",
        _CACHE_MISS,
        "mha_viz.app.serving.messages:patch_message_cache",
        "self, client_state",
        "streamlit/streamlit#15816",
    ),
    LibraryPart(
        _SESSION,
        "_enqueue_forward_msg",
        "records the messages sent to a browser",
        _CACHE_MISS,
        "mha_viz.app.serving.messages:record_sent_messages",
        "self, msg",
        "streamlit/streamlit#15816",
    ),
    LibraryPart(
        "streamlit.runtime.state.session_state:WStates",
        "__iter__",
        "a new run iterates over a copy of the controls",
        _ENDED_RUN,
        "mha_viz.app.serving.widgets:patch_widget_iteration",
        "self",
    ),
    LibraryPart("streamlit.runtime.state.session_state:WStates", "states", "the controls", _ENDED_RUN),
    LibraryPart(
        _FILES,
        "add_deferred",
        "a file has one name in all runs",
        _STALE_DOWNLOAD,
        "mha_viz.app.serving.click_downloads:name_files_by_button",
        "self, data_callable, mimetype, coordinates, file_name, element_id",
    ),
    LibraryPart(
        "streamlit.runtime.backend_operation_handler:DeferredFileHandler",
        "handle",
        "files are built when the run has ended",
        _STALE_DOWNLOAD,
        "mha_viz.app.serving.click_downloads:wait_for_rerun",
        "self, request, session_id",
    ),
    LibraryPart(_FILES, "_lock", "guards the names of files", _STALE_DOWNLOAD),
    LibraryPart(_FILES, "_deferred_callables", "files that can be requested, by name", _STALE_DOWNLOAD),
    LibraryPart(_FILES, "_deferred_ids_by_session", "their names, by session", _STALE_DOWNLOAD),
    LibraryPart(_FILES, "_files_by_session_and_coord", "their names, by place on the page", _STALE_DOWNLOAD),
    LibraryPart(
        _SESSIONS, "get_active_session_info", "the session of a request", _STALE_DOWNLOAD, arguments="self, session_id"
    ),
    LibraryPart(_SESSION, "_scriptrunner", "tells whether a run is under way", _STALE_DOWNLOAD),
    LibraryPart(
        _FILES,
        "_get_inactive_file_ids",
        "a file stays until its browser has had time to fetch it",
        _DELETED_DOWNLOAD,
        "mha_viz.app.serving.sweeping:keep_unfetched_files",
        "self",
        "streamlit/streamlit#5834",
    ),
    LibraryPart(_FILES, "_file_metadata", "the files that were built", _DELETED_DOWNLOAD),
    LibraryPart(f"{_RENDERER}.manifest_scanner", "ComponentConfig", "announces the code as files", _REPEATED_CODE),
    LibraryPart(f"{_RENDERER}.manifest_scanner", "ComponentManifest", "announces the code as files", _REPEATED_CODE),
    LibraryPart(
        f"{_RENDERER}.component_manager:BidiComponentManager",
        "register_from_manifest",
        "announces the code as files",
        _REPEATED_CODE,
        arguments="self, manifest, package_root",
    ),
    LibraryPart("streamlit.runtime:Runtime", "bidi_component_registry", "announces the code as files", _REPEATED_CODE),
    LibraryPart(
        "streamlit.runtime.scriptrunner_utils.script_run_context:ScriptRunContext",
        "fragment_ids_this_run",
        "distinguishes a part of a page from a page",
        _ERROR_BOX,
    ),
    LibraryPart(
        "streamlit.runtime.state.safe_session_state:SafeSessionState", "_state", "the values of controls", _ERROR_BOX
    ),
    LibraryPart(
        "streamlit.runtime.state.session_state:SessionState", "_new_widget_state", "the values of controls", _ERROR_BOX
    ),
    # The following rows protect data or people, or are indispensable.
    LibraryPart(
        _SESSIONS,
        "__init__",
        "ends abandoned sessions, with their texts, files and descriptors",
        made_by="mha_viz.app.serving.sweeping:store_waiting_sessions",
        arguments="self, session_storage, uploaded_file_manager, script_cache, message_enqueued_callback, "
        "on_script_error",
        upstream="streamlit/streamlit#12506",
    ),
    LibraryPart(_SESSIONS, "_session_storage", "the sessions that wait for a reconnect"),
    LibraryPart("streamlit.runtime:Runtime", "_session_mgr", "the sessions"),
    LibraryPart("streamlit.runtime.session_manager", "SessionInfo", "a session that waits for a reconnect"),
    LibraryPart("streamlit.runtime.session_manager", "SessionStorage", "the sessions that wait for a reconnect"),
    LibraryPart(
        "streamlit.runtime.memory_media_file_storage",
        "_calculate_file_id",
        "makes addresses of downloads impossible to guess",
        made_by="mha_viz.app.serving.media_addresses:make_addresses_unguessable",
        arguments="data, mimetype, filename",
    ),
    LibraryPart("streamlit.runtime.media_file_manager", "MediaFileManager", "the files of downloads"),
    LibraryPart("streamlit.runtime.media_file_manager", "MediaFileMetadata", "the files of downloads"),
    LibraryPart(
        f"{_SERVER}.starlette_server",
        "_get_uvicorn_config_kwargs",
        "limits on messages and connections",
        made_by="mha_viz.app.serving.connections:limit_connections",
        upstream="Kludex/uvicorn#157",
    ),
    LibraryPart("uvicorn.protocols.http.auto", "AutoHTTPProtocol", "limits on connections"),
    LibraryPart(_CONNECTION, "connection_made", "limits on connections", arguments="self, transport"),
    LibraryPart(_CONNECTION, "connection_lost", "limits on connections", arguments="self, exc"),
    LibraryPart(_CONNECTION, "data_received", "limits on connections", arguments="self, data"),
    LibraryPart(_CONNECTION, "handle_websocket_upgrade", "limits on connections"),
    LibraryPart(_CONNECTION, "cycle", "limits on connections"),
    LibraryPart(_CONNECTION, "transport", "limits on connections"),
    LibraryPart(_CONNECTION, "client", "limits on connections"),
    LibraryPart("streamlit.runtime.memory_uploaded_file_manager", "MemoryUploadedFileManager", "limits on uploads"),
    LibraryPart(
        "streamlit.runtime.memory_uploaded_file_manager:MemoryUploadedFileManager", "file_storage", "limits on uploads"
    ),
    LibraryPart(
        f"{_SERVER}.starlette_app_utils",
        "decode_xsrf_token_string",
        "tells visitors apart",
        arguments="cookie_value",
    ),
    LibraryPart(f"{_SERVER}.starlette_server_config", "XSRF_COOKIE_NAME", "tells visitors apart"),
    LibraryPart(f"{_SERVER}.starlette_websocket", "is_host_allowed", "refuses other host names", arguments="host"),
    LibraryPart("streamlit.proto.AuthRedirect_pb2", "AuthRedirect", "says that the server is full"),
    LibraryPart("streamlit.proto.BackMsg_pb2", "BackMsg", "limits on messages"),
    LibraryPart("streamlit.proto.ClientState_pb2", "ClientState", "limits on messages"),
    LibraryPart("streamlit.proto.ForwardMsg_pb2", "ForwardMsg", "limits on messages"),
    LibraryPart("streamlit.proto.ForwardMsg_pb2", "ForwardMsgMetadata", "says that the server is full"),
    LibraryPart("streamlit.runtime.stats", "CounterStat", "the server's metrics"),
    LibraryPart("streamlit.runtime.stats", "GaugeStat", "the server's metrics"),
    LibraryPart("streamlit.runtime.stats", "Stat", "the server's metrics"),
    LibraryPart("streamlit.runtime", "Runtime", "the server"),
    LibraryPart("streamlit.runtime:Runtime", "stats_mgr", "the server's metrics"),
    LibraryPart("streamlit.runtime:Runtime", "media_file_mgr", "the files of downloads"),
    LibraryPart("streamlit.runtime:Runtime", "uploaded_file_mgr", "limits on uploads"),
    LibraryPart("streamlit.runtime:Runtime", "get_client", "tells visitors apart", arguments="self, session_id"),
    LibraryPart("streamlit.file_util", "get_static_dir", "the policy of what a page may load"),
    LibraryPart("streamlit.web.cli", "configurator_options", "the options of the server"),
    LibraryPart("streamlit.runtime.scriptrunner", "get_script_run_ctx", "identifies the visitor"),
    LibraryPart("streamlit.errors", "FragmentHandledException", "an error is reported once"),
    LibraryPart("streamlit.runtime.app_session", "AppSession", "the sessions"),
    LibraryPart("streamlit.runtime.state.session_state", "WStates", "the controls", _ENDED_RUN),
    LibraryPart("streamlit.runtime.backend_operation_handler", "DeferredFileHandler", "makes files", _STALE_DOWNLOAD),
    LibraryPart(f"{_RENDERER}.component_manager", "BidiComponentManager", "the drawings"),
    LibraryPart(f"{_RENDERER}.component_registry", "BidiComponentDefinition", "the drawings"),
    LibraryPart(f"{_RENDERER}.get_bidi_component_manager", "get_bidi_component_manager", "the drawings"),
    LibraryPart(f"{_RENDERER}.types", "ComponentRenderer", "the drawings"),
    LibraryPart("streamlit.runtime.scriptrunner_utils.script_run_context", "ScriptRunContext", "the run of a page"),
)


def install_parts(parts: Sequence[LibraryPart] = PARTS) -> None:
    """Install the replacements.

    If a part is missing, leave out the improvements that need it, and log a warning.
    """
    losses = find_losses(parts)
    for loss, missing_part in losses.items():
        _LOG.warning("%s %s %s", describe_missing(missing_part), loss, describe_remedy(missing_part))
    for part in parts:
        if part.made_by and part.loss not in losses:
            owner = pkgutil.resolve_name(part.owner)
            setattr(owner, part.name, pkgutil.resolve_name(part.made_by)(getattr(owner, part.name)))


def can_report_value_errors() -> bool:
    """Return whether a page can report, in a sentence of its own, a value that no control can send."""
    return _ERROR_BOX not in find_losses(PARTS)


def has_component_files() -> bool:
    """Return whether the components' code can be served as files."""
    return _REPEATED_CODE not in find_losses(PARTS)
