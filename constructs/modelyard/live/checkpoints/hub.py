"""A repository of the Hugging Face Hub, through huggingface_hub: HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and
its cache apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from modelyard.checkpoints import architectures
from modelyard.live.checkpoints.source import MOST_FILES, Facts, NotRead
from modelyard.reading import CONFIG, short, suggestion

_PATIENCE = 30.0  # seconds without a byte
_LONGEST = 200
_MOST_BASES = 8


class HubRepository:
    """`repository` at `ref`, a branch, tag or commit; everything is read at the commit that it names.

    Raises:
        ImportError: huggingface_hub is not installed.
    """

    def __init__(self, repository: str, ref: str = "main") -> None:
        import huggingface_hub  # noqa: F401 - fails here and not at the first question

        self.name = repository
        self._ref = ref

    @property
    def facts(self) -> Facts:
        info, card = self._info, self._info.card_data
        bases = getattr(card, "base_model", None)
        licence = getattr(card, "license", None)
        if licence in (None, "other"):
            licence = getattr(card, "license_name", None) or licence
        return Facts(
            revision=str(info.sha),
            ref=self._ref,
            license=_line(licence),
            gated=bool(info.gated),
            pipeline_tag=_line(info.pipeline_tag),
            base_model=tuple(_lines(bases if isinstance(bases, list) else [bases])),
        )

    @cached_property
    def files(self) -> Mapping[str, int]:
        siblings = self._info.siblings or []
        if len(siblings) > MOST_FILES:
            raise NotRead(f"{self.name} has {len(siblings):,} files; {MOST_FILES:,} are the most")
        return {str(each.rfilename): int(each.size or 0) for each in siblings}

    def read(self, file: str, start: int, length: int) -> bytes:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import get_session, hf_raise_for_status

        if file == "config.json":
            return self._config[start : start + length]
        url = hf_hub_url(self.name, file, revision=str(self._info.sha), endpoint=_endpoint())
        headers = build_hf_headers() | {
            "Range": f"bytes={start}-{start + length - 1}",
            "Accept-Encoding": "identity",
        }
        with (
            self._answered(),
            get_session().stream("GET", url, headers=headers, timeout=_PATIENCE) as response,
        ):
            if response.status_code == 416:
                return b""
            if response.is_error:
                response.read()
            hf_raise_for_status(response)
            if start and response.status_code != 206:
                raise NotRead(f"{file} of {self.name} cannot be read in parts: the server ignores ranges")
            return _up_to(length, response.iter_bytes())

    def cached_config(self) -> bytes | None:
        """The config.json in huggingface_hub's cache, without a connection."""
        import huggingface_hub

        try:
            found = huggingface_hub.hf_hub_download(
                self.name, "config.json", revision=self._ref, local_files_only=True
            )
        except Exception:  # noqa: BLE001 - not there, in one of many ways
            return None
        return Path(found).read_bytes()

    @cached_property
    def _config(self) -> bytes:
        """The config.json, through huggingface_hub's cache: the next run may be without a connection."""
        import huggingface_hub

        if (size := self.files["config.json"]) > CONFIG.most_bytes:
            raise NotRead(
                f"the config.json of {self.name} has {size:,} bytes; {CONFIG.most_bytes:,} are the most"
            )
        with self._answered():
            path = huggingface_hub.hf_hub_download(
                self.name, "config.json", revision=self._ref, endpoint=_endpoint()
            )
        if Path(path).parent.name != self._info.sha:
            raise NotRead(f"{self.name} at {self._ref} changed while it was read: try again")
        return Path(path).read_bytes()

    @cached_property
    def _info(self) -> Any:
        from huggingface_hub import HfApi

        with self._answered():
            found = HfApi(endpoint=_endpoint()).model_info(
                self.name, revision=self._ref, files_metadata=True, timeout=_PATIENCE
            )
        commit = str(found.sha)
        if len(commit) != 40 or not set(commit) <= set("0123456789abcdef"):
            raise NotRead(f"the Hub names no commit of {self.name}, but {short(commit)}")
        return found

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """Context in which errors of the Hub, the network or a file say what to do."""
        try:
            yield
        except NotRead:
            raise
        except Exception as problem:  # noqa: BLE001 - errors of the Hub, the network or a file
            raise _refusal(self.name, self._ref, problem) from None


class Unreached(NotRead):
    """The Hub does not answer; what is in the cache is all there is."""


def _refusal(repository: str, ref: str, problem: Exception) -> NotRead:
    from huggingface_hub import errors

    status = getattr(getattr(problem, "response", None), "status_code", 0)
    if isinstance(problem, errors.GatedRepoError):
        if status == 401:
            said = "accept its licence on its page, and set HF_TOKEN"
        else:
            said = "the account of HF_TOKEN has to accept its licence, or wait to be let in, on its page"
        return NotRead(f"{repository} is gated: {said}")
    if isinstance(problem, errors.RepositoryNotFoundError):
        near = suggestion(repository, architectures().repositories())
        return NotRead(
            f"the Hub has no {repository}, or not for you: {near}check the id, or set HF_TOKEN if it is private"
        )
    if isinstance(problem, errors.RevisionNotFoundError):
        return NotRead(f"{repository} has no revision {short(ref)}: name a branch, a tag or a commit")
    if isinstance(problem, errors.EntryNotFoundError) and not isinstance(
        problem, errors.LocalEntryNotFoundError
    ):
        return NotRead(f"{repository} has no config.json")
    if status == 401:
        return NotRead(f"the Hub refuses the token for {repository}: set HF_TOKEN to one that is valid")
    if status == 403:
        return NotRead(f"the token may not read {repository}: give it the permission to read this repository")
    if status == 429:
        return NotRead(f"the Hub answers no more questions about {repository} for now: wait, or set HF_TOKEN")
    if isinstance(problem, errors.HFValidationError | ValueError):
        return NotRead(f"{short(repository)} cannot be had: {short(_first_line(problem), _LONGEST)}")
    reason = short(_first_line(problem), _LONGEST)
    return Unreached(
        f"the Hub cannot be reached (or HF_HUB_OFFLINE is set), which {repository} needs: {reason}"
    )


def _endpoint() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


def _up_to(length: int, chunks: Iterable[bytes]) -> bytes:
    found = bytearray()
    for chunk in chunks:
        found += chunk
        if len(found) >= length:  # the server may send the whole file
            break
    return bytes(found[:length])


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def _line(value: object) -> str | None:
    """A short line of plain text; None for anything else."""
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST else None


def _lines(values: Iterable[object]) -> list[str]:
    found = (_line(value) for value in values)
    return [line for line in found if line is not None][:_MOST_BASES]
