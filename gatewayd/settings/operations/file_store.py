"""Settings of where the bytes of files are stored."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import STORAGE, restart, setting

_BUCKET = re.compile(r"(?:s3|gs|az)://[^/\s?#@]+(?:/[^\s?#]*)?")


def _file_store(text: str) -> str:
    if text != "directory" and not Path(text).is_absolute() and not _BUCKET.fullmatch(text):
        raise ValueError("not a file store")
    return text.rstrip("/")


FileStore = Annotated[
    types.Line,
    AfterValidator(_file_store),
    types.ExpectedValue(
        '"directory", an absolute path, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX'
    ),
]


class FileStoreFields(BaseSettings):
    """The settings of the file store."""

    file_store: FileStore = setting(
        restart(STORAGE),
        "directory",
        'Store of the bytes of files: data_dir for "directory", a directory that nodes share, or a bucket.',
    )
    file_store_endpoint: types.UrlOrEmpty = setting(
        restart(STORAGE),
        "",
        "Address of the object store; that of Amazon, Google or Azure when empty.",
    )
    file_store_region: types.Line = setting(
        restart(STORAGE), "", "Region of a bucket of S3; AWS_REGION, or else us-east-1, when empty."
    )
    file_store_access_key: Annotated[SecretStr, types.ExpectedValue("text")] = setting(
        restart(STORAGE),
        SecretStr(""),
        "Access key id of S3, or account of Azure; the environment or the machine's role when empty.",
    )
    file_store_secret_key: Annotated[SecretStr, types.ExpectedValue("text")] = setting(
        restart(STORAGE),
        SecretStr(""),
        "Secret key of S3, account key of Azure, or service account key of Google, a JSON object; the"
        " environment or the machine's role when empty.",
    )
