"""Manifest of the `open_webui` modules and names: the table behind gatewayd-plugins(7), IMPORT NAMES."""

from dataclasses import dataclass
from typing import Final

PACKAGE: Final = "open_webui"

WITH_SETTINGS: Final = ("env", "config")
"""Modules whose other upper-case names are settings."""


@dataclass(frozen=True, slots=True)
class CompatModule:
    """One module: `home` is the function that makes its names (`module:function`), `names` are all names.

    With `settings` other upper-case names are settings of the gateway. `note` is text for the manual.
    """

    name: str
    home: str
    names: tuple[str, ...]
    settings: bool = False
    note: str = ""


def _module(name: str, home: str, names: str, note: str = "") -> CompatModule:
    full = f"{PACKAGE}.{name}"
    return CompatModule(
        full, f"gatewayd.plugins.open_webui.{home}", tuple(names.split()), name in WITH_SETTINGS, note
    )


MODULES: Final[tuple[CompatModule, ...]] = (
    _module(
        "models.users",
        "modules.users:make_users",
        "Users UserModel User UserResponse UserSettings UsersTable",
    ),
    _module(
        "models.files",
        "modules.files:make_files",
        "Files FileForm FileModel FileModelResponse FileMetadataResponse",
    ),
    _module(
        "models.chats",
        "modules.chats:make_chats",
        "Chats ChatModel Chat ChatResponse ChatForm ChatTitleIdResponse",
    ),
    _module(
        "models.models",
        "modules.models:make_models",
        "Models ModelModel Model ModelParams ModelMeta ModelForm",
        "Records are not changed.",
    ),
    _module(
        "utils.misc",
        "modules.misc:make_misc",
        "get_content_from_message get_last_user_message_item get_last_user_message "
        "get_last_assistant_message_item get_last_assistant_message get_system_message "
        "remove_system_message pop_system_message update_message_content replace_system_message_content "
        "add_or_update_system_message add_or_update_user_message prepend_to_first_user_message_content "
        "append_or_update_assistant_message get_message_list get_messages_content "
        "openai_chat_message_template openai_chat_chunk_message_template "
        "openai_chat_completion_message_template deep_update calculate_sha256 calculate_sha256_string "
        "get_gravatar_url validate_email_format sanitize_filename parse_duration "
        "convert_logit_bias_input_to_json is_string_allowed is_saved_chat_id",
    ),
    _module(
        "utils.chat",
        "modules.completions:make_chat",
        "generate_chat_completion generate_chat_completions chat_completion",
    ),
    _module(
        "storage.provider",
        "modules.storage:make_storage",
        "Storage",
    ),
    _module(
        "constants",
        "modules.constants:make_constants",
        "TASKS ERROR_MESSAGES",
    ),
    _module(
        "env",
        "modules.settings:make_env",
        "VERSION SRC_LOG_LEVELS GLOBAL_LOG_LEVEL AIOHTTP_CLIENT_TIMEOUT AIOHTTP_CLIENT_SESSION_SSL "
        "BYPASS_MODEL_ACCESS_CONTROL DATA_DIR DEVICE_TYPE ENV WEBUI_AUTH WEBUI_NAME WEBUI_SECRET_KEY log",
        "WEBUI_SECRET_KEY is derived from the secret of the gateway.",
    ),
    _module(
        "config",
        "modules.settings:make_config",
        "DATA_DIR UPLOAD_DIR CACHE_DIR PersistentConfig",
        "The directories are those of plugins.",
    ),
    _module(
        "main",
        "modules.app:make_main",
        "app Request generate_chat_completion generate_chat_completions chat_completion get_models "
        "get_base_models",
    ),
    _module(
        "routers.files",
        "modules.uploads:make_file_routes",
        "upload_file_handler upload_file get_file_by_id get_file_content_by_id",
    ),
    _module(
        "routers.images",
        "modules.uploads:make_image_routes",
        "upload_image load_b64_image_data load_url_image_data get_image_data image_generations image_edits "
        "GenerateImageForm CreateImageForm EditImageForm",
        "Stores pictures; makes none.",
    ),
    _module(
        "routers.retrieval",
        "modules.retrieval:make_retrieval",
        "process_file query_collection_handler query_doc_handler process_web_search search_web "
        "ProcessFileForm QueryCollectionsForm QueryDocForm SearchForm",
        "Processes files and searches collections; does not search the web.",
    ),
    _module(
        "routers.memories",
        "stubs:make_memory_routes",
        "AddMemoryForm MemoryUpdateModel QueryMemoryForm Memories get_memories query_memory add_memory "
        "update_memory_by_id delete_memory_by_id delete_memory_by_user_id",
        "There are no memories.",
    ),
    _module(
        "routers.models",
        "modules.models:make_model_routes",
        "get_models get_base_models get_model_by_id",
    ),
    _module(
        "models.functions",
        "modules.registry:make_functions",
        "Functions FunctionModel",
    ),
    _module(
        "models.tools",
        "modules.registry:make_tools",
        "Tools ToolModel",
    ),
    _module(
        "models.folders",
        "stubs:make_folders",
        "Folders FolderModel",
        "Plugins see no folders.",
    ),
    _module(
        "models.groups",
        "modules.users:make_groups",
        "Groups GroupModel GroupResponse",
    ),
    _module(
        "models.memories",
        "stubs:make_memories",
        "Memories MemoryModel",
        "There are no memories.",
    ),
    _module(
        "models.messages",
        "stubs:make_messages",
        "Messages MessageModel",
        "There are no channels.",
    ),
    _module(
        "models.config",
        "modules.settings:make_config_table",
        "Config",
    ),
    _module(
        "models.feedbacks",
        "stubs:make_feedbacks",
        "Feedbacks FeedbackModel",
        "There are no ratings.",
    ),
    _module(
        "models.knowledge",
        "modules.retrieval:make_knowledge",
        "Knowledges KnowledgeModel",
    ),
    _module(
        "internal.db",
        "modules.database:make_database",
        "get_db get_db_context get_async_db get_async_db_context",
        "Sessions are only passed on.",
    ),
    _module(
        "utils.tools",
        "modules.registry:make_tool_functions",
        "get_tools get_builtin_tools get_terminal_tools get_async_tool_function_and_apply_extra_params "
        "get_updated_tool_function",
    ),
    _module(
        "utils.middleware",
        "modules.middleware:make_middleware",
        "process_tool_result",
    ),
    _module(
        "utils.access_control",
        "modules.access:make_access",
        "has_permission get_permissions has_access",
    ),
    _module(
        "utils.logger",
        "modules.middleware:make_logger",
        "logger start_logger stdout_format",
    ),
    _module(
        "models.skills",
        "stubs:make_skills",
        "Skills SkillModel SkillForm SkillMeta",
        "There are no skills.",
    ),
    _module(
        "models.notes",
        "stubs:make_notes",
        "Notes NoteModel",
        "There are no notes.",
    ),
    _module(
        "models.prompts",
        "stubs:make_prompts",
        "Prompts PromptModel",
        "There are no prompts.",
    ),
    _module(
        "models.channels",
        "stubs:make_channels",
        "Channels ChannelModel",
        "There are no channels.",
    ),
    _module(
        "utils.payload",
        "modules.payload:make_payload",
        "apply_system_prompt_to_body apply_model_system_prompt_to_body apply_model_params_to_body "
        "apply_model_params_to_body_openai remove_open_webui_params",
    ),
)

MODULES_BY_NAME: Final = {module.name: module for module in MODULES}

PACKAGES: Final = frozenset(
    module.name[:end] for module in MODULES for end in range(len(module.name)) if module.name[end] == "."
)
"""The packages of the modules; they have no names of their own."""

OLD_PREFIX: Final = f"{PACKAGE}.apps.webui."
"""Prefix of `models` and `routers` in old releases."""


def current_name(name: str) -> str:
    """Return the current name of a module that old releases had below `apps.webui`."""
    return f"{PACKAGE}.{name[len(OLD_PREFIX) :]}" if name.startswith(OLD_PREFIX) else name


def is_package(name: str) -> bool:
    """Whether a full name is a package."""
    return name in PACKAGES or name in (OLD_PREFIX[:-1], f"{PACKAGE}.apps")
