"""Fetching one file of a data set from the Hugging Face hub, at a pinned revision."""

import http.client
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import IO

from counterbalance.errors import ConfigError, InputError

SCHEME = "hf://"
_ENDPOINT = "https://huggingface.co"
_SILENCE_S = 30.0
_TOTAL_S = 600.0
_CHUNK = 1 << 16
_PATH = re.compile(r"hf://datasets/([\w.-]+)/([\w.-]+)@([^/@]+)/(.+)", re.ASCII)
_HINTS = {
    401: "the data set is private, gated or not there; set HF_TOKEN if you may read it",
    403: "access is refused; accept the data set's terms and set HF_TOKEN",
    404: "no such file at this revision; check owner, name, revision and file",
}


@dataclass(frozen=True)
class HubFile:
    """One file of a data set, pinned to a commit; `str()` gives the path as a study writes it."""

    owner: str
    name: str
    revision: str
    file: str

    def __str__(self) -> str:
        return f"{SCHEME}datasets/{self.owner}/{self.name}@{self.revision}/{self.file}"


def parse_hub_path(path: str) -> HubFile:
    """Take apart ``hf://datasets/OWNER/NAME@REVISION/FILE``.

    Raises
    ------
    ConfigError
        If the path has another form, or its revision is a branch or a short hash, which can move or be ambiguous.
    """
    found = _PATH.fullmatch(path)
    if found is None or any(part in ("", ".", "..") for part in found[4].split("/")):
        raise ConfigError(f"{path}: expected hf://datasets/OWNER/NAME@REVISION/FILE")
    if not re.fullmatch("[0-9a-f]{40}", found[3]):
        raise ConfigError(
            f"{path}: revision {found[3]!r} is not a commit; branches and tags can move: write the 40 hexadecimal "
            "digits of the commit, as the data set's history page shows them"
        )
    return HubFile(*found.groups())


def download(file: HubFile) -> bytes:
    """Fetch a file's bytes from `$HF_ENDPOINT`, with `$HF_TOKEN` where it is set.

    Raises
    ------
    InputError
        If the server refuses, is silent, or breaks off. The token is never part of a message.
    """
    endpoint = os.environ.get("HF_ENDPOINT", _ENDPOINT).rstrip("/")
    place = "/".join(urllib.parse.quote(part) for part in file.file.split("/"))
    url = f"{endpoint}/datasets/{file.owner}/{file.name}/resolve/{file.revision}/{place}"
    if not url.startswith(("https://", "http://")):
        raise ConfigError("HF_ENDPOINT has to start with https:// or http://")
    request = urllib.request.Request(url, headers={"User-Agent": "counterbalance", "Accept-Encoding": "identity"})
    token = os.environ.get("HF_TOKEN")
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.build_opener(_KeepTokenHome).open(request, timeout=_SILENCE_S) as reply:
            return _read(reply, file)
    except urllib.error.HTTPError as error:
        error.close()
        hint = _HINTS.get(error.code, "try again later")
        raise InputError(f"{file}: the server answered {error.code}; {hint}") from None
    except TimeoutError:
        raise InputError(f"{file}: the server was silent for {_SILENCE_S:g} s; try again later") from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise InputError(f"{file}: the server was silent for {_SILENCE_S:g} s; try again later") from None
        raise InputError(
            f"{file}: could not be fetched ({type(reason).__name__}); check the network, proxy and HF_ENDPOINT"
        ) from None


class _KeepTokenHome(urllib.request.HTTPRedirectHandler):
    """Follows redirects, sending the token on only to the same scheme, host and port."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        if following is not None and token and _origin(req.full_url) == _origin(newurl):
            following.add_unredirected_header("Authorization", token)
        return following


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


def _read(reply: http.client.HTTPResponse, file: HubFile) -> bytes:
    started, data = time.monotonic(), bytearray()
    while chunk := reply.read1(_CHUNK):
        data += chunk
        if time.monotonic() - started > _TOTAL_S:
            raise InputError(f"{file}: not complete after {_TOTAL_S:g} s; try again on a faster line")
    expected = reply.headers.get("Content-Length")
    if expected is not None and len(data) != int(expected):
        raise InputError(f"{file}: the connection broke after {len(data)} of {expected} bytes; try again")
    return bytes(data)
