"""A cache of public services' raw responses in a folder."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A body with the service's validators: its ETag and its Last-Modified."""

    body: bytes
    etag: str | None = None
    changed: str | None = None


class ResponseCache:
    """Responses by address, one compressed file each; a lost one costs one request. Processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, url: str) -> CachedResponse | None:
        """The cached response of an address; None where there is none that can be read."""
        try:
            head, _, body = gzip.decompress(self._path(url).read_bytes()).partition(b"\n")
            stored = json.loads(head)
            if stored["url"] != url:
                return None
            return CachedResponse(body, stored["etag"], stored["changed"])
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
            return None

    def store(self, url: str, response: CachedResponse) -> None:
        """Replace the response of an address in a single step; a folder that cannot be written to is ignored."""
        head = json.dumps({"url": url, "etag": response.etag, "changed": response.changed})
        packed = gzip.compress(head.encode() + b"\n" + response.body, compresslevel=3, mtime=0)
        path = self._path(url)
        temporary: Path | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
                temporary = Path(file.name)
                file.write(packed)
            temporary.replace(path)
        except OSError:
            if temporary is not None:
                temporary.unlink(missing_ok=True)

    def _path(self, url: str) -> Path:
        digest = blake2b(url.encode(), digest_size=16).hexdigest()
        return self._folder / digest[:2] / f"{digest}.gz"
