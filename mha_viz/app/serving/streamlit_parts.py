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
_TIMERS = "A click may be lost on a page that watches a measurement."
_LATEST = "A page may stop with “Cached ForwardMsg MISS”."
_CONTROLS = "A run may end because the previous run is still adding a control."
_TYPED = "A download may lack what was typed just before the click."
_FETCHED = "A file made for a download may be deleted before it is fetched."
_COMPONENTS = "The code of drawings is sent with every page."
_ERRORS = "A value that no control can send shows Streamlit's error box instead of a message."

PARTS: tuple[LibraryPart, ...] = (
    LibraryPart(
        _SESSION,
        "request_rerun",
        "a timed rerun gives way to what a person did",
        _TIMERS,
        "mha_viz.app.serving.timers:patch_timer_reruns",
        "self, client_state",
        "streamlit/streamlit#9921",
    ),
    LibraryPart(_SESSION, "_scriptrunner", "tells whether a run is under way", _TIMERS),
    LibraryPart(
        _SESSION,
        "request_rerun",
        "a run relies on nothing that a browser may have forgotten",
        _LATEST,
        "mha_viz.app.serving.messages:patch_message_cache",
        "self, client_state",
        "streamlit/streamlit#15816",
    ),
    LibraryPart(
        _SESSION,
        "_enqueue_forward_msg",
        "notes which messages a browser was sent",
        _LATEST,
        "mha_viz.app.serving.messages:record_sent_messages",
        "self, msg",
        "streamlit/streamlit#15816",
    ),
    LibraryPart(
        "streamlit.runtime.state.session_state:WStates",
        "__iter__",
        "the run that begins looks through the controls as they are at that moment",
        _CONTROLS,
        "mha_viz.app.serving.widgets:patch_widget_iteration",
        "self",
    ),
    LibraryPart("streamlit.runtime.state.session_state:WStates", "states", "the controls", _CONTROLS),
    LibraryPart(
        _FILES,
        "add_deferred",
        "a file has one name in all runs",
        _TYPED,
        "mha_viz.app.serving.click_downloads:name_files_by_button",
        "self, data_callable, mimetype, coordinates, file_name, element_id",
    ),
    LibraryPart(
        "streamlit.runtime.backend_operation_handler:DeferredFileHandler",
        "handle",
        "a file is made when the run has ended",
        _TYPED,
        "mha_viz.app.serving.click_downloads:wait_for_rerun",
        "self, request, session_id",
    ),
    LibraryPart(_FILES, "_lock", "guards the names of files", _TYPED),
    LibraryPart(_FILES, "_deferred_callables", "files that may be asked for, by name", _TYPED),
    LibraryPart(_FILES, "_deferred_ids_by_session", "their names, by session", _TYPED),
    LibraryPart(_FILES, "_files_by_session_and_coord", "their names, by place on the page", _TYPED),
    LibraryPart(_SESSIONS, "get_active_session_info", "the session that asks", _TYPED, arguments="self, session_id"),
    LibraryPart(_SESSION, "_scriptrunner", "tells whether a run is under way", _TYPED),
    LibraryPart(
        _FILES,
        "_get_inactive_file_ids",
        "a file stays until its browser has had time to fetch it",
        _FETCHED,
        "mha_viz.app.serving.sweeping:keep_unfetched_files",
        "self",
        "streamlit/streamlit#5834",
    ),
    LibraryPart(_FILES, "_file_metadata", "the files that have been made", _FETCHED),
    LibraryPart(f"{_RENDERER}.manifest_scanner", "ComponentConfig", "announces the code as files", _COMPONENTS),
    LibraryPart(f"{_RENDERER}.manifest_scanner", "ComponentManifest", "announces the code as files", _COMPONENTS),
    LibraryPart(
        f"{_RENDERER}.component_manager:BidiComponentManager",
        "register_from_manifest",
        "announces the code as files",
        _COMPONENTS,
        arguments="self, manifest, package_root",
    ),
    LibraryPart("streamlit.runtime:Runtime", "bidi_component_registry", "announces the code as files", _COMPONENTS),
    LibraryPart(
        "streamlit.runtime.scriptrunner_utils.script_run_context:ScriptRunContext",
        "fragment_ids_this_run",
        "tells a part of a page from a page",
        _ERRORS,
    ),
    LibraryPart(
        "streamlit.runtime.state.safe_session_state:SafeSessionState", "_state", "the values of controls", _ERRORS
    ),
    LibraryPart(
        "streamlit.runtime.state.session_state:SessionState", "_new_widget_state", "the values of controls", _ERRORS
    ),
    # The following rows protect data or people, or are indispensable.
    LibraryPart(
        _SESSIONS,
        "__init__",
        "ends abandoned sessions, with their texts, files and descriptors",
        made_by="mha_viz.app.serving.sweeping:end_lost_sessions",
        arguments="self, session_storage, uploaded_file_manager, script_cache, message_enqueued_callback, "
        "on_script_error",
        upstream="streamlit/streamlit#12506",
    ),
    LibraryPart(_SESSIONS, "_session_storage", "the sessions that wait for a reconnect"),
    LibraryPart("streamlit.runtime:Runtime", "_session_mgr", "the sessions"),
    LibraryPart("streamlit.runtime.session_manager", "SessionInfo", "a session that waits"),
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
    LibraryPart("streamlit.runtime.stats", "CounterStat", "the server's numbers"),
    LibraryPart("streamlit.runtime.stats", "GaugeStat", "the server's numbers"),
    LibraryPart("streamlit.runtime.stats", "Stat", "the server's numbers"),
    LibraryPart("streamlit.runtime", "Runtime", "the server"),
    LibraryPart("streamlit.runtime:Runtime", "stats_mgr", "the server's numbers"),
    LibraryPart("streamlit.runtime:Runtime", "media_file_mgr", "the files of downloads"),
    LibraryPart("streamlit.runtime:Runtime", "uploaded_file_mgr", "limits on uploads"),
    LibraryPart("streamlit.runtime:Runtime", "get_client", "tells visitors apart", arguments="self, session_id"),
    LibraryPart("streamlit.file_util", "get_static_dir", "the policy of what a page may load"),
    LibraryPart("streamlit.web.cli", "configurator_options", "the options of the server"),
    LibraryPart("streamlit.runtime.scriptrunner", "get_script_run_ctx", "tells who asks"),
    LibraryPart("streamlit.errors", "FragmentHandledException", "an error is reported once"),
    LibraryPart("streamlit.runtime.app_session", "AppSession", "the sessions"),
    LibraryPart("streamlit.runtime.state.session_state", "WStates", "the controls", _CONTROLS),
    LibraryPart("streamlit.runtime.backend_operation_handler", "DeferredFileHandler", "makes files", _TYPED),
    LibraryPart(f"{_RENDERER}.component_manager", "BidiComponentManager", "the drawings"),
    LibraryPart(f"{_RENDERER}.component_registry", "BidiComponentDefinition", "the drawings"),
    LibraryPart(f"{_RENDERER}.get_bidi_component_manager", "get_bidi_component_manager", "the drawings"),
    LibraryPart(f"{_RENDERER}.types", "ComponentRenderer", "the drawings"),
    LibraryPart("streamlit.runtime.scriptrunner_utils.script_run_context", "ScriptRunContext", "the run of a page"),
)


def install_parts(parts: Sequence[LibraryPart] = PARTS) -> None:
    """Install the replacements.

    If a part is missing, improvements that need it are left out, with one line in the log.
    """
    losses = find_losses(parts)
    for loss, missing in losses.items():
        _LOG.warning("%s %s %s", describe_missing(missing), loss, describe_remedy(missing))
    for part in parts:
        if part.made_by and part.loss not in losses:
            owner = pkgutil.resolve_name(part.owner)
            setattr(owner, part.name, pkgutil.resolve_name(part.made_by)(getattr(owner, part.name)))


def has_error_sentences() -> bool:
    """Return whether a page can answer a value that no control can send."""
    return _ERRORS not in find_losses(PARTS)


def has_component_files() -> bool:
    """Return whether the components' code can be served as files."""
    return _COMPONENTS not in find_losses(PARTS)
