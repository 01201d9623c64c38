"""Images: names that stand for environments of this machine. A name that is not mapped does not exist, as in a registry."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from tandem_local.runtime.protocol import messages

__all__ = ["Image", "ImageCalls", "read_images"]


@dataclass(frozen=True, slots=True)
class Image:
    """What a mapped name means: environment variables, overlay layers (topmost first) and host folders to show."""

    environment: dict[str, str]
    layers: tuple[str, ...]
    folders: tuple[str, ...]


def read_images(path: Path) -> dict[str, Image]:
    """Read the mapping that the cluster wrote: name to the fields of `Image`."""
    entries = json.loads(path.read_bytes())
    return {
        name: Image(entry["environment"], tuple(entry["layers"]), tuple(entry["folders"])) for name, entry in entries.items()
    }


class ImageCalls:
    """The CRI's ImageService over a fixed mapping."""

    def __init__(self, images: dict[str, Image], folder: Path) -> None:
        self._images = images
        self._folder = folder

    async def list_images(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """All mapped names."""
        return messages.ListImagesResponse(images=[_image(name) for name in self._images])

    async def image_status(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """One name, or nothing if it is not mapped."""
        name = request.image.image
        return messages.ImageStatusResponse(image=_image(name) if name in self._images else None)

    async def pull_image(self, request: Any, context: Any) -> Any:
        """Succeed for mapped names; there is no registry behind any other."""
        name = request.image.image
        if name not in self._images:
            known = ", ".join(sorted(self._images))
            await context.abort(
                grpc.StatusCode.NOT_FOUND,
                f"image {name} not found: this cluster has no registry, only {known}; map a name with "
                "`tandem up --map-image NAME=KIND`",
            )
        return messages.PullImageResponse(image_ref=name)

    async def remove_image(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Nothing to remove: an image takes no space."""
        return messages.RemoveImageResponse()

    async def image_fs_info(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Where containers write, with nothing used, so that the kubelet never collects."""
        usage = messages.FilesystemUsage(
            timestamp=time.time_ns(),
            fs_id=messages.FilesystemIdentifier(mountpoint=str(self._folder)),
            used_bytes=messages.UInt64Value(value=0),
            inodes_used=messages.UInt64Value(value=0),
        )
        return messages.ImageFsInfoResponse(image_filesystems=[usage], container_filesystems=[usage])


def _image(name: str) -> Any:
    spec = messages.ImageSpec(image=name)
    return messages.Image(id=name, repo_tags=[name], size=1, uid=messages.Int64Value(value=0), spec=spec, pinned=True)
